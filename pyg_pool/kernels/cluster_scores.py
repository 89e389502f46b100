"""Mean score of the links inside each cluster, straight from the features."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.derive import gradients
from pyg_pool.kernels.dispatch import is_traced, runs_numba
from pyg_pool.kernels.pairs import link_scores, links_inside, pair_logits

__all__ = ["add_scores_backward", "cluster_scores", "scores_backward"]


def cluster_scores(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    links: Tensor,
    logit: Tensor,
    cluster: Tensor,
    num_clusters: int,
) -> tuple[Tensor, Tensor]:
    r"""Returns mean score and number of the links inside each cluster.

    .. math::
        s_{ij} = \sigma\Bigl(b + \sum_f w_f\, x_{if}\, x_{jf}\Bigr)

    A link counts twice, once per direction, a loop once. A cluster without any
    counts as one link of score 1.

    Args:
        x: Features.
        weight: Weight of each feature, in the type of ``x``.
        bias: Offset of all logits.
        links: Pairs of nodes, each once, and loops.
        logit: Their logits, computed before without a gradient.
        cluster: Cluster of each node.
        num_clusters: Number of clusters.

    Shapes:
        x: ``[N, F]``; weight: ``[F]``; bias: ``[1]``; links: ``[2, P]`` int64; logit:
        ``[P]``; cluster: ``[N]`` int64; returns ``[K]``, ``[K]``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.cluster_scores import cluster_scores
        >>> x, links = torch.zeros(3, 1), torch.tensor([[0, 1], [1, 2]])
        >>> one, zero = torch.ones(1), torch.zeros(2)
        >>> cluster_scores(x, one, one, links, zero, torch.tensor([0, 0, 1]), 2)[1]
        tensor([2., 1.])
    """
    known = x.dtype == weight.dtype == logit.dtype == bias.dtype
    known = known and x.dtype in (torch.float32, torch.float64)
    size = links.size(1) * x.size(1)
    if is_traced() or not (
        known and x.is_contiguous() and runs_numba("pair_logits", size, x, links)
    ):
        return _native(x, weight, bias, links, cluster, num_clusters)
    mean, count = _Scores.apply(x, weight, bias, links, logit, cluster, num_clusters)
    return mean, count


def _native(
    x: Tensor, weight: Tensor, bias: Tensor, links: Tensor, cluster: Tensor, size: int
) -> tuple[Tensor, Tensor]:
    links = links.index_select(1, links_inside(links, cluster))
    score = (pair_logits(x, links, weight) + bias).sigmoid()
    times = 2 - (links[0] == links[1]).long()
    return link_scores(links, score, cluster, size, times=times)


class _Scores(torch.autograd.Function):
    """Keeps the links inside clusters and the slope of each."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, links: Tensor,
        logit: Tensor, cluster: Tensor, size: int,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        from pyg_pool.kernels import pairs_numba

        mean, count = logit.new_zeros(size), logit.new_zeros(size)
        found = pairs_numba.cluster_scores(
            links.contiguous().numpy(), logit.detach().contiguous().numpy(),
            cluster.contiguous().numpy(), mean.numpy(), count.numpy(),
        )  # fmt: skip
        inside, slope = map(torch.from_numpy, found)
        ctx.save_for_backward(x, weight, bias, inside, cluster, slope, count)
        ctx.mark_non_differentiable(count)
        return mean, count

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return *scores_backward(ctx.saved_tensors, grad), None, None, None, None


def scores_backward(
    saved: tuple[Tensor, ...], grad: Tensor
) -> tuple[Tensor | None, ...]:
    """Gradients of features, weight and bias from that of the mean scores.

    Args:
        saved: Features, weight, bias, links inside clusters, clusters, slope of
            each link, and the number of links in each cluster.
        grad: ``[K]`` gradient of the means.
    """
    x, weight, bias, links, cluster, _, count = saved
    if torch.is_grad_enabled():
        # Second derivatives are asked for: torch's operations have them.
        parts = (x, weight, bias)
        mean = _native(*parts, links, cluster, count.size(0))[0]
        return tuple(gradients(mean, parts, grad))
    grad_x = torch.zeros_like(x)
    return grad_x, *add_scores_backward(saved, grad, grad_x)


def add_scores_backward(
    saved: tuple[Tensor, ...], grad: Tensor, grad_x: Tensor
) -> tuple[Tensor, Tensor]:
    """Adds to the gradient of the features; returns those of weight and bias."""
    from pyg_pool.kernels import pairs_numba

    x, weight, bias, links, cluster, slope, count = saved
    grad_weight = torch.zeros_like(weight)
    total = pairs_numba.cluster_scores_backward(
        x.detach().numpy(), weight.detach().contiguous().numpy(), links.numpy(),
        cluster.contiguous().numpy(), slope.numpy(), grad.contiguous().numpy(),
        count.numpy(), grad_x.numpy(), grad_weight.numpy(),
    )  # fmt: skip
    return grad_weight, bias.new_full([1], total)
