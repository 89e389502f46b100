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
from pyg_pool.kernels.lanes_numba import (
    LANES,
    beyond,
    both,
    fetch,
    is_number,
    like,
    load,
    pick,
    splat,
    store,
)

RUN = 64
# Rows from one to the one that is asked for meanwhile, and floats of a cache line.
AHEAD, LINE = 32, 16
# Stands where no row of a segment was met yet.
UNMET = -1.0
# Channels that are taken at once where there are so many: memory is then read in order.
WIDE = 4 * LANES


@njit(inline="always")
def run_end(index: Any, i: int, stop: int) -> int:
    """The end of the rows from ``i`` on that belong together."""
    b, last, j = index[i], min(stop, i + RUN), i + 1
    while j < last and index[j] == b:
        j += 1
    return j


@njit(inline="always")
def ahead(x: Any, i: int, j: int, n: int, width: int, start: int, stop: int) -> None:
    """Asks for as many rows as a run has, some way behind it."""
    for k in range(min(n, i + AHEAD), min(n, j + AHEAD)):
        for c in range(start, stop, LINE):
            fetch(x, k * width + c)


@njit(inline="always")
def aside(x: Any, i: int, j: int, n: int, width: int, start: int, stop: int) -> None:
    """Asks ahead unless whole rows are taken at once: a processor foresees these."""
    if stop - start != WIDE:
        ahead(x, i, j, n, width, start, stop)


@njit(inline="always")
def four(x: Any, at: int) -> Any:
    """``WIDE`` neighbouring numbers."""
    return (
        load(x, at, LANES), load(x, at + LANES, LANES),
        load(x, at + 2 * LANES, LANES), load(x, at + 3 * LANES, LANES),
    )  # fmt: skip


@njit(inline="always")
def put(out: Any, at: int, lanes: Any) -> None:
    """Writes ``WIDE`` neighbouring numbers."""
    store(out, at, lanes[0], LANES)
    store(out, at + LANES, lanes[1], LANES)
    store(out, at + 2 * LANES, lanes[2], LANES)
    store(out, at + 3 * LANES, lanes[3], LANES)


@njit(inline="always")
def plus(a: Any, b: Any) -> Any:
    """Sums of ``WIDE`` neighbouring numbers."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]


@entry("n n i i")
def counts(n: int, size: int, index: Any, out: Any) -> int:
    """Number of rows of each segment; 1 if some row belongs to none."""
    for b in range(size):
        out[b] = 0
    for i in range(n):
        b = index[i]
        if b < 0 or b >= size:
            return 1
        out[b] += 1
    return 0


@entry("n n n n n x i n i x")
def sums(
    start: int, stop: int, n: int, width: int, size: int, x: Any, index: Any,
    is_mean: int, count: Any, out: Any,
) -> int:  # fmt: skip
    """Sums of rows, or means where the number of rows is given."""
    for e in range(size):
        for c in range(start, stop, LANES):
            zero = load(x, 0, 0)
            store(out, e * width + c, zero, stop - c)
    i = 0
    while i < n:
        b, j, c = index[i], run_end(index, i, n), start
        if b < 0 or b >= size:
            return 1
        aside(x, i, j, n, width, start, stop)
        while c + WIDE <= stop:
            totals = four(x, i * width + c)
            for k in range(i + 1, j):
                totals = plus(totals, four(x, k * width + c))
            put(out, b * width + c, plus(four(out, b * width + c), totals))
            c += WIDE
        while c < stop:
            total = load(x, i * width + c, stop - c)
            for k in range(i + 1, j):
                total = total + load(x, k * width + c, stop - c)
            at = b * width + c
            store(out, at, load(out, at, stop - c) + total, stop - c)
            c += LANES
        i = j
    if is_mean:
        for e in range(size):
            for c in range(start, stop, LANES):
                total = load(out, e * width + c, stop - c)
                number = like(total, float(max(1, count[e])))
                store(out, e * width + c, total / number, stop - c)
    return 0


@entry("n n n x i n i x")
def spread(
    start: int, stop: int, width: int, grad: Any, index: Any, is_mean: int,
    count: Any, out: Any,
) -> int:  # fmt: skip
    """Gives each row the gradient of its segment, or its share of it."""
    i = start
    while i < stop:
        b, j, c = index[i], run_end(index, i, stop), 0
        number = float(count[b]) if is_mean else 1.0
        while c + WIDE <= width:
            g0, g1, g2, g3 = four(grad, b * width + c)
            if is_mean:
                n = like(g0, number)
                g0, g1, g2, g3 = g0 / n, g1 / n, g2 / n, g3 / n
            for k in range(i, j):
                put(out, k * width + c, (g0, g1, g2, g3))
            c += WIDE
        while c < width:
            value = load(grad, b * width + c, width - c)
            if is_mean:
                value = value / like(value, number)
            for k in range(i, j):
                store(out, k * width + c, value, width - c)
            c += LANES
        i = j
    return 0


@njit(inline="always")
def _better(top: Any, row: Any, new: Any, k: int) -> Any:
    """The larger entry and its row; NaN once met stays."""
    takes = both(beyond(new, top), is_number(top))
    return pick(takes, new, top), pick(takes, splat(np.int32(k)), row)


@njit(inline="always")
def _wide_extremes(
    x: Any, i: int, j: int, width: int, c: int, b: int, sign: float, is_new: Any,
    best: Any, arg: Any,
) -> None:  # fmt: skip
    """What ``extremes`` does with some rows, for ``WIDE`` channels."""
    at, first = b * width + c, i
    v0, v1, v2, v3 = four(x, i * width + c)
    s = like(v0, sign)
    r0 = r1 = r2 = r3 = splat(np.int32(i))
    if is_new:
        first = i + 1
    else:
        v0, v1, v2, v3 = four(best, at)
        r0, r1, r2, r3 = four(arg, at)
    v0, v1, v2, v3 = v0 * s, v1 * s, v2 * s, v3 * s
    for k in range(first, j):
        n0, n1, n2, n3 = four(x, k * width + c)
        v0, r0 = _better(v0, r0, n0 * s, k)
        v1, r1 = _better(v1, r1, n1 * s, k)
        v2, r2 = _better(v2, r2, n2 * s, k)
        v3, r3 = _better(v3, r3, n3 * s, k)
    put(best, at, (v0 * s, v1 * s, v2 * s, v3 * s))
    put(arg, at, (r0, r1, r2, r3))


@entry("n n n n n f x i x j")
def extremes(
    start: int, stop: int, n: int, width: int, size: int, sign: float, x: Any,
    index: Any, best: Any, arg: Any,
) -> int:  # fmt: skip
    """Largest (sign 1) or smallest (-1) entries and the lowest row with each.

    An empty segment has 0 and row ``n``; the first NaN of a segment stays.
    """
    for e in range(size):
        for c in range(start, stop, LANES):
            store(best, e * width + c, load(x, 0, 0), stop - c)
            store(arg, e * width + c, splat(np.int32(n)), stop - c)
    i = 0
    while i < n:
        b, j, c = index[i], run_end(index, i, n), start
        if b < 0 or b >= size:
            return 1
        aside(x, i, j, n, width, start, stop)
        is_new = start < stop and arg[b * width + start] == n
        while c + WIDE <= stop:
            _wide_extremes(x, i, j, width, c, b, sign, is_new, best, arg)
            c += WIDE
        while c < stop:
            at, left = b * width + c, stop - c
            top = load(x, i * width + c, left)
            signs = like(top, sign)
            top, row, first = top * signs, splat(np.int32(i)), i + 1
            if not is_new:
                top, row, first = load(best, at, left) * signs, load(arg, at, left), i
            for k in range(first, j):
                top, row = _better(top, row, load(x, k * width + c, left) * signs, k)
            store(best, at, top * signs, left)
            store(arg, at, row, left)
            c += LANES
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
