"""Numba twin of ``topk.py``: one radix sort of all rows by score, then by graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyg_pool.kernels.entry_numba import entry
from pyg_pool.kernels.topk import num_kept

Array = NDArray[Any]

DIGIT = 11
# Counters that :func:`best` needs: one per value of each of three digits.
COUNTERS = 3 << DIGIT
_num_kept: Callable[..., int] = njit(nogil=True, cache=True)(num_kept)


@njit(nogil=True, cache=True)
def descending_keys(score: Array, bits: Array) -> Array:
    """Unsigned keys that ascend where the score descends; NaN has the largest."""
    key = np.empty(score.size, np.uint64)
    top, full = np.uint64(0x8000000000000000), np.uint64(0xFFFFFFFFFFFFFFFF)
    for i in range(score.size):
        value = np.uint64(0) if score[i] == 0 else np.uint64(bits[i])
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
    """Row ids by descending score in float64, ties by row, NaN last."""
    order: Array = radix_order(descending_keys(score, score.view(np.int64)), 6)
    return order


@njit(nogil=True, cache=True)
def keeps_of(
    n: int, graphs: int, share: float, count: int, up: int, min_nodes: int,
    batch: Any, keep: Any,
) -> int:  # fmt: skip
    """Writes how many rows each graph keeps; the sum, or -1 for a wrong graph."""
    for g in range(graphs):
        keep[g] = 0
    for i in range(n):
        if batch[i] < 0 or batch[i] >= graphs:
            return -1
        keep[batch[i]] += 1
    total = 0
    for g in range(graphs):
        keep[g] = _num_kept(keep[g], share, count, up == 1, min_nodes)
        total += keep[g]
    return total


@njit(nogil=True, cache=True)
def _key(bits: int) -> int:
    """A key below 2^32 that ascends where a float32 descends; NaN has the largest."""
    plain = bits & 0x7FFFFFFF
    if plain > 0x7F800000:
        return 0xFFFFFFFF
    # Negative numbers come after 0, of either sign.
    return 0x7FFFFFFF + plain if bits < 0 else 0x7FFFFFFF - plain


@njit(nogil=True, cache=True)
def _candidates(n: int, total: int, score: Any, count: Any, out: Any) -> int:
    """Key and row of those that may be among the first; how many they are."""
    for b in range(1 << DIGIT):
        count[b] = 0
    for i in range(n):
        count[_key(score[i]) >> 21] += 1
    last, seen = -1, 0
    while seen < total:
        last += 1
        seen += count[last]
    size = 0
    for i in range(n):
        key = _key(score[i])
        out[size] = (key << 32) | i
        size += (key >> 21) <= last  # no branch: hard to predict
    return size


@njit(nogil=True, cache=True)
def _sort(size: int, count: Any, first: Any, second: Any) -> Any:
    """Sorts rows behind their keys; returns the buffer where the result lies."""
    mask = (1 << DIGIT) - 1
    for b in range(COUNTERS):
        count[b] = 0
    for i in range(size):
        key = (first[i] >> 32) & 0xFFFFFFFF
        count[key & mask] += 1
        count[(1 << DIGIT) + ((key >> DIGIT) & mask)] += 1
        count[(2 << DIGIT) + (key >> 2 * DIGIT)] += 1
    for digit in range(3):
        base, shift, total = digit << DIGIT, 32 + digit * DIGIT, 0
        for b in range(base, base + (1 << DIGIT)):
            here = count[b]
            count[b] = total
            total += here
        top = mask if digit < 2 else mask >> 1
        for i in range(size):
            b = base + ((first[i] >> shift) & top)
            second[count[b]] = first[i]
            count[b] += 1
        first, second = second, first
    return first


@njit(nogil=True, cache=True)
def best_of(
    n: int, graphs: int, total: int, score: Any, batch: Any, keep: Any, count: Any,
    first: Any, second: Any,
) -> Any:  # fmt: skip
    """The first rows of each graph, from bits of float32; where they lie.

    ``keep`` is used up; it has room for as many numbers again.
    """
    if graphs == 1:
        size = _candidates(n, total, score, count, first)
        order = _sort(size, count, first, second)
        for k in range(total):
            order[k] &= 0x7FFFFFFF
        return order
    for i in range(n):
        first[i] = (_key(score[i]) << 32) | i
    order = _sort(n, count, first, second)  # three passes: ends in the second
    slot = 0
    for g in range(graphs):
        keep[graphs + g] = slot
        slot += keep[g]
    for i in range(n):
        row = order[i] & 0x7FFFFFFF
        g = batch[row]
        if keep[g] > 0:
            keep[g] -= 1
            first[keep[graphs + g]] = row
            keep[graphs + g] += 1
    return first


@entry("n n f n n n i i")
def keeps(
    n: int, graphs: int, share: float, count: int, up: int, min_nodes: int,
    batch: Any, keep: Any,
) -> int:  # fmt: skip
    """See :func:`keeps_of`."""
    return keeps_of(n, graphs, share, count, up, min_nodes, batch, keep)


@entry("n n n j i i i i i i")
def best(
    n: int, graphs: int, total: int, score: Any, batch: Any, keep: Any, count: Any,
    first: Any, second: Any, out: Any,
) -> int:  # fmt: skip
    """See :func:`best_of`."""
    found = best_of(n, graphs, total, score, batch, keep, count, first, second)
    for k in range(total):
        out[k] = found[k]
    return 0
