"""The sums and gradients behind ``pnorm.py`` in torch's operations."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["Sums", "log_max", "native_rows", "native_sums"]

# Terms below e^-10000 are 0 in every dtype; a finite floor keeps 0 * a at 0.
FLOOR = -1e4

Sums = tuple[Tensor, Tensor, Tensor]


def native_sums(
    x: Tensor, p: Tensor, index: Tensor, size: int, eps: float, part: str,
    moments: bool = True,
) -> Sums:  # fmt: skip
    """Extreme entry, sum of the terms less 1, and sum of term times its logarithm."""
    v = _magnitude(x, part) + eps
    top = _tops(v.detach(), p, index, size)
    rests, sums = [], []
    for p_row, top_row in zip(p, top, strict=True):
        a = _terms(v, p_row, top_row, index, eps)
        term, is_top = a.exp(), a == 0
        # The sum is at least 1: what exceeds 1 is kept, lest small terms get lost.
        rest = _add(term - is_top.to(v.dtype), index, size)
        rest = rest + (_add(is_top.to(v.dtype), index, size) - 1)
        rests.append(rest.masked_fill(top_row == 0, 0.0))
        sums.append(_add(term * a, index, size) if moments else top_row)
    return top, torch.stack(rests), torch.stack(sums)


def _tops(v: Tensor, p: Tensor, index: Tensor, size: int) -> Tensor:
    """Largest entry where p > 0, smallest where p < 0; 0 in empty segments."""
    spread = index.unsqueeze(1).expand_as(v)
    empty = v.new_zeros([size, v.size(1)])
    high, low = (
        empty.scatter_reduce(0, spread, v, how, include_self=False)
        for how in ("amax", "amin")
    )
    return torch.where(p.unsqueeze(1) > 0, high, low)


def _terms(v: Tensor, p: Tensor, top: Tensor, index: Tensor, eps: float) -> Tensor:
    """Logarithms of the terms, relative to that of the extreme entry."""
    log_top = top.masked_fill(top == 0, 1.0).log()
    if eps > 0:
        return p * (v.log() - log_top.index_select(0, index))
    is_zero = v == 0
    log_v = v.masked_fill(is_zero, 1.0).log()
    a = p * (log_v - log_top.index_select(0, index))
    # Above 0 only beside a zero entry that makes the whole norm 0.
    return a.masked_fill(is_zero, FLOOR).clamp(FLOOR, 0.0)


def native_rows(
    x: Tensor, p: Tensor, index: Tensor, top: Tensor, shift: Tensor, grad: Tensor,
    eps: float, part: str,
) -> Tensor:  # fmt: skip
    """Gradient with respect to the rows."""
    v = _magnitude(x, part) + eps
    log_v = v.masked_fill(v == 0, 1.0).log()
    out = torch.zeros_like(x)
    log_tops = top.masked_fill(top == 0, 1.0).log()
    for p_row, log_top, k, g in zip(p, log_tops, shift, grad, strict=True):
        power = (p_row - 1) * (log_v - log_top.index_select(0, index))
        power = (power + k.index_select(0, index)).clamp(max=log_max(x))
        out = out + g.index_select(0, index) * power.exp()
    return out * _slope(x, part)


def _magnitude(x: Tensor, part: str) -> Tensor:
    if part == "abs":
        return x.abs()
    return x.relu() if part == "pos" else (-x).relu()


def _slope(x: Tensor, part: str) -> Tensor:
    """Derivative of the magnitude; 0 at 0."""
    sign = x.sign()
    if part == "abs":
        return sign
    return sign.clamp(min=0) if part == "pos" else sign.clamp(max=0)


def _add(x: Tensor, index: Tensor, size: int) -> Tensor:
    out = x.new_zeros([size, x.size(1)])
    return out.scatter_add(0, index.unsqueeze(1).expand_as(x), x)


def log_max(x: Tensor) -> float:
    """Where an exponential is cut to stay finite."""
    return math.log(torch.finfo(x.dtype).max) - 1
