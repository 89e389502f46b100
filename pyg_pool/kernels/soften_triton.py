"""Largest scores, sums of exponentials and weights of segments, in Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from pyg_pool.kernels.layout_triton import blocks, kind_of, lay_out, ordered, wide

__all__ = ["soften", "weights"]


@triton.jit
def _soften_kernel(
    score, weight, value, order, start, stop, top_out, total_out, sum_out, width,
    heads, depth, has_weight: tl.constexpr, has_value: tl.constexpr,
    sorted: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr,
    kind: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(0).to(tl.int64)
    f = tl.program_id(1) * columns + tl.arange(0, columns)
    first, last = tl.load(start + part), tl.load(stop + part)
    top = tl.full([columns], float("-inf"), kind)
    total, result = tl.zeros([columns], kind), tl.zeros([columns], kind)
    for i in range(first, last, rows):
        at = i + tl.arange(0, rows)
        row = at if sorted else tl.load(order + at, at < last, 0)
        mask = (at < last)[:, None] & (f < width)[None, :]
        from_score = row[:, None] * heads + (f // depth)[None, :]
        tile = tl.load(score + from_score, mask, float("-inf")).to(kind)
        raised = tl.maximum(top, tl.max(tile, 0))
        shift = tl.where(raised == float("-inf"), 0.0, raised)
        power = tl.where(mask, tl.exp(tile - shift[None, :]), 0.0)
        shrink = tl.exp(top - shift)
        where = row[:, None] * width + f[None, :]
        extra = power
        if has_weight:
            extra = power * tl.load(weight + where, mask, 0.0)
        total = total * shrink + tl.sum(extra, 0)
        if has_value:
            rows_of = tl.load(value + where, mask, 0.0).to(kind)
            result = result * shrink + tl.sum(power * rows_of, 0)
        top = raised
    tl.store(top_out + part * width + f, top, f < width)
    tl.store(total_out + part * width + f, total, f < width)
    if has_value:
        tl.store(sum_out + part * width + f, result, f < width)


@triton.jit
def _weights_kernel(
    score, index, top, factor, out, length, width, rows: tl.constexpr,
    columns: tl.constexpr, kind: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * rows + tl.arange(0, rows)
    f = tl.program_id(1) * columns + tl.arange(0, columns)
    mask = (at < length)[:, None] & (f < width)[None, :]
    group = tl.load(index + at, at < length, 0)[:, None] * width + f[None, :]
    where = at[:, None] * width + f[None, :]
    tile = tl.load(score + where, mask, 0.0).to(kind)
    shift = tl.load(top + group, mask, 0.0)
    shift = tl.where(shift == float("-inf"), 0.0, shift)
    power = tl.exp(tile - shift) * tl.load(factor + group, mask, 0.0)
    tl.store(out + where, power, mask)


def soften(
    score: Tensor, value: Tensor | None, index: Tensor, size: int, depth: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Largest scores, sums of exponentials, sums of weighted values, ``[B, F]``."""
    plan, score = lay_out(index, size), score.contiguous()
    order, is_sorted = ordered(plan)
    heads = score.size(1)
    width, (rows, columns) = heads * depth, blocks(heads * depth)
    many = score.new_empty(3, plan.start.numel(), width, dtype=wide(score))
    few = many.new_empty(3, size, width)
    if few.numel() == 0:
        return few[0], few[1], few[2]
    given = many[2] if value is None else value.contiguous()
    has_value = value is not None
    tiles, kind = triton.cdiv(width, columns), kind_of(score)
    _soften_kernel[(many.size(1), tiles)](
        score, many[1], given, order, plan.start, plan.stop, *many, width, heads,
        depth, False, has_value, is_sorted, rows, columns, kind,
    )  # fmt: skip
    ptr = plan.part_ptr
    _soften_kernel[(size, tiles)](
        many[0], many[1], many[2], ptr, ptr[:-1], ptr[1:], *few, width, width, 1,
        True, has_value, True, rows, columns, kind,
    )  # fmt: skip
    return few[0], few[1], few[2]


def weights(score: Tensor, index: Tensor, top: Tensor, factor: Tensor) -> Tensor:
    """Exponentials of scores less the largest, times a factor of the segment."""
    out, score = torch.empty_like(score.contiguous()), score.contiguous()
    width, (rows, columns) = score.size(1), blocks(score.size(1))
    if out.numel() > 0:
        grid = triton.cdiv(score.size(0), rows), triton.cdiv(width, columns)
        _weights_kernel[grid](
            score, index, top, factor, out, score.size(0), width, rows, columns,
            kind_of(score),
        )  # fmt: skip
    return out
