"""Numba twin of ``segment.py``: serial loops over rows, in any order of the segments.

Forward kernels take a span of channels and backward kernels a span of rows, so that
several threads can share a call without touching the same number and the result does
not depend on how many they are. Loops over the channels do little each, lest the
compiler fail to turn them into vector instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyg_pool.kernels.pnorm_numba import ENTRIES, LOOSE, LOWEST, ONE, ZERO, _exp

Array = NDArray[Any]


@njit(nogil=True, cache=True)
def in_range(index: Array, size: int) -> bool:
    """Whether every entry is a segment."""
    low, high = np.int64(0), np.int64(-1)
    for i in range(index.size):
        low = min(low, index[i])
        high = max(high, index[i])
    return bool(low >= 0 and high < size)


@njit(nogil=True, cache=True)
def counts(index: Array, out: Array) -> None:
    """Adds the number of rows of each segment to zeros."""
    for i in range(index.size):
        out[index[i]] += 1


@njit(nogil=True, cache=True)
def add(x: Array, index: Array, start: int, stop: int, out: Array) -> None:
    """Adds rows to those of their segments."""
    for i in range(index.size):
        b = index[i]
        for f in range(np.uint64(start), np.uint64(stop)):
            out[b, f] += x[i, f]


@njit(nogil=True, cache=True, fastmath={"nsz"})
def extremes(
    x: Array, index: Array, sign: Any, start: int, stop: int, best: Array, arg: Array
) -> None:
    """Largest (sign 1) or smallest (-1) entries and the lowest row with each.

    ``arg`` starts as the number of rows, which stands for none; the first NaN of a
    segment stays.
    """
    none = np.int32(index.size)
    for i in range(index.size):
        b, row = index[i], np.int32(i)
        for f in range(np.uint64(start), np.uint64(stop)):
            new, old = x[i, f], best[b, f]
            is_beyond = (not new * sign <= old * sign) & (old == old)
            takes = is_beyond | (arg[b, f] == none)
            best[b, f] = new if takes else old
            arg[b, f] = row if takes else arg[b, f]


@njit(nogil=True, cache=True)
def send_back(grad: Array, arg: Array, start: int, stop: int, out: Array) -> None:
    """Writes gradients to the rows that were picked, in a zero matrix."""
    for b in range(arg.shape[0]):
        for f in range(np.uint64(start), np.uint64(stop)):
            if arg[b, f] < out.shape[0]:
                out[arg[b, f], f] = grad[b, f]


@njit(nogil=True, cache=True, fastmath={"nsz"})
def tops(x: Array, index: Array, start: int, stop: int, best: Array) -> None:
    """Raises ``best``, which starts as -inf, to the largest entry, or to NaN."""
    for i in range(index.size):
        b = index[i]
        for f in range(np.uint64(start), np.uint64(stop)):
            new, old = x[i, f], best[b, f]
            takes = (not new <= old) & (old == old)
            best[b, f] = new if takes else old


@njit(nogil=True, cache=True, fastmath=LOOSE)
def powers(a: Array) -> None:
    """Replaces numbers by their exponentials; 0 below the smallest."""
    for k in range(a.size):
        value = a[k]
        a[k] = ZERO if value < LOWEST else _exp(value)


@njit(nogil=True, cache=True, fastmath=LOOSE)
def lower(
    x: Array, index: Array, shift: Array, first: int, start: int, out: Array
) -> None:
    """Rows from ``first`` on, less the shift of their segment."""
    at = np.uint64(start)
    for i in range(out.shape[0]):
        b, row = index[first + i], np.uint64(first + i)
        for f in range(out.shape[1]):
            c = at + np.uint64(f)
            out[i, f] = x[row, c] - shift[b, c]


@njit(nogil=True, cache=True)
def add_block(
    a: Array, index: Array, first: int, rows: int, start: int, total: Array
) -> None:
    """Adds the rows of a block to those of their segments."""
    at = np.uint64(start)
    for i in range(rows):
        b = index[first + i]
        for f in range(a.shape[1]):
            total[b, at + np.uint64(f)] += a[i, f]


@njit(nogil=True, cache=True)
def add_powers(
    x: Array, index: Array, shift: Array, start: int, stop: int, total: Array
) -> None:
    """Adds exponentials of rows less the shift of their segment."""
    block = max(1, ENTRIES // max(1, stop - start))
    a = np.empty((block, stop - start), x.dtype)
    for first in range(0, index.size, block):
        rows = min(block, index.size - first)
        lower(x, index, shift, first, start, a[:rows])
        powers(a[:rows].reshape(-1))
        add_block(a, index, first, rows, start, total)


@njit(nogil=True, cache=True, fastmath=LOOSE)
def scale_block(out: Array, index: Array, first: int, rows: int, factor: Array) -> None:
    """Multiplies rows by the factors of their segments."""
    for i in range(np.uint64(first), np.uint64(first + rows)):
        b = index[i]
        for f in range(out.shape[1]):
            out[i, f] *= factor[b, f]


@njit(nogil=True, cache=True)
def scaled_powers(
    x: Array, index: Array, shift: Array, factor: Array, start: int, stop: int,
    out: Array,
) -> None:  # fmt: skip
    """Writes exponentials of rows less their shift, times a factor; spans of rows."""
    block = max(1, ENTRIES // max(1, x.shape[1]))
    for first in range(start, stop, block):
        rows = min(block, stop - first)
        lower(x, index, shift, first, 0, out[first : first + rows])
        powers(out[first : first + rows].reshape(-1))
        scale_block(out, index, first, rows, factor)


@njit(nogil=True, cache=True, fastmath=LOOSE)
def add_products(
    x: Array, y: Array, index: Array, start: int, stop: int, total: Array
) -> None:
    """Adds products of entries to the rows of their segments."""
    for i in range(index.size):
        b = index[i]
        for f in range(np.uint64(start), np.uint64(stop)):
            total[b, f] += x[i, f] * y[i, f]


@njit(nogil=True, cache=True, fastmath=LOOSE)
def softmax_slope(
    weight: Array, grad: Array, index: Array, inner: Array, start: int, stop: int,
    out: Array,
) -> None:  # fmt: skip
    """Gradient of a softmax; ``inner`` is the weighted sum of ``grad``."""
    for i in range(np.uint64(start), np.uint64(stop)):
        b = index[i]
        for f in range(weight.shape[1]):
            out[i, f] = weight[i, f] * (grad[i, f] - inner[b, f])


@njit(nogil=True, cache=True)
def shifts(best: Array, shift: Array) -> None:
    """What to take off before the exponential: the largest entry, if finite."""
    for b in range(best.shape[0]):
        for f in range(best.shape[1]):
            is_finite = abs(best[b, f]) < np.inf or best[b, f] != best[b, f]
            shift[b, f] = best[b, f] if is_finite else ZERO


@njit(nogil=True, cache=True)
def inverses(total: Array, out: Array) -> None:
    """1 / total, 1 where that is 0."""
    for b in range(total.shape[0]):
        for f in range(total.shape[1]):
            out[b, f] = ONE if total[b, f] == ZERO else ONE / total[b, f]
