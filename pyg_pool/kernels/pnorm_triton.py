"""Triton twin of ``pnorm.py``: no matrix of logarithms is written to memory."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from pyg_pool.kernels.layout_triton import blocks, kind_of, lay_out, ordered
from pyg_pool.kernels.pnorm_native import log_max
from pyg_pool.kernels.segment_triton import extremes, sums

__all__ = ["norm_rows", "norm_sums"]


@triton.jit
def _magnitude(x, eps, side):
    """Magnitude of all numbers (side 0), of the positive or of the negative ones."""
    kept = tl.where(side == 0, tl.abs(x), tl.where(x * side > 0, tl.abs(x), 0.0))
    return tl.where(x == x, kept, x) + eps


@triton.jit
def _terms_kernel(
    x, p, top, index, order, start, stop, rest_out, moment_out, ties_out, eps, side,
    width, sorted: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr,
    kind: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(0).to(tl.int64)
    f = tl.program_id(1) * columns + tl.arange(0, columns)
    first, last = tl.load(start + part), tl.load(stop + part)
    rest, moment = tl.zeros([columns], kind), tl.zeros([columns], kind)
    ties = tl.zeros([columns], kind)
    power = tl.load(p + f, f < width, 1.0)
    for i in range(first, last, rows):
        at = i + tl.arange(0, rows)
        row = at if sorted else tl.load(order + at, at < last, 0)
        mask = (at < last)[:, None] & (f < width)[None, :]
        group = tl.load(index + row, at < last, 0)
        tile = tl.load(x + row[:, None] * width + f[None, :], mask, 1.0).to(kind)
        v = _magnitude(tile, eps, side)
        highest = tl.load(top + group[:, None] * width + f[None, :], mask, 1.0)
        log_v = tl.log(tl.where(v == 0, 1.0, v))
        log_top = tl.log(tl.where(highest == 0, 1.0, highest))
        a = power[None, :] * (log_v - log_top)
        a = tl.where(v == 0, -10000.0, a)
        a = tl.where(a > 0, 0.0, tl.where(a < -10000.0, -10000.0, a))
        a = tl.where(v == highest, 0.0, a)
        term = tl.exp(a)
        rest += tl.sum(tl.where(mask & (a != 0), term, 0.0), 0)
        ties += tl.sum(tl.where(mask & (a == 0), 1.0, 0.0), 0)
        moment += tl.sum(tl.where(mask, term * a, 0.0), 0)
    tl.store(rest_out + part * width + f, rest, f < width)
    tl.store(moment_out + part * width + f, moment, f < width)
    tl.store(ties_out + part * width + f, ties, f < width)


@triton.jit
def _rows_kernel(
    x, p, index, top, shift, grad, out, eps, side, limit, length, width, size, norms,
    rows: tl.constexpr, columns: tl.constexpr, kind: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * rows + tl.arange(0, rows)
    f = tl.program_id(1) * columns + tl.arange(0, columns)
    mask = (at < length)[:, None] & (f < width)[None, :]
    where = at[:, None] * width + f[None, :]
    tile = tl.load(x + where, mask, 1.0).to(kind)
    v = _magnitude(tile, eps, side)
    log_v = tl.log(tl.where(v == 0, 1.0, v))
    group = tl.load(index + at, at < length, 0)[:, None] * width + f[None, :]
    total = tl.zeros([rows, columns], kind)
    for r in range(norms):
        power = tl.load(p + r * width + f, f < width, 1.0)[None, :]
        there = group + r * size * width
        highest = tl.load(top + there, mask, 1.0)
        log_top = tl.log(tl.where(highest == 0, 1.0, highest))
        a = (power - 1) * (log_v - log_top) + tl.load(shift + there, mask, 0.0)
        a = tl.where(a > limit, limit, a)
        total += tl.load(grad + there, mask, 0.0) * tl.exp(a)
    slope = tl.where(tile > 0, 1.0, -1.0)
    slope = tl.where((tile == 0) | (slope * side < 0), 0.0, slope)
    tl.store(out + where, total * slope, mask)


def _side(part: str) -> int:
    return {"abs": 0, "pos": 1, "neg": -1}[part]


@torch.library.custom_op("pyg_pool::norm_sums", mutates_args=())
def norm_sums(
    x: Tensor, p: Tensor, index: Tensor, size: int, eps: float, part: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Extreme entries, sums of the terms less 1, and their moments, ``[R, B, F]``."""
    x, p = x.contiguous(), p.expand(-1, x.size(1)).contiguous()
    value = x.abs() if part == "abs" else x.mul(_side(part)).clamp(min=0)
    high, low = (extremes(value + eps, index, size, sign)[0] for sign in (1, -1))
    top = torch.where(p.unsqueeze(1) > 0, high, low)
    rest, moment = torch.zeros_like(top), torch.zeros_like(top)
    if top.numel() == 0:
        return top, rest, moment
    plan = lay_out(index, size)
    order, is_sorted = ordered(plan)
    width, (rows, columns) = x.size(1), blocks(x.size(1))
    many = x.new_empty(3, plan.start.numel(), width)
    owner = torch.arange(size, device=x.device)
    count = plan.part_ptr[1:] - plan.part_ptr[:-1]
    # Parts beyond the last one are empty; any segment may have them.
    owner = torch.cat([owner.repeat_interleave(count), owner[-1:].expand(many.size(1))])
    owner = owner[: many.size(1)]
    grid = many.size(1), triton.cdiv(width, columns)
    has_rows = torch.zeros(size, 1, dtype=torch.bool, device=x.device)
    has_rows[index] = True
    for r in range(p.size(0)):
        _terms_kernel[grid](
            x, p[r], top[r], index, order, plan.start, plan.stop, *many, eps,
            _side(part), width, is_sorted, rows, columns, kind_of(x),
        )  # fmt: skip
        # What exceeds 1 is kept apart, lest small terms get lost.
        extra = torch.where(has_rows, sums(many[2], owner, size) - 1, 0.0)
        rest[r] = sums(many[0], owner, size) + extra
        moment[r] = sums(many[1], owner, size)
    return top, rest.masked_fill(top == 0, 0.0), moment


@norm_sums.register_fake
def _(
    x: Tensor, p: Tensor, index: Tensor, size: int, eps: float, part: str
) -> tuple[Tensor, Tensor, Tensor]:
    out = x.new_empty(p.size(0), size, x.size(1))
    return out, torch.empty_like(out), torch.empty_like(out)


@torch.library.custom_op("pyg_pool::norm_rows", mutates_args=())
def norm_rows(
    x: Tensor, p: Tensor, index: Tensor, top: Tensor, shift: Tensor, grad: Tensor,
    eps: float, part: str,
) -> Tensor:  # fmt: skip
    """Gradient with respect to the rows."""
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel() == 0:
        return out
    width, (rows, columns) = x.size(1), blocks(x.size(1))
    exponents = p.expand(-1, width).contiguous()
    args = [t.contiguous() for t in (x, exponents, index, top, shift, grad)]
    grid = triton.cdiv(x.size(0), rows), triton.cdiv(width, columns)
    _rows_kernel[grid](
        *args, out, eps, _side(part), log_max(x), x.size(0), width, top.size(1),
        p.size(0), rows, columns, kind_of(x),
    )  # fmt: skip
    return out


@norm_rows.register_fake
def _(
    x: Tensor, p: Tensor, index: Tensor, top: Tensor, shift: Tensor, grad: Tensor,
    eps: float, part: str,
) -> Tensor:  # fmt: skip
    return torch.empty_like(x, memory_format=torch.contiguous_format)
