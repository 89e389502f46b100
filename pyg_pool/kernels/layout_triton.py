"""Rows of a segment brought together and cut into parts of bounded length.

A long segment is reduced by many programs, part by part, and their results by one more:
no number is added by atomics, so a result never depends on the order of the programs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["Layout", "blocks", "kind_of", "lay_out", "ordered", "wide"]

PART = 512


@dataclass(frozen=True)
class Layout:
    """Where the rows of each part, and the parts of each segment, begin and end.

    ``order`` is ``None`` where the rows already stand segment by segment.
    """

    order: Tensor | None
    start: Tensor
    stop: Tensor
    part_ptr: Tensor


def lay_out(index: Tensor, size: int) -> Layout:
    """Cuts segments into parts; looks once whether the rows are sorted."""
    order = None
    if not bool((index[1:] >= index[:-1]).all()):
        index, order = torch.sort(index, stable=True)
    ids = torch.arange(size + 1, device=index.device)
    ptr = torch.searchsorted(index, ids)
    count = (ptr[1:] - ptr[:-1] + PART - 1) // PART
    part_ptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
    # An upper bound of their number: the true one would have to be read.
    parts = torch.arange(index.numel() // PART + size, device=index.device)
    owner = torch.searchsorted(part_ptr, parts, right=True) - 1
    is_real = owner < size
    owner = owner.clamp(max=max(0, size - 1))
    if size == 0:
        none = parts.new_zeros(0)
        return Layout(order, none, none, part_ptr)
    start = ptr[owner] + (parts - part_ptr[owner]) * PART
    stop = torch.minimum(start + PART, ptr[owner + 1])
    start = torch.where(is_real, start, 0)
    stop = torch.where(is_real, stop, 0)
    return Layout(order, start, stop, part_ptr)


def blocks(width: int) -> tuple[int, int]:
    """Rows and columns of a tile."""
    columns = min(128, triton.next_power_of_2(max(1, width)))
    return max(4, 2048 // columns), columns


def wide(x: Tensor) -> torch.dtype:
    """The type that sums are held in."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def kind_of(x: Tensor) -> Any:
    """The same, as Triton calls it."""
    return tl.float64 if x.dtype == torch.float64 else tl.float32


def ordered(layout: Layout) -> tuple[Tensor, bool]:
    """The order of the rows as a kernel takes it, and whether there is none."""
    if layout.order is None:
        return layout.start, True
    return layout.order, False
