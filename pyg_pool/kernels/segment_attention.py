r"""Softmax over the rows of a segment and the weighted sum of its values, in one step.

Where each channel has a score of its own the compiled CPU twin keeps no weights: they
are computed again on the way back.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels import segment_chosen
from pyg_pool.kernels import segment_twin as twin
from pyg_pool.kernels.dispatch import chosen, is_traced, runs_numba
from pyg_pool.kernels.segment import segment_index
from pyg_pool.kernels.segment_native import (
    accumulator,
    native_reduce,
    native_softmax,
)
from pyg_pool.kernels.threads import run_spans
from pyg_pool.typing import OptTensor

__all__ = ["segment_attention"]


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
    is_eager = not is_traced()
    if (
        is_eager
        and values.numel() > 0
        and chosen("segment_attention", scores, values, index)
    ):
        scores = scores.to(values.dtype)
        out = segment_chosen.attention_by(scores, values, index, size, heads)
        return out.to(values.dtype)
    wide_values = accumulator(values)
    same = scores is values
    wide_scores = wide_values if same else accumulator(scores).to(wide_values.dtype)
    fits = is_eager and wide_values.dtype == torch.float32 and 0 not in values.shape[1:]
    if fits and runs_numba("segment_attention", values.numel(), scores, values, index):
        twin.check_range("segment_attention", index, size)
        flat = wide_values.reshape(values.size(0), math.prod(values.shape[1:]))
        out = _compiled(flat if same else wide_scores, flat, index, size, heads)
        return out.view(size, *values.shape[1:]).to(values.dtype)
    return _native(wide_scores, wide_values, index, size).to(values.dtype)


def _heads(scores: Tensor, values: Tensor) -> int:
    """Number of scores per row; raises ``ValueError`` where shapes do not fit."""
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
        scores = scores.reshape(values.shape)
        out: Tensor = _PerChannel.apply(scores, values, index, size, same)
        return out
    scores = scores.reshape(values.size(0), heads)
    return _PerHead.apply(scores, values, index, size)


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
        from pyg_pool.kernels import segment_attention_numba as kernel
        from pyg_pool.kernels import segment_numba

        best = values.new_full((size, values.size(1)), -torch.inf)
        shift, total = torch.empty_like(best), torch.zeros_like(best)
        out = torch.zeros_like(best)
        args = twin.plain(scores), twin.plain(values), index.numpy(), shift.numpy()
        top, sinks, parts = best.numpy(), (total.numpy(), out.numpy()), None
        parts = twin.channel_spans(values)
        run_spans(lambda f, g: segment_numba.tops(args[0], args[2], f, g, top), parts)
        segment_numba.shifts(top, args[3])
        run_spans(lambda f, g: kernel.forward(*args, f, g, *sinks), parts)
        factor = twin.inverse(total)
        out *= factor
        ctx.options = size, same
        ctx.save_for_backward(scores, values, index, shift, factor, out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, ...]:
        from pyg_pool.kernels import segment_attention_numba as kernel

        scores, values, index, shift, factor, out = ctx.saved_tensors
        size, same = ctx.options
        if torch.is_grad_enabled() and same:
            again = _native(values, values, index, size)
            both = torch.autograd.grad(again, values, grad, create_graph=True)
            return None, both[0], None, None, None
        if torch.is_grad_enabled():
            return *_derive(ctx, scores, values, index, size, grad), None, None, None
        by_values = torch.empty_like(values, memory_format=torch.contiguous_format)
        by_scores = by_values if same else torch.empty_like(by_values)
        up = (grad * factor).contiguous()
        args = [twin.plain(t) for t in (scores, values, index, shift, up, out)]
        sinks = by_values.numpy(), by_scores.numpy()
        run: Any = kernel.backward
        run_spans(
            lambda i, j: run(*args, i, j, *sinks, same),
            twin.row_spans(values),
        )
        return (None if same else by_scores), by_values, None, None, None


class _PerHead(torch.autograd.Function):
    """A score for several channels; keeps the weights."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, values: Tensor, index: Tensor, size: int
    ) -> Tensor:
        from pyg_pool.kernels import segment_attention_numba as kernel

        _, shift, total = twin.powers_of(scores, index, size)
        weight = twin.weights_of(scores, index, shift, twin.inverse(total))
        out = values.new_zeros(size, values.size(1))
        depth = values.size(1) // max(1, scores.size(1))
        args = weight.numpy(), twin.plain(values), index.numpy(), depth
        sink = out.numpy()
        run_spans(
            lambda f, g: kernel.add_weighted(*args, f, g, sink),
            twin.channel_spans(values),
        )
        ctx.options = size, depth
        ctx.save_for_backward(scores, values, index, weight, out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, ...]:
        from pyg_pool.kernels import segment_attention_numba as kernel

        scores, values, index, weight, out = ctx.saved_tensors
        size, depth = ctx.options
        if torch.is_grad_enabled():
            return *_derive(ctx, scores, values, index, size, grad), None, None
        by_values = torch.empty_like(values, memory_format=torch.contiguous_format)
        by_weight = torch.empty_like(weight)
        args = [twin.plain(t) for t in (weight, values, index, grad)]
        sinks = by_values.numpy(), by_weight.numpy()
        run: Any = kernel.weighted_backward
        run_spans(
            lambda i, j: run(*args, depth, i, j, *sinks),
            twin.row_spans(values),
        )
        inner = (grad * out).view(size, weight.size(1), depth).sum(2)
        by_scores = twin.slope(weight, by_weight, index, size, inner)
        return by_scores, by_values, None, None
