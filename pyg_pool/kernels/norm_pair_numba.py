"""Numba twin of ``norm_pair.py`` for float32: both norms in one pass over the rows.

Results of the two norms stand one after the other, ``[2, size, width]``; what is done
per segment is in ``norm_pair_parts_numba.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pyg_pool.kernels.entry_numba import entry
from pyg_pool.kernels.exponential_numba import (
    LOWEST,  # noqa: F401
    exp,
    exp_down,
    log,
)
from pyg_pool.kernels.lanes_numba import (
    LANES,
    below,
    equal,
    like,
    load,
    pick,
    store,
)
from pyg_pool.kernels.pnorm_numba import exponent, factor_of, smaller
from pyg_pool.kernels.segment_numba import run_end
from pyg_pool.kernels.softmax_numba import zeros

# Logarithms of 0 and of the term of a 0; finite, so that 0 times it is 0.
NO_LOG, FLOOR = -1e30, -1e4


@entry("n n i i i")
def tally(n: int, size: int, index: Any, count: Any, first: Any) -> int:
    """Rows of each segment and the first of them; 1 if some row belongs to none."""
    for b in range(size):
        count[b] = 0
    for i in range(n):
        b = index[i]
        if b < 0 or b >= size:
            return 1
        if count[b] == 0:
            first[b] = i
        count[b] += 1
    return 0


@njit(inline="always")
def _log_top(top: Any) -> Any:
    """Logarithm of the extreme entry, 0 where that is 0 or not there yet."""
    return pick(below(zeros(top), top), log(top), zeros(top))


@njit(inline="always")
def _floored(a: Any) -> Any:
    """What is at most 0 and no less than the floor."""
    a = pick(below(zeros(a), a), zeros(a), a)
    return pick(below(a, like(a, FLOOR)), like(a, FLOOR), a)


@njit(inline="always")
def _more(a: Any, rest: Any, moment: Any, ties: Any) -> Any:
    """Adds a term: to the ties where it is the extreme entry, else to the rest."""
    is_top = equal(a, zeros(a))
    a = _floored(a)
    term = exp_down(a)
    rest = rest + pick(is_top, zeros(a), term)
    ties = ties + pick(is_top, like(a, 1.0), zeros(a))
    return rest, moment + term * a, ties


@njit(inline="always")
def _fold(
    at: int, left: int, is_first: bool, p: Any, new: Any, log_new: Any, found: Any,
    top: Any, rest: Any, moment: Any,
) -> None:  # fmt: skip
    """Adds the sums of a run to those of its segment, relative to the new extreme."""
    more, moved, ties = found
    one = like(p, 1.0)
    if is_first:
        store(top, at, new, left)
        store(rest, at, more + (ties - one), left)
        store(moment, at, moved, left)
        return
    old = load(top, at, left)
    is_none = below(old, zeros(p))
    down = _floored(p * (_log_top(old) - log_new))
    kept = pick(is_none, zeros(p), exp(down))
    before, earlier = load(rest, at, left), load(moment, at, left)
    is_same = equal(old, new)
    full = (one + before) * kept
    scaled = kept * earlier + down * full
    before = pick(is_same, before + ties, full + ties - one)
    store(top, at, new, left)
    store(rest, at, before + more, left)
    store(moment, at, pick(is_same, earlier, scaled) + moved, left)


@entry("n n n n n n n f x x i i x x x x")
def sums(
    start: int, stop: int, n: int, width: int, size: int, channels: int, part: int,
    eps: float, x: Any, p: Any, index: Any, first: Any, logs: Any, top: Any,
    rest: Any, moment: Any,
) -> int:  # fmt: skip
    """Extreme entries, the sums of all other terms relative to them, and moments."""
    for b in range(2 * size):
        for c in range(start, stop, LANES):
            zero = load(x, 0, 0)
            store(top, b * width + c, like(zero, -1.0), stop - c)
            store(rest, b * width + c, zero, stop - c)
            store(moment, b * width + c, zero, stop - c)
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        is_first = first[b] == i
        for c in range(start, stop, LANES):
            left, zero = stop - c, load(x, 0, 0)
            high, low = like(zero, -1.0), like(zero, np.inf)
            for k in range(i, j):
                value = load(x, k * width + c, left)
                v = value * factor_of(value, part) + like(value, eps)
                high = pick(below(high, v), v, high)
                low = pick(below(v, low), v, low)
                log_v = pick(equal(v, zero), like(v, NO_LOG), log(v))
                store(logs, (k - i) * width + c, log_v, left)
            up, down = b * width + c, (size + b) * width + c
            if not is_first:
                old = load(top, up, left)
                high = pick(below(old, high), high, old)
                old = load(top, down, left)
                low = pick(below(old, zero), low, smaller(low, old))
            p_up = exponent(p, 0, channels, c, left)
            p_down = exponent(p, 1, channels, c, left)
            log_high, log_low = _log_top(high), _log_top(low)
            rest_up = moment_up = ties_up = rest_down = moment_down = ties_down = zero
            for k in range(j - i):
                log_v = load(logs, k * width + c, left)
                rest_up, moment_up, ties_up = _more(
                    p_up * (log_v - log_high), rest_up, moment_up, ties_up
                )
                rest_down, moment_down, ties_down = _more(
                    p_down * (log_v - log_low), rest_down, moment_down, ties_down
                )
            _fold(
                up, left, is_first, p_up, high, log_high,
                (rest_up, moment_up, ties_up), top, rest, moment,
            )  # fmt: skip
            _fold(
                down, left, is_first, p_down, low, log_low,
                (rest_down, moment_down, ties_down), top, rest, moment,
            )  # fmt: skip
        i = j
    return 0


@njit(inline="always")
def _slope(log_v: Any, power: Any, high: Any, move: Any, up: Any) -> Any:
    """Part of one norm in the gradient of a magnitude."""
    return exp(power * (log_v - high) + move) * up


@entry("n n n n n n f x x i x x x x")
def rows(
    start: int, stop: int, width: int, size: int, channels: int, part: int, eps: float,
    x: Any, p: Any, index: Any, log_top: Any, shift: Any, grad: Any, out: Any,
) -> int:  # fmt: skip
    """Writes the gradients of rows ``start`` to ``stop``."""
    i = start
    while i < stop:
        b, j = index[i], run_end(index, i, stop)
        for c in range(0, width, LANES):
            left, up, down = width - c, b * width + c, (size + b) * width + c
            grad_up, grad_down = load(grad, up, left), load(grad, down, left)
            high, low = load(log_top, up, left), load(log_top, down, left)
            move_up, move_down = load(shift, up, left), load(shift, down, left)
            one, zero = like(high, 1.0), zeros(high)
            p_up = exponent(p, 0, channels, c, left) - one
            p_down = exponent(p, 1, channels, c, left) - one
            for k in range(i, j):
                value = load(x, k * width + c, left)
                factor = factor_of(value, part)
                log_v = log(value * factor + like(value, eps))
                slope = _slope(log_v, p_up, high, move_up, grad_up)
                slope = slope + _slope(log_v, p_down, low, move_down, grad_down)
                slope = pick(equal(value, zero), zero, slope * factor)
                store(out, k * width + c, slope, left)
        i = j
    return 0
