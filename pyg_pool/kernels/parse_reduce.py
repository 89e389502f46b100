"""From features to clusters and their pooled features, as one operation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.cluster_scores import add_scores_backward
from pyg_pool.kernels.deepsets import (
    Residual,
    deepsets,
    deepsets_backward,
    deepsets_forward,
)
from pyg_pool.kernels.derive import gradients
from pyg_pool.kernels.dispatch import is_traced, runs_numba
from pyg_pool.kernels.scored_clusters import found_clusters, scored_clusters
from pyg_pool.kernels.segment import segment_reduce
from pyg_pool.typing import OptTensor

__all__ = ["parse_reduce"]

Layers = tuple[Residual, Residual]
POWER = {"none": 0, "mean": 1, "sum": 2}


def parse_reduce(
    x: Tensor,
    edge_index: Tensor,
    weight: Tensor,
    bias: Tensor,
    layers: Layers | None,
    multiplier: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scores pairs, clusters nodes, and sums features over the clusters.

    Args:
        x: Features.
        edge_index: Edges in any direction and number.
        weight: Weight of each feature in the score of a pair.
        bias: Offset of all logits.
        layers: The layers before and after the sum, ``None`` for none.
        multiplier: Factor on the features of a cluster: ``"sum"`` or ``"mean"`` of
            the scores inside it, or ``"none"``.

    Returns:
        The cluster of each node, mean score and number of the edges inside each
        cluster, as :func:`scored_clusters` gives them, and its features.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]`` int64; weight: ``[F]``; bias: ``[1]``;
        returns ``[N]`` int64, ``[K]``, ``[K]``, ``[K, F]``.

    Note:
        What :func:`scored_clusters` and :func:`deepsets` give one after the other:
        the gradient of the features is written once instead of twice and added.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.parse_reduce import parse_reduce
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> x, one = torch.tensor([[3.0], [3.0], [-1.0], [-2.0]]), torch.ones(1)
        >>> parse_reduce(x, path, one, one, None, "none")[3]
        tensor([[ 6.],
                [-3.]])
    """
    tensors = [weight, bias, *(p for each in layers or () for p in each[:4])]
    known = x.dtype in (torch.float32, torch.float64) and x.is_contiguous()
    known = known and all(each.dtype == x.dtype for each in tensors)
    if (
        is_traced()
        or not (known and runs_numba("norm_sum", x.numel(), x, edge_index))
        or torch.is_autocast_enabled("cpu")
    ):
        found = scored_clusters(x, edge_index, weight, bias)
        return *found, _reduced(x, layers, multiplier, *found)
    first, second = layers or ((None,) * 5, (None,) * 5)
    cluster, mean, count, out = _ParseReduce.apply(
        x, weight, bias, *first, *second, edge_index, multiplier
    )
    return cluster, mean, count, out


def _reduced(
    x: Tensor, layers: Layers | None, multiplier: str, cluster: Tensor, mean: Tensor,
    count: Tensor,
) -> Tensor:  # fmt: skip
    factor: OptTensor = None
    if multiplier != "none":
        factor = mean * count if multiplier == "sum" else mean
    if layers is not None:
        return deepsets(x, *layers, cluster, mean.size(0), factor)
    out = segment_reduce(x, cluster, dim_size=mean.size(0))
    return out if factor is None else out * factor.unsqueeze(-1)


class _ParseReduce(torch.autograd.Function):
    """Both compiled passes, with one gradient of the features."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor,
        w1: OptTensor, b1: OptTensor, scale1: OptTensor, shift1: OptTensor, eps1: Any,
        w2: OptTensor, b2: OptTensor, scale2: OptTensor, shift2: OptTensor, eps2: Any,
        edge_index: Tensor, multiplier: str,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
        inside, slope, cluster, mean, count, times = found_clusters(
            x, edge_index, weight, bias, power=POWER[multiplier]
        )
        kept: tuple[Tensor, ...]
        if w1 is None:
            out, kept = _plain_forward(x, cluster, times)
        else:
            first: Any = w1, b1, scale1, shift1, eps1
            second: Any = w2, b2, scale2, shift2, eps2
            size = mean.size(0)
            out, kept = deepsets_forward(x, first, second, cluster, size, times)
        ctx.save_for_backward(
            x, weight, bias, w1, b1, scale1, shift1, w2, b2, scale2, shift2,
            inside, slope, cluster, count, edge_index, *kept,
        )  # fmt: skip
        ctx.eps, ctx.multiplier = (eps1, eps2), multiplier
        ctx.mark_non_differentiable(cluster, count)
        ctx.set_materialize_grads(False)
        return cluster, mean, count, out

    @staticmethod
    def backward(
        ctx: Any, _: None, grad_mean: OptTensor, __: None, grad: OptTensor
    ) -> tuple[OptTensor, ...]:
        if torch.is_grad_enabled():
            return _again(ctx, grad_mean, grad)
        saved = ctx.saved_tensors
        x, weight, bias, w1 = saved[:4]
        inside, slope, cluster, count = saved[11:15]
        grad_mean = torch.zeros_like(count) if grad_mean is None else grad_mean
        first: list[OptTensor] = [None] * 4
        second: list[OptTensor] = [None] * 4
        if grad is None:
            grad_x = torch.zeros_like(x)
        else:
            if w1 is None:
                grad_x, steep = _plain_backward(x, grad, cluster, saved[16:])
            else:
                norms = (*saved[5:7], *saved[9:11])
                grad_x, first[:], second[:], steep = deepsets_backward(  # type: ignore[assignment]
                    grad, x, norms, cluster, saved[16:]
                )
            if ctx.multiplier == "sum":
                grad_mean = torch.addcmul(grad_mean, steep, count)
            elif ctx.multiplier == "mean":
                grad_mean = grad_mean + steep
        parts = (x, weight, bias, inside, cluster, slope, count)
        score = add_scores_backward(parts, grad_mean, grad_x)
        return grad_x, *score, *first, None, *second, None, None, None


def _plain_forward(
    x: Tensor, cluster: Tensor, times: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    from pyg_pool.kernels import deepsets_numba

    sums = x.new_zeros(times.size(0), x.size(1))
    out = torch.empty_like(sums)
    deepsets_numba.plain_sum(
        x.detach().numpy(), cluster.numpy(), times.numpy(), sums.numpy(), out.numpy()
    )
    return out, (sums, times)


def _plain_backward(
    x: Tensor, grad: Tensor, cluster: Tensor, kept: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    from pyg_pool.kernels import deepsets_numba

    sums, times = kept
    grad_x, steep = torch.empty_like(x), torch.empty_like(times)
    deepsets_numba.plain_sum_backward(
        grad.contiguous().numpy(), cluster.numpy(), times.numpy(), sums.numpy(),
        grad_x.numpy(), steep.numpy(),
    )  # fmt: skip
    return grad_x, steep


def _again(ctx: Any, grad_mean: OptTensor, grad: OptTensor) -> tuple[OptTensor, ...]:
    """The gradients from operations that have second derivatives."""
    x, weight, bias, *rest = ctx.saved_tensors[:11]
    edge_index = ctx.saved_tensors[15]
    layers = None
    if rest[0] is not None:
        layers = (*rest[:4], ctx.eps[0]), (*rest[4:], ctx.eps[1])
    found = scored_clusters(x, edge_index, weight, bias)
    out = _reduced(x, layers, ctx.multiplier, *found)
    pairs = [
        (each, slope)
        for each, slope in ((found[1], grad_mean), (out, grad))
        if slope is not None and each.requires_grad
    ]
    parts = [x, weight, bias, *(each for each in rest if each is not None)]
    total = torch.stack([(each * slope).sum() for each, slope in pairs]).sum()
    got = gradients(total, parts, torch.ones_like(total))
    if layers is None:
        got = [*got, *([None] * 8)]
    return (*got[:7], None, *got[7:], None, None, None)
