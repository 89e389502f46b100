"""The pairs of entries that contribute to a product of two sparse matrices.

An entry of the left factor meets every entry of the right one whose row is its
column. Pairs are listed block by block of rows, so that memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_pool.kernels.segment import segment_count

# Pairs of entries listed at once (about 60 bytes each).
BLOCK_PAIRS = 2**20


@dataclass(frozen=True)
class Problem:
    """The factors' patterns and what is asked of the result."""

    index_a: Tensor
    index_b: Tensor
    shape: tuple[int, int, int]
    drop_diagonal: bool
    max_entries: int | None


@dataclass(frozen=True)
class Rows:
    """Both factors sorted by row, with the number of pairs of each left entry."""

    order_a: Tensor
    order_b: Tensor
    start_b: Tensor
    pairs: Tensor


def sorted_rows(problem: Problem) -> Rows:
    """Sorts both factors by row."""
    order_a = torch.sort(problem.index_a[0], stable=True).indices
    order_b = torch.sort(problem.index_b[0], stable=True).indices
    count = segment_count(problem.index_b[0], problem.shape[1])
    start = count.cumsum(0) - count
    middle = problem.index_a[1].index_select(0, order_a)
    return Rows(
        order_a, order_b, start.index_select(0, middle), count.index_select(0, middle)
    )


def pairs_of(
    problem: Problem, rows: Rows, block: slice
) -> tuple[Tensor, Tensor, Tensor]:
    """Left entry, right entry and key of each contributing pair in a block."""
    pairs = rows.pairs[block]
    left = torch.repeat_interleave(rows.order_a[block], pairs)
    shift = rows.start_b[block] - (pairs.cumsum(0) - pairs)
    right = torch.arange(left.numel(), device=left.device)
    right = right + torch.repeat_interleave(shift, pairs)
    right = rows.order_b.index_select(0, right)
    row = problem.index_a[0].index_select(0, left)
    col = problem.index_b[1].index_select(0, right)
    if problem.drop_diagonal:
        keep = (row != col).nonzero().view(-1)
        left, right = left.index_select(0, keep), right.index_select(0, keep)
        row, col = row.index_select(0, keep), col.index_select(0, keep)
    return left, right, row * problem.shape[2] + col


def blocks(problem: Problem, rows: Rows) -> Iterator[slice]:
    """Blocks of left entries that end with a row and list few pairs."""
    if rows.pairs.numel() == 0:
        return
    row = problem.index_a[0].index_select(0, rows.order_a)
    last = torch.cat([row[1:] != row[:-1], row.new_ones(1, dtype=torch.bool)])
    ends = last.nonzero().view(-1)
    upto = rows.pairs.cumsum(0).index_select(0, ends)
    begin, done = 0, 0
    while begin < rows.pairs.numel():
        at = int(torch.searchsorted(upto, done + BLOCK_PAIRS, right=True))
        if at == 0 or int(ends[at - 1]) < begin:
            at += 1  # a single row with more pairs than a block
        end = int(ends[at - 1]) + 1
        yield slice(begin, end)
        begin, done = end, int(upto[at - 1])


def merge(key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Distinct keys in order, and the sum of the values of each."""
    key, order = torch.sort(key)
    new = torch.ones_like(key, dtype=torch.bool)
    new[1:] = key[1:] != key[:-1]
    slot = new.long().cumsum(0) - 1
    key = key.index_select(0, new.nonzero().view(-1))
    total = value.new_zeros(key.numel())
    return key, total.scatter_add(0, slot, value.index_select(0, order))


def unpack(key: Tensor, num_cols: int) -> Tensor:
    """Rows and columns of keys ``row * num_cols + column``, ``[2, M]``."""
    row = torch.div(key, max(num_cols, 1), rounding_mode="floor")
    return torch.stack([row, key - row * num_cols])
