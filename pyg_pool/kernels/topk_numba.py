"""Numba twin of ``topk.py``: one radix sort of all rows by score, then by graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyg_pool.kernels.topk import num_kept

Array = NDArray[Any]

DIGIT = 11
_num_kept: Callable[..., int] = njit(nogil=True, cache=True)(num_kept)


@njit(nogil=True, cache=True)
def descending_keys(score: Array, bits: Array, wide: bool) -> Array:
    """Unsigned keys that ascend where the score descends; NaN has the largest."""
    key = np.empty(score.size, np.uint64)
    top = np.uint64(0x8000000000000000) if wide else np.uint64(0x80000000)
    full = np.uint64(0xFFFFFFFFFFFFFFFF) if wide else np.uint64(0xFFFFFFFF)
    for i in range(score.size):
        value = np.uint64(0) if score[i] == 0 else np.uint64(bits[i]) & full
        if score[i] != score[i]:
            key[i] = full
        elif value & top:  # negative: larger bits are smaller numbers
            key[i] = value
        else:
            key[i] = full ^ (value | top)
    return key


@njit(nogil=True, cache=True)
def radix_order(key: Array, passes: int) -> Array:
    """Stable ascending order of unsigned keys."""
    size = key.size
    buckets = 1 << DIGIT
    order, other = np.arange(size), np.empty(size, np.int64)
    count = np.empty(buckets + 1, np.int64)
    for p in range(passes):
        shift = np.uint64(p * DIGIT)
        count[:] = 0
        for i in range(size):
            count[((key[i] >> shift) & np.uint64(buckets - 1)) + np.uint64(1)] += 1
        if count.max() == size:
            continue
        for b in range(buckets):
            count[b + 1] += count[b]
        for i in range(size):
            b = (key[order[i]] >> shift) & np.uint64(buckets - 1)
            other[count[b]] = order[i]
            count[b] += 1
        order, other = other, order
    return order


@njit(nogil=True, cache=True)
def first_of_each(
    order: Array,
    batch: Array,
    num_graphs: int,
    share: float,
    count: int,
    up: bool,
    min_nodes: int,
) -> Array:
    """The first rows of each graph in an order of all rows."""
    sizes = np.zeros(num_graphs, np.int64)
    for i in range(batch.size):
        sizes[batch[i]] += 1
    keep = np.empty(num_graphs, np.int64)
    slot = np.zeros(num_graphs, np.int64)
    total = 0
    for g in range(num_graphs):
        keep[g] = _num_kept(sizes[g], share, count, up, min_nodes)
        slot[g] = total
        total += keep[g]
    out = np.empty(total, np.int64)
    for i in range(order.size):
        row = order[i]
        g = batch[row]
        if keep[g] > 0:
            keep[g] -= 1
            out[slot[g]] = row
            slot[g] += 1
    return out


def ranked(score: Array) -> Array:
    """Row ids by descending score, ties by row, NaN last."""
    wide = score.dtype == np.float64
    bits = score.view(np.int64 if wide else np.int32)
    order: Array = radix_order(descending_keys(score, bits, wide), 6 if wide else 3)
    return order
