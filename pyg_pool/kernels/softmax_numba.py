"""Numba twin of the softmax in ``segment.py``; form and threads as its reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pyg_pool.kernels.entry_numba import entry
from pyg_pool.kernels.exponential_numba import exp, exp_down, magnitude
from pyg_pool.kernels.lanes_numba import (
    LANES,
    add_up,
    below,
    equal,
    like,
    load,
    pick,
    splat,
    store,
)
from pyg_pool.kernels.segment_numba import ahead, run_end


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
        if b < 0 or b >= size:
            return 1
        ahead(x, i, j, n, width, start, stop)
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
        ahead(x, i, j, stop, width, 0, width)
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


@entry("n n x i x x x")
def column(
    n: int, size: int, scores: Any, index: Any, top: Any, total: Any, out: Any
) -> int:
    """Softmax of a single column: lanes hold neighbouring rows."""
    for b in range(size):
        top[b], total[b] = -np.inf, 0.0
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        if b < 0 or b >= size:
            return 1
        high = top[b]
        for k in range(i, j):
            high = max(high, scores[k])
        top[b] = high
        i = j
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        shift = shift_of(splat(top[b]))
        added = zeros(shift)
        for k in range(i, j, LANES):
            store(out, k, exp_down(load(scores, k, j - k) - shift), j - k)
            added = added + load(out, k, j - k)  # 0 in the lanes that are not there
        total[b] += add_up(added)
        i = j
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        divisor = not_zero(splat(total[b]))
        for k in range(i, j, LANES):
            store(out, k, load(out, k, j - k) / divisor, j - k)
        i = j
    return 0
