"""Triton twin of ``segment_attention.py``: no weight is written to memory."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from pyg_pool.kernels.layout_triton import blocks, kind_of, wide
from pyg_pool.kernels.soften_triton import soften

__all__ = ["attention"]


@triton.jit
def _rows_kernel(
    score, value, index, top, factor, out, by_value, by_score, length, width,
    rows: tl.constexpr, columns: tl.constexpr, kind: tl.constexpr,
):  # fmt: skip
    """Gradients where each channel has a score."""
    at = tl.program_id(0).to(tl.int64) * rows + tl.arange(0, rows)
    f = tl.program_id(1) * columns + tl.arange(0, columns)
    mask = (at < length)[:, None] & (f < width)[None, :]
    group = tl.load(index + at, at < length, 0)[:, None] * width + f[None, :]
    where = at[:, None] * width + f[None, :]
    shift = tl.load(top + group, mask, 0.0)
    shift = tl.where(shift == float("-inf"), 0.0, shift)
    power = tl.exp(tl.load(score + where, mask, 0.0).to(kind) - shift)
    weighted = power * tl.load(factor + group, mask, 0.0)
    gap = tl.load(value + where, mask, 0.0).to(kind) - tl.load(out + group, mask, 0.0)
    tl.store(by_value + where, weighted, mask)
    tl.store(by_score + where, weighted * gap, mask)


@triton.jit
def _heads_kernel(
    score, value, index, top, factor, out, by_value, by_score, length, heads, depth,
    rows: tl.constexpr, columns: tl.constexpr, kind: tl.constexpr,
):  # fmt: skip
    """Gradients where ``depth`` channels share a score."""
    at = tl.program_id(0).to(tl.int64) * rows + tl.arange(0, rows)
    h = tl.program_id(1)
    inside = at < length
    group = tl.load(index + at, inside, 0) * heads * depth + h * depth
    shift = tl.load(top + group, inside, 0.0)
    shift = tl.where(shift == float("-inf"), 0.0, shift)
    power = tl.exp(tl.load(score + at * heads + h, inside, 0.0).to(kind) - shift)
    total = tl.zeros([rows], kind)
    for start in range(0, depth, columns):
        f = start + tl.arange(0, columns)
        mask = inside[:, None] & (f < depth)[None, :]
        where = (at * heads * depth + h * depth)[:, None] + f[None, :]
        there = group[:, None] + f[None, :]
        weighted = power[:, None] * tl.load(factor + there, mask, 0.0)
        gap = tl.load(value + where, mask, 0.0).to(kind)
        gap -= tl.load(out + there, mask, 0.0)
        tl.store(by_value + where, weighted, mask)
        total += tl.sum(weighted * gap, 1)
    tl.store(by_score + at * heads + h, total, inside)


@torch.library.custom_op("pyg_pool::segment_attention", mutates_args=())
def attention(
    score: Tensor, value: Tensor, index: Tensor, size: int, depth: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Softmax-weighted sums of ``[N, H D]``, the largest scores and the totals."""
    top, total, out = soften(score, value, index, size, depth)
    total = total.masked_fill(total == 0, 1.0)
    return out / total, top.clone(), total


@attention.register_fake
def _(
    score: Tensor, value: Tensor, index: Tensor, size: int, depth: int
) -> tuple[Tensor, Tensor, Tensor]:
    out = value.new_empty(size, value.size(1), dtype=wide(value))
    return out, torch.empty_like(out), torch.empty_like(out)


@torch.library.custom_op("pyg_pool::segment_attention_backward", mutates_args=())
def attention_backward(
    score: Tensor, value: Tensor, index: Tensor, depth: int, out: Tensor, top: Tensor,
    factor: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Gradients; ``factor`` is that of the result divided by the total."""
    score, value, factor = score.contiguous(), value.contiguous(), factor.contiguous()
    by_score, by_value = torch.empty_like(score), torch.empty_like(value)
    length, width, kind = value.size(0), value.size(1), kind_of(value)
    if value.numel() == 0:
        return by_score.zero_(), by_value
    args = score, value, index, top, factor, out, by_value, by_score, length
    if depth == 1:
        rows, columns = blocks(width)
        grid = triton.cdiv(length, rows), triton.cdiv(width, columns)
        _rows_kernel[grid](*args, width, rows, columns, kind)
    else:
        rows, columns = blocks(depth)
        grid = triton.cdiv(length, rows), width // depth
        _heads_kernel[grid](*args, width // depth, depth, rows, columns, kind)
    return by_score, by_value


@attention_backward.register_fake
def _(
    score: Tensor, value: Tensor, index: Tensor, depth: int, out: Tensor, top: Tensor,
    factor: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    like = torch.contiguous_format
    return (
        torch.empty_like(score, memory_format=like),
        torch.empty_like(value, memory_format=like),
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    score, value, index, _, ctx.depth = inputs
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(score, value, index, *output)


def _backward(
    ctx: Any, grad: Tensor, *_: Tensor | None
) -> tuple[Tensor, Tensor, None, None, None]:
    score, value, index, out, top, total = ctx.saved_tensors
    by_score, by_value = attention_backward(
        score, value, index, ctx.depth, out, top, grad / total
    )
    return by_score, by_value, None, None, None


attention.register_autograd(_backward, setup_context=_keep)
