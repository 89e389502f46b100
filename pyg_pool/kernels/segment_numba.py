"""Numba twin of ``segment.py``: serial loops over rows, in any order of the segments.

Neighbouring rows of one segment are taken together, at most ``RUN`` of them so that
they stay in the cache: results are held in registers meanwhile, and a long sum is one
of short ones. Forward kernels take a span of channels and backward kernels a span of
rows, so that several threads can share a call without touching the same number and
the result does not depend on how many they are. Matrices are ``[n, width]`` rows and
``[size, width]`` segments, all contiguous.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pyg_pool.kernels.entry_numba import entry
from pyg_pool.kernels.exponential_numba import exp, exp_down, magnitude
from pyg_pool.kernels.lanes_numba import (
    LANES,
    below,
    beyond,
    both,
    equal,
    is_number,
    like,
    load,
    pick,
    splat,
    store,
)

RUN = 64


@njit(inline="always")
def run_end(index: Any, i: int, stop: int) -> int:
    """The end of the rows from ``i`` on that belong together."""
    b, last, j = index[i], min(stop, i + RUN), i + 1
    while j < last and index[j] == b:
        j += 1
    return j


@entry("n n i")
def is_outside(n: int, size: int, index: Any) -> int:
    """1 if some row belongs to no segment."""
    low, high = 0, -1
    for i in range(n):
        low, high = min(low, index[i]), max(high, index[i])
    return 1 if low < 0 or high >= size else 0


@entry("n n i i")
def counts(n: int, size: int, index: Any, out: Any) -> int:
    """Number of rows of each segment."""
    for b in range(size):
        out[b] = 0
    for i in range(n):
        out[index[i]] += 1
    return 0


@entry("n n n n n x i n i x")
def sums(
    start: int, stop: int, n: int, width: int, size: int, x: Any, index: Any,
    is_mean: int, count: Any, out: Any,
) -> int:  # fmt: skip
    """Sums of rows, or means where the number of rows is given."""
    for b in range(size):
        for c in range(start, stop, LANES):
            zero = load(x, 0, 0)
            store(out, b * width + c, zero, stop - c)
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        for c in range(start, stop, LANES):
            total = load(x, i * width + c, stop - c)
            for k in range(i + 1, j):
                total = total + load(x, k * width + c, stop - c)
            at = b * width + c
            store(out, at, load(out, at, stop - c) + total, stop - c)
        i = j
    if is_mean:
        for b in range(size):
            for c in range(start, stop, LANES):
                total = load(out, b * width + c, stop - c)
                number = like(total, float(max(1, count[b])))
                store(out, b * width + c, total / number, stop - c)
    return 0


@entry("n n n x i n i x")
def spread(
    start: int, stop: int, width: int, grad: Any, index: Any, is_mean: int,
    count: Any, out: Any,
) -> int:  # fmt: skip
    """Gives each row the gradient of its segment, or its share of it."""
    i = start
    while i < stop:
        b, j = index[i], run_end(index, i, stop)
        for c in range(0, width, LANES):
            value = load(grad, b * width + c, width - c)
            if is_mean:
                value = value / like(value, float(count[b]))
            for k in range(i, j):
                store(out, k * width + c, value, width - c)
        i = j
    return 0


@entry("n n n n n f x i x j")
def extremes(
    start: int, stop: int, n: int, width: int, size: int, sign: float, x: Any,
    index: Any, best: Any, arg: Any,
) -> int:  # fmt: skip
    """Largest (sign 1) or smallest (-1) entries and the lowest row with each.

    An empty segment has 0 and row ``n``; the first NaN of a segment stays.
    """
    for b in range(size):
        for c in range(start, stop, LANES):
            store(best, b * width + c, load(x, 0, 0), stop - c)
            store(arg, b * width + c, splat(np.int32(n)), stop - c)
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        is_new = arg[b * width + start] == n
        for c in range(start, stop, LANES):
            at, left = b * width + c, stop - c
            top = load(x, i * width + c, left)
            signs = like(top, sign)
            top, row, first = top * signs, splat(np.int32(i)), i + 1
            if not is_new:
                top, row, first = load(best, at, left) * signs, load(arg, at, left), i
            for k in range(first, j):
                new = load(x, k * width + c, left) * signs
                takes = both(beyond(new, top), is_number(top))
                top = pick(takes, new, top)
                row = pick(takes, splat(np.int32(k)), row)
            store(best, at, top * signs, left)
            store(arg, at, row, left)
        i = j
    return 0


@entry("n n n n n x j n x")
def send_back(
    start: int, stop: int, n: int, width: int, size: int, grad: Any, arg: Any,
    is_zero: int, out: Any,
) -> int:  # fmt: skip
    """Writes gradients to the rows that were picked, and 0 to the others."""
    if not is_zero:
        for k in range(start * width, stop * width):
            out[k] = 0
    for b in range(size):
        for f in range(width):
            row = arg[b * width + f]
            if start <= row < stop:
                out[row * width + f] = grad[b * width + f]
    return 0


@njit(inline="always")
def shift_of(top: Any) -> Any:
    """What to take off before the exponential: the largest entry, if finite."""
    is_finite = below(magnitude(top), like(top, np.inf))
    return pick(is_finite, top, zeros(top))


@njit(inline="always")
def zeros(other: Any) -> Any:
    """Zeros like other lanes."""
    return like(other, 0.0)


@njit(inline="always")
def top_of(x: Any, i: int, j: int, width: int, c: int, left: int, top: Any) -> Any:
    """The larger of a start and the entries of some rows; NaN is passed over."""
    for k in range(i, j):
        new = load(x, k * width + c, left)
        top = pick(below(top, new), new, top)
    return top


@entry("n n n n n x i x x")
def powers(
    start: int, stop: int, n: int, width: int, size: int, x: Any, index: Any,
    top: Any, total: Any,
) -> int:  # fmt: skip
    """Largest entries, -inf where there are none, and sums of exponentials.

    One pass: where a run raises the largest entry, the sum is scaled down.
    """
    for b in range(size):
        for c in range(start, stop, LANES):
            zero = load(x, 0, 0)
            store(top, b * width + c, like(zero, -np.inf), stop - c)
            store(total, b * width + c, zero, stop - c)
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        for c in range(start, stop, LANES):
            at, left = b * width + c, stop - c
            old = load(top, at, left)
            new = top_of(x, i, j, width, c, left, old)
            shift = shift_of(new)
            kept = exp(shift_of(old) - shift)
            added = zeros(new)
            for k in range(i, j):
                added = added + exp_down(load(x, k * width + c, left) - shift)
            store(top, at, new, left)
            store(total, at, load(total, at, left) * kept + added, left)
        i = j
    return 0


@njit(inline="always")
def not_zero(total: Any) -> Any:
    """Sums with 1 for 0."""
    return pick(equal(total, zeros(total)), like(total, 1.0), total)


@entry("n n n x i x x n x x")
def weights(
    start: int, stop: int, width: int, x: Any, index: Any, top: Any, total: Any,
    is_scaled: int, grad: Any, out: Any,
) -> int:  # fmt: skip
    """Exponentials over their sums, times a gradient of the segment if asked for."""
    i = start
    while i < stop:
        b, j = index[i], run_end(index, i, stop)
        for c in range(0, width, LANES):
            at, left = b * width + c, width - c
            shift = shift_of(load(top, at, left))
            factor = like(shift, 1.0)
            if is_scaled:
                factor = load(grad, at, left)
            factor = factor / not_zero(load(total, at, left))
            for k in range(i, j):
                value = exp_down(load(x, k * width + c, left) - shift)
                store(out, k * width + c, value * factor, left)
        i = j
    return 0


@entry("n n n n n x x i x")
def products(
    start: int, stop: int, n: int, width: int, size: int, x: Any, y: Any, index: Any,
    total: Any,
) -> int:  # fmt: skip
    """Sums of products of entries."""
    for b in range(size):
        for c in range(start, stop, LANES):
            store(total, b * width + c, load(x, 0, 0), stop - c)
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        for c in range(start, stop, LANES):
            at, left = b * width + c, stop - c
            added = load(x, i * width + c, left) * load(y, i * width + c, left)
            for k in range(i + 1, j):
                here = k * width + c
                added = added + load(x, here, left) * load(y, here, left)
            store(total, at, load(total, at, left) + added, left)
        i = j
    return 0


@entry("n n n x x i x x")
def slopes(
    start: int, stop: int, width: int, weight: Any, grad: Any, index: Any, inner: Any,
    out: Any,
) -> int:  # fmt: skip
    """Gradient of a softmax; ``inner`` is the weighted sum of ``grad``."""
    for i in range(start, stop):
        b = index[i]
        for c in range(0, width, LANES):
            at, left = i * width + c, width - c
            moved = load(grad, at, left) - load(inner, b * width + c, left)
            store(out, at, load(weight, at, left) * moved, left)
    return 0
