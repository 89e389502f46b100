"""From features to scored clusters in one compiled call."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.cluster_scores import cluster_scores, scores_backward
from pyg_pool.kernels.dispatch import is_traced, runs_numba
from pyg_pool.kernels.pairs import distinct_pairs, pair_logits
from pyg_pool.kernels.parse import dominant_links, link_components
from pyg_pool.typing import OptTensor

__all__ = ["found_clusters", "scored_clusters"]


def scored_clusters(
    x: Tensor,
    edge_index: Tensor,
    weight: Tensor,
    bias: Tensor,
    resting: OptTensor = None,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Scores all pairs of neighbours and groups each node with its best one.

    .. math::
        s_{ij} = \sigma\Bigl(b + \sum_f w_f\, x_{if}\, x_{jf}\Bigr)

    Args:
        x: Features.
        edge_index: Edges in any direction and number.
        weight: Weight of each feature, in the type of ``x``.
        bias: Offset of all logits.
        resting: Nodes that stay alone.

    Returns:
        The cluster of each node, and mean score and number of the edges inside each
        cluster as :func:`cluster_scores` counts them.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]`` int64; weight: ``[F]``; bias: ``[1]``;
        resting: ``[N]`` bool; returns ``[N]`` int64, ``[K]``, ``[K]``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.scored_clusters import scored_clusters
        >>> path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> x = torch.tensor([[3.0], [3.0], [-1.0], [-1.0]])
        >>> scored_clusters(x, path, torch.ones(1), torch.zeros(1))[0]
        tensor([0, 0, 1, 1])
    """
    known = x.dtype == weight.dtype == bias.dtype and x.is_contiguous()
    known = known and x.dtype in (torch.float32, torch.float64)
    size = edge_index.size(1)
    if is_traced() or not (known and runs_numba("parse", size, x, edge_index)):
        return _native(x, edge_index, weight, bias, resting)
    cluster, mean, count = _Scored.apply(x, weight, bias, edge_index, resting)
    return cluster, mean, count


def _native(
    x: Tensor, edge_index: Tensor, weight: Tensor, bias: Tensor, resting: OptTensor
) -> tuple[Tensor, Tensor, Tensor]:
    pairs = distinct_pairs(edge_index, x.size(0))
    with torch.no_grad():
        logit = pair_logits(x, pairs, weight) + bias
    choice = logit
    if resting is not None:
        choice = choice.masked_fill(resting[pairs].any(0), torch.nan)
    link = dominant_links(pairs, choice, x.size(0), both_ways=True)
    cluster, size = link_components(link)
    return cluster, *cluster_scores(x, weight, bias, pairs, logit, cluster, size)


def found_clusters(
    x: Tensor, edge_index: Tensor, weight: Tensor, bias: Tensor,
    resting: OptTensor = None, power: int = 0,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Compiled pass: pairs inside clusters, their slopes, clusters, and figures."""
    from pyg_pool.kernels import scored_clusters_numba

    rest = edge_index.new_empty(0, dtype=torch.bool)
    rest = rest if resting is None else resting.contiguous()
    found = scored_clusters_numba.scored_clusters(
        x.detach().numpy(), edge_index.contiguous().numpy(),
        weight.detach().contiguous().numpy(), bias.detach().numpy(), rest.numpy(),
        power,
    )  # fmt: skip
    return tuple(map(torch.from_numpy, found))


class _Scored(torch.autograd.Function):
    """Keeps the pairs inside clusters and the slope of each."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, edge_index: Tensor,
        resting: OptTensor,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        pairs, slope, cluster, mean, count, _ = found_clusters(
            x, edge_index, weight, bias, resting
        )
        ctx.save_for_backward(x, weight, bias, pairs, cluster, slope, count)
        ctx.mark_non_differentiable(cluster, count)
        return cluster, mean, count

    @staticmethod
    def backward(
        ctx: Any, _: Tensor, grad: Tensor, __: Tensor
    ) -> tuple[Tensor | None, ...]:
        return *scores_backward(ctx.saved_tensors, grad), None, None
