"""Numba twin of ``pnorm.py`` for float32: one pass over the rows in each direction.

``[R, size, width]`` results stand one exponent after the other; ``exponents`` says how
many numbers a row of p and q has, 1 or ``width``. Logarithms of the rows that belong
together stay in a small matrix of ``RUN`` rows while the exponents take their turns.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from pyg_pool.kernels.entry_numba import entry
from pyg_pool.kernels.exponential_numba import (
    LOWEST,  # noqa: F401
    exp,
    exp_down,
    log,
    magnitude,
)
from pyg_pool.kernels.exponential_numba import exponential as _exp  # noqa: F401
from pyg_pool.kernels.lanes_numba import (
    LANES,
    below,
    equal,
    is_number,
    like,
    load,
    pick,
    splat,
    store,
)
from pyg_pool.kernels.segment_numba import RUN, UNMET, ahead, run_end  # noqa: F401
from pyg_pool.kernels.softmax_numba import zeros

# Logarithms of 0 and of the term of a 0; finite, so that 0 times it is 0.
NO_LOG, FLOOR = -1e30, -1e4
# Logarithm of the largest float32, less 1.
HIGHEST = 87.72283172607422
# Within e^+-40 a plain product is more exact than the way through logarithms.
NEAR = 40.0


@njit(inline="always")
def factor_of(value: Any, part: int) -> Any:
    """What makes a number its magnitude in a part (0: all, 1: above, 2: below 0)."""
    up = like(value, 0.0 if part == 2 else 1.0)
    down = like(value, 0.0 if part == 1 else -1.0)
    return pick(below(value, zeros(value)), down, up)


@njit(inline="always")
def exponent(p: Any, r: int, exponents: int, c: int, left: int) -> Any:
    """An exponent for neighbouring channels."""
    return splat(p[r]) if exponents == 1 else load(p, r * exponents + c, left)


@njit(inline="always")
def _log_of(v: Any) -> Any:
    """Logarithm of a magnitude."""
    return pick(equal(v, zeros(v)), like(v, NO_LOG), log(v))


@njit(inline="always")
def _log_top(top: Any) -> Any:
    """Logarithm of the extreme entry, 0 where that is 0 or not there yet."""
    return pick(below(zeros(top), top), log(top), zeros(top))


@njit(inline="always")
def smaller(a: Any, b: Any) -> Any:
    """The smaller; NaN where the first is NaN."""
    return pick(below(b, a), b, a)


@njit(inline="always")
def _terms(
    logs: Any, first: int, rows: int, width: int, c: int, left: int, p: Any,
    log_top: Any,
) -> Any:  # fmt: skip
    """Sum of the terms but ties with the extreme entry, moments, and number of ties."""
    rest = moment = ties = zeros(p)
    for k in range(rows):
        a = p * (load(logs, first + k * width + c, left) - log_top)
        is_top = equal(a, zeros(a))
        a = pick(below(a, like(a, FLOOR)), like(a, FLOOR), smaller(a, zeros(a)))
        term = exp_down(a)
        rest = rest + pick(is_top, zeros(a), term)
        ties = ties + pick(is_top, like(a, 1.0), zeros(a))
        moment = moment + term * a
    return rest, moment, ties


@njit(inline="always")
def _logs(
    x: Any, i: int, j: int, width: int, c: int, left: int, part: int, eps: float,
    kept: Any, scratch: int,
) -> Any:  # fmt: skip
    """Stores logarithms of magnitudes; the largest and the smallest magnitude."""
    zero = load(x, 0, 0)
    high, low = like(zero, -1.0), like(zero, np.inf)
    for k in range(i, j):
        value = load(x, k * width + c, left)
        v = value * factor_of(value, part) + like(value, eps)
        high = pick(below(high, v), v, high)
        low = pick(below(v, low), v, low)
        store(kept, scratch + (k - i) * width + c, _log_of(v), left)
    return high, low


@njit(inline="always")
def _merge(
    kept: Any, at: int, block: int, left: int, power: Any, high: Any, low: Any,
    scratch: int, rows: int, width: int, c: int,
) -> None:  # fmt: skip
    """Adds the terms of a run; what came before is scaled down where it rises."""
    old, zero = load(kept, at, left), load(kept, at, 0)
    most = pick(below(old, high), high, old)
    new = pick(below(zero, power), most, smaller(low, old))
    log_new, log_old = _log_top(new), _log_top(old)
    more, moved, ties = _terms(kept, scratch, rows, width, c, left, power, log_new)
    # What came before, relative to the new extreme entry.
    one, down = like(zero, 1.0), power * (log_old - log_new)
    down = pick(below(down, like(zero, FLOOR)), like(zero, FLOOR), down)
    share = exp(smaller(down, zero))
    before, earlier = load(kept, at + block, left), load(kept, at + 2 * block, left)
    is_same = equal(old, new)
    full = (one + before) * share
    scaled = share * earlier + smaller(down, zero) * full
    before = pick(is_same, before + ties, full + ties - one)
    store(kept, at, new, left)
    store(kept, at + block, before + more, left)
    store(kept, at + 2 * block, pick(is_same, earlier, scaled) + moved, left)


@njit(inline="always")
def _begin(
    kept: Any, at: int, block: int, left: int, power: Any, high: Any, low: Any,
    scratch: int, rows: int, width: int, c: int,
) -> None:  # fmt: skip
    """The terms of the first run of a segment."""
    zero = zeros(power)
    new = pick(below(zero, power), high, low)
    log_new = _log_top(new)
    more, moved, ties = _terms(kept, scratch, rows, width, c, left, power, log_new)
    # Of NaN only: anything but the mark of a segment without rows; ``more`` is NaN.
    new = pick(below(new, zero), zero, pick(below(high, zero), zero, new))
    store(kept, at, new, left)
    store(kept, at + block, more + (ties - like(zero, 1.0)), left)
    store(kept, at + 2 * block, moved, left)


@njit(inline="always")
def _sums(
    start: int, stop: int, n: int, width: int, size: int, norms: int, exponents: int,
    part: int, eps: float, x: Any, p: Any, index: Any, kept: Any, is_counted: int,
    count: Any,
) -> int:  # fmt: skip
    """Extreme entries, the sums of all other terms relative to them, and moments."""
    block = norms * size * width
    scratch = 3 * block  # logarithms of a run
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        if b < 0 or b >= size:
            return 1
        if not is_counted:
            count[b] += j - i
        ahead(x, i, j, n, width, start, stop)
        is_new = start < stop and kept[b * width + start] == UNMET
        for c in range(start, stop, LANES):
            left = stop - c
            high, low = _logs(x, i, j, width, c, left, part, eps, kept, scratch)
            for r in range(norms):
                at = (r * size + b) * width + c
                power = exponent(p, r, exponents, c, left)
                if is_new:
                    _begin(
                        kept, at, block, left, power, high, low, scratch, j - i, width,
                        c,
                    )  # fmt: skip
                else:
                    _merge(
                        kept, at, block, left, power, high, low, scratch, j - i, width,
                        c,
                    )  # fmt: skip
        i = j
    return 0


@entry("n n n n n n n n f x x x i x n i x")
def forward(
    start: int, stop: int, n: int, width: int, size: int, norms: int, exponents: int,
    part: int, eps: float, x: Any, p: Any, q: Any, index: Any, kept: Any,
    is_counted: int, count: Any, out: Any,
) -> int:  # fmt: skip
    """Norms; ``kept`` gets extreme entries, sums of the other terms, and moments.

    Behind them it has room for the logarithms of a run.
    """
    block = norms * size * width
    for b in range(norms * size):
        for c in range(start, stop, LANES):
            zero = load(x, 0, 0)
            at, left = b * width + c, stop - c
            store(kept, at, like(zero, UNMET), left)
            store(kept, block + at, zero, left)
            store(kept, 2 * block + at, zero, left)
    if not is_counted:
        for b in range(size):
            count[b] = 0
    if _sums(
        start, stop, n, width, size, norms, exponents, part, eps, x, p, index, kept,
        is_counted, count,
    ):  # fmt: skip
        return 1
    _norms(start, stop, width, size, norms, exponents, p, q, count, kept, out)
    return 0


@njit(inline="always")
def log_one_more(rest: Any) -> Any:
    """log(1 + rest), exact for a small rest."""
    full = rest + like(rest, 1.0)
    change = full - like(rest, 1.0)
    is_lost = equal(change, zeros(rest))
    return pick(is_lost, rest, log(full) * (rest / pick(is_lost, full, change)))


@njit(inline="always")
def scale_of(top: Any, log_sum: Any, p: Any, q: Any, log_count: float) -> Any:
    """Logarithm of norm / extreme entry and the largest that is finite."""
    return log_sum / p - q * like(q, log_count), like(top, HIGHEST) - _log_top(top)


@njit(inline="always")
def _norms(
    start: int, stop: int, width: int, size: int, norms: int, exponents: int, p: Any,
    q: Any, count: Any, kept: Any, out: Any,
) -> None:  # fmt: skip
    """Norms from the sums, which are cleaned where a segment is empty or holds NaN."""
    block = norms * size * width
    for r in range(norms):
        for b in range(size):
            log_count = math.log(max(1, count[b]))
            for c in range(start, stop, LANES):
                at, left = (r * size + b) * width + c, stop - c
                high, more = load(kept, at, left), load(kept, block + at, left)
                high = pick(below(high, zeros(high)), zeros(high), high)
                high = pick(is_number(more), high, more)
                is_zero = equal(high, zeros(high))
                more = pick(is_zero, zeros(high), more)
                store(kept, at, high, left)
                store(kept, block + at, more, left)
                power = exponent(p, r, exponents, c, left)
                by_count = exponent(q, r, exponents, c, left)
                scale, room = scale_of(
                    high, log_one_more(more), power, by_count, log_count
                )
                scale = smaller(scale, room)
                near = high * exp(scale)
                far = pick(is_zero, zeros(high), exp(_log_top(high) + scale))
                is_near = below(magnitude(scale), like(scale, NEAR))
                store(out, at, pick(is_near, near, far), left)
