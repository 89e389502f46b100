"""Reductions of rows into segments in torch's operations: the reference of all twins.

They run on every device, are what ``torch.compile`` traces, and have derivatives of
every order.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = [
    "accumulator", "native_extreme", "native_logsumexp", "native_reduce",
    "native_softmax", "segment_count",
]  # fmt: skip


def native_reduce(x: Tensor, index: Tensor, size: int, reduce: str) -> Tensor:
    """A reduction in torch's operations."""
    if reduce == "sum":
        return _sum(x, index, size)
    if reduce in ("max", "min"):
        return native_extreme(x, index, size, reduce)[0]
    if reduce == "prod":
        ones = x.new_ones([size, *x.shape[1:]])
        return ones.scatter_reduce(0, _spread(index, x), x, "prod")
    return native_logsumexp(x, index, size)


def native_softmax(wide: Tensor, index: Tensor, dim_size: int) -> Tensor:
    """A softmax in torch's operations."""
    top = native_extreme(wide.detach(), index, dim_size, "max")[0]
    # A segment of -inf only: subtracting its maximum would give NaN.
    top = top.masked_fill(top == -torch.inf, 0.0)
    power = (wide - top.index_select(0, index)).exp()
    total = _sum(power, index, dim_size)
    total = total.masked_fill(total == 0, 1.0)
    return power / total.index_select(0, index)


def segment_count(index: Tensor, dim_size: int) -> Tensor:
    """Number of rows of each segment, ``[B]`` int64."""
    ones = torch.ones_like(index)
    return index.new_zeros(dim_size).scatter_add_(0, index, ones)


def accumulator(x: Tensor) -> Tensor:
    """The rows in the type that sums are held in."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _spread(index: Tensor, x: Tensor) -> Tensor:
    """The index with one entry per element of ``x``, without copying."""
    return index.view([-1] + [1] * (x.dim() - 1)).expand_as(x)


def _sum(x: Tensor, index: Tensor, dim_size: int) -> Tensor:
    out = x.new_zeros([dim_size, *x.shape[1:]])
    return out.scatter_add(0, _spread(index, x), x)


def native_extreme(
    x: Tensor, index: Tensor, dim_size: int, reduce: str, *, with_rows: bool = False
) -> tuple[Tensor, Tensor]:
    """Maximum or minimum, differentiable in the lowest row that attains it; the row.

    Without gradient or wish for the row, the second tensor is the first.
    """
    spread = _spread(index, x)
    plain = x.detach()
    best = plain.new_zeros([dim_size, *x.shape[1:]]).scatter_reduce(
        0, spread, plain, f"a{reduce}", include_self=False
    )
    if not with_rows and not (x.requires_grad and torch.is_grad_enabled()):
        return best, best
    hit = (plain == best.index_select(0, index)) | plain.isnan()
    rows = torch.arange(x.size(0), dtype=torch.int32, device=x.device)
    rows = rows.view([-1] + [1] * (x.dim() - 1)).expand_as(x)
    rows = rows.masked_fill(~hit, x.size(0))
    first = rows.new_full(best.shape, x.size(0)).scatter_reduce(0, spread, rows, "amin")
    filled = torch.cat([x, x.new_zeros([1, *x.shape[1:]])])
    return filled.gather(0, first.long()), first


def native_logsumexp(x: Tensor, index: Tensor, dim_size: int) -> Tensor:
    """Logarithm of the sum of exponentials; 0 for an empty segment."""
    top = native_extreme(x.detach(), index, dim_size, "max")[0]
    top = top.masked_fill(top.abs() == torch.inf, 0.0)
    total = _sum((x - top.index_select(0, index)).exp(), index, dim_size)
    empty = (segment_count(index, dim_size) == 0).view([-1] + [1] * (x.dim() - 1))
    # An empty segment is 0, the log(1) + 0 of a constant.
    return total.masked_fill(empty, 1.0).log() + top
