"""Numba twin of ``pnorm.py`` for float32: two passes over the rows, without copies.

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
    """Logarithm of a normal positive number; NaN of NaN and infinity."""
    bits = _bits(v)
    power = np.float32(np.int32(bits >> 23) - np.int32(126))
    m = _float(np.int32(np.int32(bits & 0x7FFFFF) | np.int32(0x3F000000)))
    is_low = m < SQRT_HALF
    power = power - ONE if is_low else power
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
def _magnitudes(x: Array, start: int, eps: Any, part: int, v: Array) -> None:
    """Magnitudes of a part (0: all, 1: positive, 2: negative) and ``eps``."""
    if part == 0:
        for k in range(v.size):
            v[k] = abs(x[start + k]) + eps
    elif part == 1:
        for k in range(v.size):
            v[k] = (ZERO if x[start + k] < ZERO else x[start + k]) + eps
    else:
        for k in range(v.size):
            v[k] = (ZERO if x[start + k] > ZERO else -x[start + k]) + eps


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _logs(v: Array, out: Array) -> None:
    for k in range(v.size):
        out[k] = _log(v[k])


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _raise_tops(
    v: Array, p: Array, index: Array, start: int, stop: int, r: int, top: Array
) -> None:
    """Keeps the larger, where p < 0 the smaller; 0 stands for nothing yet."""
    for i in range(stop - start):
        b = index[start + i]
        for f in range(v.shape[1]):
            old, new = top[r, b, f], v[i, f]
            is_beyond = (new - old) * p[r, f] > ZERO
            top[r, b, f] = new if is_beyond or old == ZERO else old


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _terms(
    v: Array, log_v: Array, p: Array, index: Array, start: int, stop: int, r: int,
    top: Array, log_top: Array, out: Array,
) -> None:  # fmt: skip
    """Logarithms of the terms, relative to the extreme entry."""
    for i in range(stop - start):
        b = index[start + i]
        for f in range(v.shape[1]):
            a = p[r, f] * (log_v[i, f] - log_top[r, b, f])
            out[i, f] = ZERO if v[i, f] == top[r, b, f] else a


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _add_terms(
    a: Array, index: Array, start: int, stop: int, r: int, rest: Array, moment: Array,
    ties: Array,
) -> None:  # fmt: skip
    for i in range(stop - start):
        b = index[start + i]
        for f in range(a.shape[1]):
            term = _exp(a[i, f])
            is_top = a[i, f] == ZERO
            rest[r, b, f] += ZERO if is_top else term
            moment[r, b, f] += term * a[i, f]
            ties[r, b, f] += ONE if is_top else ZERO


@njit(nogil=True, cache=True, fastmath=LOOSE)
def sums(
    x: Array, p: Array, index: Array, eps: float, part: int, top: Array, rest: Array,
    moment: Array,
) -> None:  # fmt: skip
    """Adds to zeros: extreme entries, sums of the terms less 1, and their moments."""
    width, flat, small = x.shape[1], x.reshape(-1), np.float32(eps)
    block = max(1, ENTRIES // max(1, width))
    buffer = np.empty((3, block, width), np.float32)
    v, log_v, a = buffer[0], buffer[1], buffer[2]
    for start in range(0, index.size, block):
        stop = min(start + block, index.size)
        _magnitudes(flat, start * width, small, part, v[: stop - start].reshape(-1))
        for r in range(p.shape[0]):
            _raise_tops(v, p, index, start, stop, r, top)
    log_top, ties = np.empty_like(top), np.zeros_like(top)
    _logs(top.reshape(-1), log_top.reshape(-1))
    for start in range(0, index.size, block):
        stop = min(start + block, index.size)
        now = v[: stop - start].reshape(-1)
        _magnitudes(flat, start * width, small, part, now)
        _logs(now, log_v[: stop - start].reshape(-1))
        for r in range(p.shape[0]):
            _terms(v, log_v, p, index, start, stop, r, top, log_top, a)
            _add_terms(a, index, start, stop, r, rest, moment, ties)
    total, extra = rest.reshape(-1), ties.reshape(-1)
    for k in range(total.size):
        total[k] += extra[k] - ONE if extra[k] > ZERO else ZERO


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _powers(
    log_v: Array, p: Array, index: Array, start: int, stop: int, r: int,
    log_top: Array, shift: Array, out: Array,
) -> None:  # fmt: skip
    for i in range(stop - start):
        b = index[start + i]
        for f in range(log_v.shape[1]):
            over = log_v[i, f] - log_top[r, b, f]
            out[i, f] = (p[r, f] - ONE) * over + shift[r, b, f]


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _add_rows(
    power: Array, grad: Array, index: Array, start: int, stop: int, r: int, out: Array
) -> None:
    for i in range(stop - start):
        b = index[start + i]
        for f in range(power.shape[1]):
            out[start + i, f] += grad[r, b, f] * _exp(power[i, f])


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _sign_rows(x: Array, part: int, out: Array) -> None:
    """Multiplies by the derivative of the magnitude."""
    above = ZERO if part == 2 else ONE
    below = ZERO if part == 1 else -ONE
    for k in range(x.size):
        sign = above if x[k] > ZERO else below
        out[k] *= ZERO if x[k] == ZERO else sign


@njit(nogil=True, cache=True, fastmath=LOOSE)
def rows(
    x: Array, p: Array, index: Array, top: Array, shift: Array, grad: Array,
    eps: float, part: int, out: Array,
) -> None:  # fmt: skip
    """Adds the gradients of the rows to zeros."""
    width, flat, small = x.shape[1], x.reshape(-1), np.float32(eps)
    log_top = np.empty_like(top)
    _logs(top.reshape(-1), log_top.reshape(-1))
    block = max(1, ENTRIES // max(1, width))
    buffer = np.empty((2, block, width), np.float32)
    log_v, power = buffer[0], buffer[1]
    for start in range(0, index.size, block):
        stop = min(start + block, index.size)
        now = power[: stop - start].reshape(-1)
        _magnitudes(flat, start * width, small, part, now)
        _logs(now, log_v[: stop - start].reshape(-1))
        for r in range(p.shape[0]):
            _powers(log_v, p, index, start, stop, r, log_top, shift, power)
            _add_rows(power, grad, index, start, stop, r, out)
    _sign_rows(flat, part, out.reshape(-1))
