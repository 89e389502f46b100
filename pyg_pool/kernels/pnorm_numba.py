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
    add_up,
    below,
    equal,
    is_number,
    like,
    load,
    pick,
    splat,
    store,
)
from pyg_pool.kernels.segment_numba import RUN, run_end  # noqa: F401
from pyg_pool.kernels.softmax_numba import zeros

# Logarithms of 0 and of the term of a 0; finite, so that 0 times it is 0.
NO_LOG, FLOOR = -1e30, -1e4
# Logarithm of the largest float32, less 1.
HIGHEST = 87.72283172607422
# Within e^+-40 a plain product is more exact than the way through logarithms.
NEAR = 40.0


@njit(inline="always")
def _factor(value: Any, part: int) -> Any:
    """What makes a number its magnitude in a part (0: all, 1: above, 2: below 0)."""
    up = like(value, 0.0 if part == 2 else 1.0)
    down = like(value, 0.0 if part == 1 else -1.0)
    return pick(below(value, zeros(value)), down, up)


@njit(inline="always")
def _exponent(p: Any, r: int, exponents: int, c: int, left: int) -> Any:
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
def _smaller(a: Any, b: Any) -> Any:
    """The smaller; NaN where the first is NaN."""
    return pick(below(b, a), b, a)


@njit(inline="always")
def _terms(
    logs: Any, rows: int, width: int, c: int, left: int, p: Any, log_top: Any
) -> Any:
    """Sum of the terms but ties with the extreme entry, moments, and number of ties."""
    rest = moment = ties = zeros(p)
    for k in range(rows):
        a = p * (load(logs, k * width + c, left) - log_top)
        is_top = equal(a, zeros(a))
        a = pick(below(a, like(a, FLOOR)), like(a, FLOOR), _smaller(a, zeros(a)))
        term = exp_down(a)
        rest = rest + pick(is_top, zeros(a), term)
        ties = ties + pick(is_top, like(a, 1.0), zeros(a))
        moment = moment + term * a
    return rest, moment, ties


@entry("n n n n n n n n f x x i x x x x")
def sums(
    start: int, stop: int, n: int, width: int, size: int, norms: int, exponents: int,
    part: int, eps: float, x: Any, p: Any, index: Any, logs: Any, top: Any, rest: Any,
    moment: Any,
) -> int:  # fmt: skip
    """Extreme entries, the sums of all other terms relative to them, and moments.

    Where a run brings a more extreme entry, what was added up is scaled down.
    """
    for b in range(norms * size):
        for c in range(start, stop, LANES):
            zero = load(x, 0, 0)
            store(top, b * width + c, like(zero, -1.0), stop - c)
            store(rest, b * width + c, zero, stop - c)
            store(moment, b * width + c, zero, stop - c)
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        for c in range(start, stop, LANES):
            left = stop - c
            zero = load(x, 0, 0)
            high, low = like(zero, -1.0), like(zero, np.inf)
            for k in range(i, j):
                value = load(x, k * width + c, left)
                v = value * _factor(value, part) + like(value, eps)
                high = pick(below(high, v), v, high)
                low = pick(below(v, low), v, low)
                store(logs, (k - i) * width + c, _log_of(v), left)
            for r in range(norms):
                at = (r * size + b) * width + c
                power, old = _exponent(p, r, exponents, c, left), load(top, at, left)
                is_first = below(old, zero)
                least = pick(is_first, low, _smaller(low, old))
                most = pick(below(old, high), high, old)
                new = pick(below(zero, power), most, least)
                log_new = _log_top(new)
                more, moved, ties = _terms(logs, j - i, width, c, left, power, log_new)
                # What came before, relative to the new extreme entry.
                one, down = like(zero, 1.0), power * (_log_top(old) - log_new)
                down = pick(below(down, like(zero, FLOOR)), like(zero, FLOOR), down)
                kept = pick(is_first, zero, exp(_smaller(down, zero)))
                before, earlier = load(rest, at, left), load(moment, at, left)
                is_same = equal(old, new)
                full = (one + before) * kept
                scaled = kept * earlier + _smaller(down, zero) * full
                before = pick(is_same, before + ties, full + ties - one)
                store(top, at, new, left)
                store(rest, at, before + more, left)
                store(moment, at, pick(is_same, earlier, scaled) + moved, left)
        i = j
    return 0


@njit(inline="always")
def _log_one_more(rest: Any) -> Any:
    """log(1 + rest), exact for a small rest."""
    full = rest + like(rest, 1.0)
    change = full - like(rest, 1.0)
    is_lost = equal(change, zeros(rest))
    return pick(is_lost, rest, log(full) * (rest / pick(is_lost, full, change)))


@njit(inline="always")
def _scale(top: Any, log_sum: Any, p: Any, q: Any, log_count: float) -> Any:
    """Logarithm of norm / extreme entry and the largest that is finite."""
    return log_sum / p - q * like(q, log_count), like(top, HIGHEST) - _log_top(top)


@entry("n n n n x x i x x x")
def norms_of(
    width: int, size: int, norms: int, exponents: int, p: Any, q: Any, count: Any,
    top: Any, rest: Any, out: Any,
) -> int:  # fmt: skip
    """Norms from the sums, which are cleaned where a segment is empty or holds NaN."""
    for r in range(norms):
        for b in range(size):
            log_count = math.log(max(1, count[b]))
            for c in range(0, width, LANES):
                at, left = (r * size + b) * width + c, width - c
                high, more = load(top, at, left), load(rest, at, left)
                high = pick(below(high, zeros(high)), zeros(high), high)
                high = pick(is_number(more), high, more)
                is_zero = equal(high, zeros(high))
                more = pick(is_zero, zeros(high), more)
                store(top, at, high, left)
                store(rest, at, more, left)
                power = _exponent(p, r, exponents, c, left)
                by_count = _exponent(q, r, exponents, c, left)
                scale, room = _scale(
                    high, _log_one_more(more), power, by_count, log_count
                )
                scale = _smaller(scale, room)
                near = high * exp(scale)
                far = pick(is_zero, zeros(high), exp(_log_top(high) + scale))
                is_near = below(magnitude(scale), like(scale, NEAR))
                store(out, at, pick(is_near, near, far), left)
    return 0


@njit(inline="always")
def _add_to(place: Any, r: int, exponents: int, c: int, left: int, value: Any) -> None:
    """Adds to the gradient of an exponent."""
    if exponents == 1:
        place[r] += add_up(value)
    else:
        at = r * exponents + c
        store(place, at, load(place, at, left) + value, left)


@entry("n n n n x x i x x x x x x x x x x")
def slopes_of(
    width: int, size: int, norms: int, exponents: int, p: Any, q: Any, count: Any,
    top: Any, rest: Any, moment: Any, out: Any, grad: Any, kept: Any, log_top: Any,
    shift: Any, grad_p: Any, grad_q: Any,
) -> int:  # fmt: skip
    """Gradients of the exponents, and what those of the rows need.

    ``kept`` is the gradient with 0 where nothing moves the norm.
    """
    for e in range(norms * exponents):
        grad_p[e] = grad_q[e] = 0.0
    for r in range(norms):
        for c in range(0, width, LANES):
            left = width - c
            power = _exponent(p, r, exponents, c, left)
            by_count = _exponent(q, r, exponents, c, left)
            for_p = for_q = short_p = short_q = zeros(power)
            for b in range(size):
                at = (r * size + b) * width + c
                log_count = math.log(max(1, count[b]))
                high, more = load(top, at, left), load(rest, at, left)
                log_sum = _log_one_more(more)
                scale, room = _scale(high, log_sum, power, by_count, log_count)
                up, zero = load(grad, at, left), zeros(power)
                up = pick(below(room, scale), zero, up)
                up = pick(equal(high, zero), zero, up)
                store(kept, at, up, left)
                store(log_top, at, _log_top(high), left)
                store(shift, at, _smaller(scale, room) - log_sum, left)
                per_log = up * load(out, at, left)
                mean = load(moment, at, left) / (more + like(more, 1.0))
                short_p = short_p + per_log * (mean - log_sum)
                short_q = short_q - per_log * like(zero, log_count)
                if b % 32 == 31 or b == size - 1:  # long sums of short ones
                    for_p, for_q = for_p + short_p, for_q + short_q
                    short_p = short_q = zero
            _add_to(grad_p, r, exponents, c, left, for_p / (power * power))
            _add_to(grad_q, r, exponents, c, left, for_q)
    return 0


@entry("n n n n n n n f x x i x x x x")
def rows(
    start: int, stop: int, width: int, size: int, norms: int, exponents: int,
    part: int, eps: float, x: Any, p: Any, index: Any, log_top: Any, shift: Any,
    grad: Any, out: Any,
) -> int:  # fmt: skip
    """Writes the gradients of rows ``start`` to ``stop``."""
    i = start
    while i < stop:
        b, j = index[i], run_end(index, i, stop)
        for c in range(0, width, LANES):
            left = width - c
            for r in range(norms):
                at = (r * size + b) * width + c
                high, move = load(log_top, at, left), load(shift, at, left)
                up = load(grad, at, left)
                power = _exponent(p, r, exponents, c, left) - like(up, 1.0)
                for k in range(i, j):
                    value = load(x, k * width + c, left)
                    factor = _factor(value, part)
                    over = log(value * factor + like(value, eps)) - high
                    slope = exp(power * over + move) * up * factor
                    slope = pick(equal(value, zeros(value)), zeros(value), slope)
                    if r > 0:
                        slope = slope + load(out, k * width + c, left)
                    store(out, k * width + c, slope, left)
        i = j
    return 0
