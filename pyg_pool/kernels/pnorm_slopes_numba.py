"""Way back of ``pnorm_numba.py``: gradients of exponents and rows in closed form."""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from pyg_pool.kernels.entry_numba import entry
from pyg_pool.kernels.exponential_numba import exp, log
from pyg_pool.kernels.lanes_numba import (
    LANES,
    add_up,
    below,
    equal,
    like,
    load,
    pick,
    store,
)
from pyg_pool.kernels.pnorm_numba import (
    exponent,
    factor_of,
    log_one_more,
    scale_of,
    smaller,
)
from pyg_pool.kernels.segment_numba import ahead, run_end
from pyg_pool.kernels.softmax_numba import zeros


@njit(inline="always")
def _add_to(place: Any, r: int, exponents: int, c: int, left: int, value: Any) -> None:
    """Adds to the gradient of an exponent."""
    if exponents == 1:
        place[r] += add_up(value)
    else:
        at = r * exponents + c
        store(place, at, load(place, at, left) + value, left)


@njit(inline="always")
def _slopes(
    width: int, size: int, norms: int, exponents: int, p: Any, q: Any, count: Any,
    kept: Any, out: Any, grad: Any, spare: Any, grad_p: Any, grad_q: Any,
) -> None:  # fmt: skip
    """Gradients of the exponents, and in ``spare`` what those of the rows need.

    These are the gradient with 0 where nothing moves the norm, the logarithm of the
    extreme entry, and how far the norm is from it.
    """
    block = norms * size * width
    for e in range(norms * exponents):
        grad_p[e] = grad_q[e] = 0.0
    for r in range(norms):
        for c in range(0, width, LANES):
            left = width - c
            power = exponent(p, r, exponents, c, left)
            by_count = exponent(q, r, exponents, c, left)
            for_p = for_q = short_p = short_q = zeros(power)
            for b in range(size):
                at = (r * size + b) * width + c
                log_count = math.log(max(1, count[b]))
                high, more = load(kept, at, left), load(kept, block + at, left)
                log_sum = log_one_more(more)
                scale, room = scale_of(high, log_sum, power, by_count, log_count)
                up, zero = load(grad, at, left), zeros(power)
                up = pick(below(room, scale), zero, up)
                up = pick(equal(high, zero), zero, up)
                store(spare, at, up, left)
                log_top = pick(below(zero, high), log(high), zero)
                store(spare, block + at, log_top, left)
                move = smaller(scale, room) - log_sum
                store(spare, 2 * block + at, move, left)
                per_log = up * load(out, at, left)
                moment = load(kept, 2 * block + at, left)
                mean = moment / (more + like(more, 1.0))
                short_p = short_p + per_log * (mean - log_sum)
                short_q = short_q - per_log * like(zero, log_count)
                if b % 32 == 31 or b == size - 1:  # long sums of short ones
                    for_p, for_q = for_p + short_p, for_q + short_q
                    short_p = short_q = zero
            _add_to(grad_p, r, exponents, c, left, for_p / (power * power))
            _add_to(grad_q, r, exponents, c, left, for_q)


@njit(inline="always")
def _rows(
    x: Any, i: int, j: int, width: int, c: int, left: int, part: int, eps: float,
    power: Any, high: Any, move: Any, up: Any, is_more: Any, out: Any,
) -> None:  # fmt: skip
    """Gradients of some rows through one norm, added to others if asked for."""
    for k in range(i, j):
        value = load(x, k * width + c, left)
        factor = factor_of(value, part)
        over = log(value * factor + like(value, eps)) - high
        slope = exp(power * over + move) * up * factor
        slope = pick(equal(value, zeros(value)), zeros(value), slope)
        if is_more:
            slope = slope + load(out, k * width + c, left)
        store(out, k * width + c, slope, left)


@entry("n n n n n n n n f x x x i i x x x x x x x")
def backward(
    start: int, stop: int, is_first: int, width: int, size: int, norms: int,
    exponents: int, part: int, eps: float, x: Any, p: Any, q: Any, index: Any,
    count: Any, kept: Any, forward: Any, grad: Any, spare: Any, grad_p: Any,
    grad_q: Any, out: Any,
) -> int:  # fmt: skip
    """Gradients of rows ``start`` to ``stop``; the first call has to do all others."""
    if is_first:
        _slopes(
            width, size, norms, exponents, p, q, count, kept, forward, grad, spare,
            grad_p, grad_q,
        )  # fmt: skip
    block, i = norms * size * width, start
    while i < stop:
        b, j = index[i], run_end(index, i, stop)
        ahead(x, i, j, stop, width, 0, width)
        for c in range(0, width, LANES):
            left = width - c
            for r in range(norms):
                at = (r * size + b) * width + c
                up, high = load(spare, at, left), load(spare, block + at, left)
                move = load(spare, 2 * block + at, left)
                power = exponent(p, r, exponents, c, left) - like(up, 1.0)
                _rows(
                    x, i, j, width, c, left, part, eps, power, high, move, up, r > 0,
                    out,
                )  # fmt: skip
        i = j
    return 0
