"""Numba twin of ``pnorm.py`` for float32: two passes over the rows, without copies.

Forward kernels take a span of channels and backward kernels a span of rows.

Logarithm and exponential are polynomials on the bits of a number, which the compiler
turns into vector instructions. Each loop over the channels writes to few arrays, lest
the compiler give up on that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Array = NDArray[Any]

# Products and sums may be fused; reordering would spoil the polynomials.
LOOSE = {"contract", "nsz"}

ZERO, HALF, ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
SQRT_HALF = np.float32(0.70710678)
# ln 2 in two parts: the first times a small whole number is exact.
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
LOG2_E = np.float32(1.44269504)
LOWEST = np.float32(-87.0)
HIGHEST = np.float32(87.72)  # logarithm of the largest float32, less 1
ROUND = np.float32(128.5)
# Numbers below the smallest normal one are lifted by 2^24 first.
SMALLEST, LIFT, LIFT_POWER = np.float32(2**-126), np.float32(2**24), np.float32(24)
FLOOR = np.float32(-1e4)  # logarithm of the term of a 0
# Rows are taken in blocks of about this many entries, which stay in the cache.
ENTRIES = 2048


def _bits_rule(context: Any, value: Any) -> Any:
    """The bits of a float32 as int32."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.int32))

    return types.int32(types.float32), build


def _float_rule(context: Any, value: Any) -> Any:
    """The float32 with the bits of an int32."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float32))

    return types.float32(types.int32), build


_bits: Any = intrinsic(_bits_rule)
_float: Any = intrinsic(_float_rule)


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _log(v: Any) -> Any:
    """Logarithm of a positive number; NaN of NaN and infinity, about -105 of 0."""
    is_small = v < SMALLEST
    v = v * LIFT if is_small else v
    bits = _bits(v)
    power = np.float32(np.int32(bits >> 23) - np.int32(126))
    m = _float(np.int32(np.int32(bits & 0x7FFFFF) | np.int32(0x3F000000)))
    is_low = m < SQRT_HALF
    power = power - ONE if is_low else power
    power = power - LIFT_POWER if is_small else power
    m = m + m - ONE if is_low else m - ONE
    square = m * m
    y = np.float32(7.0376836292e-2)
    y = y * m - np.float32(1.1514610310e-1)
    y = y * m + np.float32(1.1676998740e-1)
    y = y * m - np.float32(1.2420140846e-1)
    y = y * m + np.float32(1.4249322787e-1)
    y = y * m - np.float32(1.6668057665e-1)
    y = y * m + np.float32(2.0000714765e-1)
    y = y * m - np.float32(2.4999993993e-1)
    y = y * m + np.float32(3.3333331174e-1)
    y = y * m * square + LN2_LOW * power - HALF * square
    return m + y + LN2_HIGH * power + (v - v)


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _exp(a: Any) -> Any:
    """Exponential, cut at both ends of the normal numbers."""
    a = LOWEST if a < LOWEST else a
    a = HIGHEST if a > HIGHEST else a
    power = np.int32(np.int32(a * LOG2_E + ROUND) - np.int32(128))
    whole = np.float32(power)
    r = a - whole * LN2_HIGH
    r = r - whole * LN2_LOW
    y = np.float32(1.9875691500e-4)
    y = y * r + np.float32(1.3981999507e-3)
    y = y * r + np.float32(8.3334519073e-3)
    y = y * r + np.float32(4.1665795894e-2)
    y = y * r + np.float32(1.6666665459e-1)
    y = y * r + np.float32(5.0000001201e-1)
    y = y * r * r + r + ONE
    return y * _float(np.int32(np.int32(power + np.int32(127)) << 23))


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _magnitudes(
    x: Array, first: int, start: int, eps: Any, part: int, v: Array
) -> None:
    """Magnitudes of a part (0: all, 1: positive, 2: negative) and ``eps``."""
    at, low = np.uint64(start), np.uint64(first)
    up = ZERO if part == 2 else ONE
    down = ZERO if part == 1 else -ONE
    for i in range(v.shape[0]):
        for f in range(v.shape[1]):
            value = x[low + np.uint64(i), at + np.uint64(f)]
            v[i, f] = value * (down if value < ZERO else up) + eps


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _logs(v: Array, out: Array) -> None:
    for k in range(v.size):
        out[k] = _log(v[k])


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _raise_tops(
    v: Array, p: Array, index: Array, first: int, start: int, r: int, top: Array
) -> None:
    """Keeps the larger, where p < 0 the smaller; -1 stands for nothing yet."""
    at = np.uint64(start)
    for i in range(v.shape[0]):
        b = index[first + i]
        for f in range(v.shape[1]):
            c = at + np.uint64(f)
            old, new = top[r, b, c], v[i, f]
            is_beyond = (new - old) * p[r, c] > ZERO
            top[r, b, c] = new if is_beyond or old < ZERO else old


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _terms(
    v: Array, log_v: Array, p: Array, index: Array, first: int, start: int, r: int,
    top: Array, log_top: Array, out: Array,
) -> None:  # fmt: skip
    """Logarithms of the terms, relative to the extreme entry."""
    at = np.uint64(start)
    for i in range(v.shape[0]):
        b = index[first + i]
        for f in range(v.shape[1]):
            c = at + np.uint64(f)
            a = p[r, c] * (log_v[i, f] - log_top[r, b, c])
            a = FLOOR if v[i, f] == ZERO else a
            out[i, f] = ZERO if v[i, f] == top[r, b, c] else a


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _add_terms(
    a: Array, index: Array, first: int, start: int, rows: int, r: int, rest: Array,
    moment: Array, ties: Array,
) -> None:  # fmt: skip
    at = np.uint64(start)
    for i in range(rows):
        b = index[first + i]
        for f in range(a.shape[1]):
            c = at + np.uint64(f)
            term = _exp(a[i, f])
            is_top = a[i, f] == ZERO
            rest[r, b, c] += ZERO if is_top else term
            moment[r, b, c] += term * a[i, f]
            ties[r, b, c] += ONE if is_top else ZERO


@njit(nogil=True, cache=True, fastmath=LOOSE)
def raise_tops(
    x: Array, p: Array, index: Array, eps: float, part: int, start: int, stop: int,
    top: Array,
) -> None:  # fmt: skip
    """First pass: extreme entries, in an array of -1."""
    width, small = stop - start, np.float32(eps)
    block = max(1, ENTRIES // max(1, width))
    v = np.empty((block, width), np.float32)
    for first in range(0, index.size, block):
        now = v[: min(block, index.size - first)]
        _magnitudes(x, first, start, small, part, now)
        for r in range(p.shape[0]):
            _raise_tops(now, p, index, first, start, r, top)


@njit(nogil=True, cache=True, fastmath=LOOSE)
def logs_of(top: Array, out: Array) -> None:
    """Logarithms of the extreme entries, where there is one; -1 becomes 0."""
    v, log_v = top.reshape(-1), out.reshape(-1)
    for k in range(v.size):
        v[k] = ZERO if v[k] < ZERO else v[k]
    _logs(v, log_v)


@njit(nogil=True, cache=True, fastmath=LOOSE)
def sums(
    x: Array, p: Array, index: Array, eps: float, part: int, top: Array,
    log_top: Array, start: int, stop: int, rest: Array, moment: Array, ties: Array,
) -> None:  # fmt: skip
    """Second pass, adds to zeros: sums of the terms but the largest, their moments."""
    width, small = stop - start, np.float32(eps)
    block = max(1, ENTRIES // max(1, width))
    buffer = np.empty((3, block, width), np.float32)
    v, log_v, a = buffer[0], buffer[1], buffer[2]
    for first in range(0, index.size, block):
        rows = min(block, index.size - first)
        _magnitudes(x, first, start, small, part, v[:rows])
        _logs(v[:rows].reshape(-1), log_v[:rows].reshape(-1))
        for r in range(p.shape[0]):
            _terms(v[:rows], log_v, p, index, first, start, r, top, log_top, a)
            _add_terms(a, index, first, start, rows, r, rest, moment, ties)


@njit(nogil=True, cache=True, fastmath=LOOSE)
def add_ties(rest: Array, ties: Array) -> None:
    """All that equals the extreme entry but one counts as 1."""
    total, extra = rest.reshape(-1), ties.reshape(-1)
    for k in range(total.size):
        total[k] += extra[k] - ONE if extra[k] > ZERO else ZERO


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _powers(
    log_v: Array, p: Array, index: Array, first: int, r: int, log_top: Array,
    shift: Array, out: Array,
) -> None:  # fmt: skip
    for i in range(log_v.shape[0]):
        b = index[first + i]
        for f in range(log_v.shape[1]):
            over = log_v[i, f] - log_top[r, b, f]
            out[i, f] = (p[r, f] - ONE) * over + shift[r, b, f]


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _exps(a: Array) -> None:
    for k in range(a.size):
        a[k] = _exp(a[k])


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _add_rows(
    power: Array, grad: Array, index: Array, first: int, r: int, out: Array
) -> None:
    for i in range(power.shape[0]):
        b = index[first + i]
        for f in range(power.shape[1]):
            out[i, f] += grad[r, b, f] * power[i, f]


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _sign_rows(x: Array, first: int, part: int, out: Array) -> None:
    """Multiplies by the derivative of the magnitude."""
    above = ZERO if part == 2 else ONE
    below = ZERO if part == 1 else -ONE
    low = np.uint64(first)
    for i in range(out.shape[0]):
        for f in range(out.shape[1]):
            value = x[low + np.uint64(i), f]
            sign = above if value > ZERO else below
            out[i, f] *= ZERO if value == ZERO else sign


@njit(nogil=True, cache=True, fastmath=LOOSE)
def rows(
    x: Array, p: Array, index: Array, log_top: Array, shift: Array, grad: Array,
    eps: float, part: int, start: int, stop: int, out: Array,
) -> None:  # fmt: skip
    """Writes the gradients of rows ``start`` to ``stop``."""
    width, small = x.shape[1], np.float32(eps)
    block = max(1, ENTRIES // max(1, width))
    buffer = np.empty((2, block, width), np.float32)
    for first in range(start, stop, block):
        size = min(block, stop - first)
        log_v, power = buffer[0][:size], buffer[1][:size]
        now = out[first : first + size]
        _magnitudes(x, first, 0, small, part, power)
        _logs(power.reshape(-1), log_v.reshape(-1))
        now[:] = ZERO
        for r in range(p.shape[0]):
            _powers(log_v, p, index, first, r, log_top, shift, power)
            _exps(power.reshape(-1))
            _add_rows(power, grad, index, first, r, now)
        _sign_rows(x, first, part, now)
