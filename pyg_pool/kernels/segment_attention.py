r"""Softmax over the rows of a segment and the weighted sum of its values, in one step.

Where each channel has a score of its own the compiled CPU twin keeps no weights: they
are computed again on the way back.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels import segment_chosen
from pyg_pool.kernels import segment_twin as twin
from pyg_pool.kernels.dispatch import is_traced, route_untraced
from pyg_pool.kernels.segment import flat_rows, segment_index
from pyg_pool.kernels.segment_native import (
    accumulator,
    native_reduce,
    native_softmax,
)
from pyg_pool.kernels.softmax_twin import softmax_of
from pyg_pool.kernels.threads import shared
from pyg_pool.typing import OptTensor

__all__ = ["segment_attention"]

OWNER = "segment_attention"


def segment_attention(
    scores: Tensor,
    values: Tensor,
    index: OptTensor = None,
    ptr: OptTensor = None,
    dim_size: int | None = None,
) -> Tensor:
    r"""Sums the values of each segment, weighted by the softmax of the scores.

    .. math::
        y_s = \sum_{i:\ \mathrm{index}_i = s}
        \frac{\exp(a_i)}{\sum_{j:\ \mathrm{index}_j = s} \exp(a_j)}\, v_i

    Args:
        scores: Scores of the rows: one for all channels, one per head, or one per
            channel.
        values: Rows to sum.
        index: Segment of each row, in any order.
        ptr: Offsets of contiguous segments, instead of ``index``.
        dim_size: Number of segments.

    Returns:
        One row per segment in the type of ``values``, 0 where there is no row or
        where all scores are ``-inf``.

    Shapes:
        scores: ``[N]``, or the leading dimensions of ``values`` with any number of
        ones after them; values: ``[N, *]``; index: ``[N]``; ptr: ``[B + 1]``; returns
        ``[B, *]``.

    Raises:
        ValueError: If the shapes do not fit.

    Note:
        Half precision is computed in float32. Memory: a weight per score, none where
        scores and values have one shape. Passing one tensor as both is no slower.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels import segment_attention
        >>> values = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> segment_attention(torch.zeros(3), values, torch.tensor([1, 1, 0]))
        tensor([[5., 6.],
                [2., 3.]])
    """
    heads = _heads(scores, values)
    index, size = segment_index("segment_attention", values, index, ptr, dim_size)
    wide = accumulator(values)
    same = scores is values
    wide_scores = wide if same else accumulator(scores)
    if wide_scores.dtype != wide.dtype:
        wide_scores = wide_scores.to(wide.dtype)
    fits = wide.dtype == torch.float32 and (values.dim() < 2 or values.size(-1) > 0)
    name = (
        None
        if is_traced()
        else route_untraced(
            "segment_attention", values.numel(), scores, values, index, has_twin=fits
        )
    )
    if name == "numba":
        flat = flat_rows(wide)
        out = _compiled(flat if same else wide_scores, flat, index, size, heads)
        out = out if values.dim() == 2 else out.view(size, *values.shape[1:])
    elif name is not None and values.numel() > 0:
        scores = scores.to(values.dtype)
        out = segment_chosen.attention_by(scores, values, index, size, heads)
    else:
        out = _native(wide_scores, wide, index, size)
    return out if out.dtype == values.dtype else out.to(values.dtype)


def _heads(scores: Tensor, values: Tensor) -> int:
    """Number of scores per row; raises ``ValueError`` where shapes do not fit."""
    if values.dim() == 2 and scores.dim() == 2 and scores.size(0) == values.size(0):
        heads = scores.size(1)
        if heads in (1, values.size(1)):
            return heads
    shape = list(scores.shape)
    while len(shape) > 1 and shape[-1] == 1 and shape != list(values.shape):
        shape.pop()
    if scores.dim() == 0 or shape != list(values.shape[: len(shape)]):
        raise ValueError(
            f"segment_attention got scores of shape {list(scores.shape)} and values of "
            f"shape {list(values.shape)}, expected scores [N], [N, H] with values "
            f"[N, H, D], or two equal shapes; add the dimension of the heads."
        )
    return math.prod(shape[1:])


def _native(scores: Tensor, values: Tensor, index: Tensor, size: int) -> Tensor:
    """The weighted sum in torch's operations."""
    weight = native_softmax(scores, index, size)
    shape = [*weight.shape, *[1] * (values.dim() - weight.dim())]
    while len(shape) > values.dim():
        shape.pop()
    return native_reduce(weight.view(shape) * values, index, size, "sum")


def _compiled(
    scores: Tensor, values: Tensor, index: Tensor, size: int, heads: int
) -> Tensor:
    """The weighted sum of ``[N, F]`` in the twin."""
    if heads == values.size(1):
        same = scores is values
        if scores.shape != values.shape:
            scores = scores.reshape(values.shape)
        rows = scores.contiguous()
        out: Tensor = _per_channel(rows, values, index, size, same)
        return out
    if scores.dim() != 2 or scores.size(1) != heads:
        scores = scores.reshape(values.size(0), heads)
    by_head: Tensor = _per_head(scores.contiguous(), values, index, size)
    return by_head


@functools.cache
def room() -> Any:
    """The kernels; loaded when the first is needed."""
    from pyg_pool.kernels import segment_attention_numba

    return segment_attention_numba


def _derive(
    ctx: Any, scores: Tensor, values: Tensor, index: Tensor, size: int, grad: Tensor
) -> list[OptTensor]:
    """Gradients by the native formula, which can be differentiated again."""
    heads = scores.size(1)
    depth = values.size(1) // max(1, heads)
    parts = values.view(values.size(0), heads, depth)
    out = _native(scores, parts, index, size).view(size, values.size(1))
    wanted = ctx.needs_input_grad[:2]
    leaves = [t for t, w in zip((scores, values), wanted, strict=True) if w]
    found = iter(torch.autograd.grad(out, leaves, grad, create_graph=True))
    return [next(found) if w else None for w in wanted]


class _PerChannel(torch.autograd.Function):
    """A score for each number; keeps the input and the result only."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, values: Tensor, index: Tensor, size: int, same: bool
    ) -> Tensor:
        rows, width = values.shape
        kept, out = torch.empty(2 * size * width), torch.empty((size, width))
        twin.guarded(
            OWNER, index, size, room().forward.single, width, rows * width, rows,
            width, size, scores.data_ptr(), values.data_ptr(), index.data_ptr(),
            kept.data_ptr(), out.data_ptr(),
        )  # fmt: skip
        ctx.options = size, same, kept
        ctx.save_for_backward(scores, values, index, out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, ...]:
        scores, values, index, out = ctx.saved_tensors
        size, same, kept = ctx.options
        if torch.is_grad_enabled() and same:
            again = _native(values, values, index, size)
            both = torch.autograd.grad(again, values, grad, create_graph=True)
            return None, both[0], None, None, None
        if torch.is_grad_enabled():
            return *_derive(ctx, scores, values, index, size, grad), None, None, None
        (rows, width), kernel = values.shape, room()
        for_scores, for_values = ctx.needs_input_grad[:2]
        wanted = kernel.VALUES * for_values + kernel.SCORES * for_scores
        by_values = torch.empty((rows, width)) if for_values else out
        by_scores = torch.empty((rows, width)) if for_scores and not same else out
        if same:
            wanted, by_scores = kernel.SAME, by_values
        grad = grad.contiguous()
        shared(
            kernel.backward.single, rows, rows * width, width, size,
            scores.data_ptr(), values.data_ptr(), index.data_ptr(), kept.data_ptr(),
            out.data_ptr(), grad.data_ptr(), wanted, by_values.data_ptr(),
            by_scores.data_ptr(),
        )  # fmt: skip
        first = by_scores if for_scores and not same else None
        return first, (by_values if for_values else None), None, None, None


_per_channel = twin.step_of(_PerChannel)


class _PerHead(torch.autograd.Function):
    """A score for several channels; keeps the weights."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, values: Tensor, index: Tensor, size: int
    ) -> Tensor:
        (rows, width), heads = values.shape, scores.size(1)
        weight = softmax_of(scores, index, size, OWNER)
        out = torch.empty((size, width))
        shared(
            room().add_weighted.single, width, rows * width, rows, heads,
            width // max(1, heads), size, weight.data_ptr(), values.data_ptr(),
            index.data_ptr(), out.data_ptr(),
        )  # fmt: skip
        ctx.save_for_backward(scores, values, index, weight, out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, ...]:
        scores, values, index, weight, out = ctx.saved_tensors
        size, heads = out.size(0), scores.size(1)
        if torch.is_grad_enabled():
            return *_derive(ctx, scores, values, index, size, grad), None, None
        (rows, width), grad, kernel = values.shape, grad.contiguous(), room()
        for_scores, for_values = ctx.needs_input_grad[:2]
        by_values = torch.empty((rows, width)) if for_values else None
        by_scores = torch.empty((rows, heads)) if for_scores else None
        places = [out if t is None else t for t in (by_values, by_scores)]
        shared(
            kernel.weighted_backward.single, rows, rows * width, heads,
            width // max(1, heads), weight.data_ptr(), values.data_ptr(),
            index.data_ptr(), out.data_ptr(), grad.data_ptr(),
            kernel.VALUES * for_values + kernel.SCORES * for_scores,
            places[0].data_ptr(), places[1].data_ptr(),
        )  # fmt: skip
        return by_scores, by_values, None, None


_per_head = twin.step_of(_PerHead)
