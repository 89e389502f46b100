"""Triton twin of ``segment.py``, registered as operations of torch.

Segment form: each program owns a part of a segment and a span of channels, half
precision is accumulated in float32, offsets have 64 bits.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from pyg_pool.kernels.layout_triton import blocks, kind_of, lay_out, ordered, wide
from pyg_pool.kernels.soften_triton import soften, weights

__all__ = ["extremes", "logsumexp", "softmax", "sums"]


@triton.jit
def _sum_kernel(
    x, order, start, stop, out, width, sorted: tl.constexpr, rows: tl.constexpr,
    columns: tl.constexpr, kind: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(0).to(tl.int64)
    f = tl.program_id(1) * columns + tl.arange(0, columns)
    first, last = tl.load(start + part), tl.load(stop + part)
    total = tl.zeros([columns], kind)
    for i in range(first, last, rows):
        at = i + tl.arange(0, rows)
        row = at if sorted else tl.load(order + at, at < last, 0)
        mask = (at < last)[:, None] & (f < width)[None, :]
        tile = tl.load(x + row[:, None] * width + f[None, :], mask, 0.0)
        total += tl.sum(tile.to(kind), 0)
    tl.store(out + part * width + f, total, f < width)


@triton.jit
def _extreme_kernel(
    x, args, order, start, stop, best_out, arg_out, width, none, sign,
    has_args: tl.constexpr, sorted: tl.constexpr, rows: tl.constexpr,
    columns: tl.constexpr, kind: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(0).to(tl.int64)
    f = tl.program_id(1) * columns + tl.arange(0, columns)
    first, last = tl.load(start + part), tl.load(stop + part)
    best = tl.zeros([columns], kind)
    arg = tl.zeros([columns], tl.int64) + none
    for i in range(first, last, rows):
        at = i + tl.arange(0, rows)
        row = at if sorted else tl.load(order + at, at < last, 0)
        mask = (at < last)[:, None] & (f < width)[None, :]
        where = row[:, None] * width + f[None, :]
        tile = tl.load(x + where, mask, 0.0).to(kind) * sign
        ids = tl.load(args + where, mask, none) if has_args else row[:, None]
        is_nan = (tile != tile) & mask
        spoilt = tl.max(is_nan.to(tl.int32), 0) > 0
        clean = tl.where(mask & (tile == tile), tile, float("-inf"))
        top = tl.max(clean, 0)
        hit = tl.where(spoilt[None, :], is_nan, mask & (tile == top[None, :]))
        lowest = tl.min(tl.where(hit, ids + tl.zeros_like(where), none), 0)
        top = tl.where(spoilt, float("nan"), top)
        is_beyond = (top > best) | (spoilt & (best == best)) | (arg == none)
        takes = is_beyond & (lowest < none)
        best = tl.where(takes, top, best)
        arg = tl.where(takes, lowest, arg)
    tl.store(best_out + part * width + f, best * sign, f < width)
    tl.store(arg_out + part * width + f, arg, f < width)


@torch.library.custom_op("pyg_pool::segment_sums", mutates_args=())
def sums(x: Tensor, index: Tensor, size: int) -> Tensor:
    """Sums of ``[N, F]`` per segment."""
    plan, x = lay_out(index, size), x.contiguous()
    order, is_sorted = ordered(plan)
    width, (rows, columns) = x.size(1), blocks(x.size(1))
    parts = x.new_empty(plan.start.numel(), width, dtype=wide(x))
    out = x.new_empty(size, width, dtype=wide(x))
    if out.numel() == 0:
        return out.to(x.dtype)
    tiles, kind = triton.cdiv(width, columns), kind_of(x)
    _sum_kernel[(parts.size(0), tiles)](
        x, order, plan.start, plan.stop, parts, width, is_sorted, rows, columns, kind
    )
    ptr = plan.part_ptr
    _sum_kernel[(size, tiles)](
        parts, ptr, ptr[:-1], ptr[1:], out, width, True, rows, columns, kind
    )
    return out.to(x.dtype)


@sums.register_fake
def _(x: Tensor, index: Tensor, size: int) -> Tensor:
    return x.new_empty(size, x.size(1))


def _keep_index(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(inputs[1])


def _sums_backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    return grad.index_select(0, ctx.saved_tensors[0]), None, None


sums.register_autograd(_sums_backward, setup_context=_keep_index)


@torch.library.custom_op("pyg_pool::segment_extremes", mutates_args=())
def extremes(x: Tensor, index: Tensor, size: int, sign: int) -> tuple[Tensor, Tensor]:
    """Maxima (sign 1) or minima (-1) of ``[N, F]`` and the lowest row with each."""
    plan, x = lay_out(index, size), x.contiguous()
    order, is_sorted = ordered(plan)
    width, (rows, columns) = x.size(1), blocks(x.size(1))
    best = x.new_empty(plan.start.numel(), width, dtype=wide(x))
    arg = torch.empty_like(best, dtype=torch.int64)
    out, where = best.new_empty(size, width), arg.new_empty(size, width)
    if out.numel() == 0:
        return out.to(x.dtype), where
    tiles, kind, none = triton.cdiv(width, columns), kind_of(x), x.size(0)
    _extreme_kernel[(best.size(0), tiles)](
        x, arg, order, plan.start, plan.stop, best, arg, width, none, float(sign),
        False, is_sorted, rows, columns, kind,
    )  # fmt: skip
    ptr = plan.part_ptr
    _extreme_kernel[(size, tiles)](
        best, arg, ptr, ptr[:-1], ptr[1:], out, where, width, none, float(sign),
        True, True, rows, columns, kind,
    )  # fmt: skip
    return out.to(x.dtype), where


@extremes.register_fake
def _(x: Tensor, index: Tensor, size: int, sign: int) -> tuple[Tensor, Tensor]:
    out = x.new_empty(size, x.size(1))
    return out, torch.empty_like(out, dtype=torch.int64)


def _keep_rows(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.num_rows = inputs[0].size(0)
    ctx.save_for_backward(output[1])
    ctx.mark_non_differentiable(output[1])


def _extremes_backward(
    ctx: Any, grad: Tensor, _: Tensor | None
) -> tuple[Tensor, None, None, None]:
    (arg,) = ctx.saved_tensors
    out = grad.new_zeros(ctx.num_rows + 1, grad.size(1)).scatter(0, arg, grad)
    return out[:-1].clone(), None, None, None


extremes.register_autograd(_extremes_backward, setup_context=_keep_rows)


@torch.library.custom_op("pyg_pool::segment_softmax", mutates_args=())
def softmax(score: Tensor, index: Tensor, size: int) -> Tensor:
    """Softmax of ``[N, F]`` over the rows of each segment."""
    top, total, _ = soften(score, None, index, size, 1)
    return weights(score, index, top, total.masked_fill(total == 0, 1.0).reciprocal())


@softmax.register_fake
def _(score: Tensor, index: Tensor, size: int) -> Tensor:
    return torch.empty_like(score, memory_format=torch.contiguous_format)


def _keep_softmax(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.size = inputs[2]
    ctx.save_for_backward(inputs[1], output)


def _softmax_backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    index, out = ctx.saved_tensors
    inner = sums(out * grad, index, ctx.size)
    return out * (grad - inner.index_select(0, index)), None, None


softmax.register_autograd(_softmax_backward, setup_context=_keep_softmax)


@torch.library.custom_op("pyg_pool::segment_logsumexp", mutates_args=())
def logsumexp(score: Tensor, index: Tensor, size: int) -> Tensor:
    """Logarithm of the sum of exponentials per segment, 0 for an empty one."""
    top, total, _ = soften(score, None, index, size, 1)
    out = torch.where(top.abs() == torch.inf, top, total.log() + top)
    count = index.new_zeros(size).scatter_add(0, index, torch.ones_like(index))
    return out.masked_fill((count == 0).unsqueeze(1), 0.0).to(score.dtype)


@logsumexp.register_fake
def _(score: Tensor, index: Tensor, size: int) -> Tensor:
    return score.new_empty(size, score.size(1))


def _keep_score(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.size = inputs[2]
    ctx.save_for_backward(inputs[0], inputs[1])


def _logsumexp_backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    score, index = ctx.saved_tensors
    return softmax(score, index, ctx.size) * grad.index_select(0, index), None, None


logsumexp.register_autograd(_logsumexp_backward, setup_context=_keep_score)
