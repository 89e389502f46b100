"""What a pair of norms takes per segment and parameter, for float32.

``top``, ``rest`` and ``moment`` hold extreme entries, the sums of all other terms
relative to them, and their moments, ``[2, size, width]`` each.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from pyg_pool.kernels.entry_numba import entry
from pyg_pool.kernels.exponential_numba import (
    LOWEST,  # noqa: F401
    exp,
    log,
    magnitude,
)
from pyg_pool.kernels.lanes_numba import (
    LANES,
    add_up,
    below,
    equal,
    is_number,
    like,
    load,
    pick,
    store,
)
from pyg_pool.kernels.pnorm_numba import (
    NEAR,
    exponent,
    log_one_more,
    scale_of,
    smaller,
)
from pyg_pool.kernels.softmax_numba import zeros


@entry("n f x x")
def exponents_of(channels: int, low: float, raw: Any, p: Any) -> int:
    """Exponents above 0, then those below: ``±(softplus(raw) + low)``."""
    for e in range(2 * channels):
        value = float(raw[e])
        size = value if value > 20.0 else math.log1p(math.exp(value))
        p[e] = (1.0 if e < channels else -1.0) * (size + low)
    return 0


@entry("n x x")
def raw_slopes_of(channels: int, raw: Any, grad: Any) -> int:
    """Turns the gradients of the exponents into those of their raw form."""
    for e in range(2 * channels):
        slope = 1.0 / (1.0 + math.exp(-min(max(float(raw[e]), -700.0), 700.0)))
        grad[e] *= (1.0 if e < channels else -1.0) * slope
    return 0


@entry("n n n x x x")
def mix(width: int, size: int, channels: int, weight: Any, norms: Any, out: Any) -> int:
    """Sum of the norms, each times its weight."""
    for b in range(size):
        for c in range(0, width, LANES):
            at, left = b * width + c, width - c
            first = exponent(weight, 0, channels, c, left) * load(norms, at, left)
            second = exponent(weight, 1, channels, c, left)
            second = second * load(norms, size * width + at, left)
            store(out, at, first + second, left)
    return 0


@entry("n n n x x x x x")
def unmix(
    width: int, size: int, channels: int, weight: Any, norms: Any, grad: Any, out: Any,
    grad_weight: Any,
) -> int:  # fmt: skip
    """Gradients of the norms and of their weights."""
    for r in range(2):
        if channels == 1:
            grad_weight[r] = 0.0
        for c in range(0, width, LANES):
            left = width - c
            factor = exponent(weight, r, channels, c, left)
            total = short = zeros(factor)
            for b in range(size):
                at = b * width + c
                up = load(grad, at, left)
                store(out, r * size * width + at, up * factor, left)
                short = short + up * load(norms, r * size * width + at, left)
                if b % 32 == 31 or b == size - 1:  # long sums of short ones
                    total, short = total + short, zeros(short)
            if channels == 1:
                grad_weight[r] += add_up(total)
            else:
                store(grad_weight, r * channels + c, total, left)
    return 0


@njit(inline="always")
def _log_top(top: Any) -> Any:
    """Logarithm of the extreme entry, 0 where that is 0 or not there yet."""
    return pick(below(zeros(top), top), log(top), zeros(top))


@entry("n n n x x i x x x")
def norms_of(
    width: int, size: int, channels: int, p: Any, q: Any, count: Any, top: Any,
    rest: Any, out: Any,
) -> int:  # fmt: skip
    """Norms from the sums, which are cleaned where a segment is empty or holds NaN."""
    for r in range(2):
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
                power = exponent(p, r, channels, c, left)
                by_count = exponent(q, r, channels, c, left)
                scale, room = scale_of(
                    high, log_one_more(more), power, by_count, log_count
                )
                scale = smaller(scale, room)
                near = high * exp(scale)
                far = pick(is_zero, zeros(high), exp(_log_top(high) + scale))
                is_near = below(magnitude(scale), like(scale, NEAR))
                store(out, at, pick(is_near, near, far), left)
    return 0


@njit(inline="always")
def _put(place: Any, r: int, channels: int, c: int, left: int, value: Any) -> None:
    """Writes the gradient of a parameter, or adds to that of a shared one."""
    if channels == 1:
        place[r] = add_up(value) + (place[r] if c > 0 else 0.0)
    else:
        store(place, r * channels + c, value, left)


@entry("n n n x x i x x x x x x x x x x")
def slopes_of(
    width: int, size: int, channels: int, p: Any, q: Any, count: Any, top: Any,
    rest: Any, moment: Any, out: Any, grad: Any, kept: Any, log_top: Any, shift: Any,
    grad_p: Any, grad_q: Any,
) -> int:  # fmt: skip
    """Gradients of the exponents, and what those of the rows need.

    ``kept`` is the gradient with 0 where nothing moves the norm.
    """
    for r in range(2):
        for c in range(0, width, LANES):
            left = width - c
            power = exponent(p, r, channels, c, left)
            by_count = exponent(q, r, channels, c, left)
            for_p = for_q = short_p = short_q = zeros(power)
            for b in range(size):
                at = (r * size + b) * width + c
                log_count = math.log(max(1, count[b]))
                high, more = load(top, at, left), load(rest, at, left)
                log_sum = log_one_more(more)
                scale, room = scale_of(high, log_sum, power, by_count, log_count)
                up, zero = load(grad, at, left), zeros(power)
                up = pick(below(room, scale), zero, up)
                up = pick(equal(high, zero), zero, up)
                store(kept, at, up, left)
                store(log_top, at, _log_top(high), left)
                store(shift, at, smaller(scale, room) - log_sum, left)
                per_log = up * load(out, at, left)
                mean = load(moment, at, left) / (more + like(more, 1.0))
                short_p = short_p + per_log * (mean - log_sum)
                short_q = short_q - per_log * like(zero, log_count)
                if b % 32 == 31 or b == size - 1:  # long sums of short ones
                    for_p, for_q = for_p + short_p, for_q + short_q
                    short_p = short_q = zero
            _put(grad_p, r, channels, c, left, for_p / (power * power))
            _put(grad_q, r, channels, c, left, for_q)
    return 0
