"""Numba twin of ``group_attention.py`` for float32, a group and a head at a time.

Rows of a group lie one after the other. Queries are taken in blocks of 32, and every
inner loop runs over such a block, or over 32 keys, so that it becomes a few vector
instructions; eight products are added at a time, which saves passes through memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from pyg_pool.kernels.pnorm_numba import LOWEST, _exp

Array = NDArray[Any]

# Rows may lie inside wider ones, so only the last dimension need be dense; compiled
# for this form alone, as the rows are read number by number.
ROWS, NUMBERS, OFFSETS = types.float32[:, :], types.float32[::1], types.int64[::1]

# Products and sums may be fused; NaN and infinity keep their meaning.
LOOSE = {"contract", "nsz"}

LANES = 32
ZERO, ONE = np.float32(0.0), np.float32(1.0)


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _weighted(
    out: Array, at: int, a: Array, row: int, first: int, src: Array, count: int
) -> None:
    """Writes row ``at`` of ``out``: rows of ``src`` weighted by a row of ``a``."""
    for i in range(LANES):
        out[at, i] = ZERO
    c = 0
    while c + 8 <= count:
        b = first + c
        a0, a1, a2, a3 = a[row, b], a[row, b + 1], a[row, b + 2], a[row, b + 3]
        a4, a5, a6, a7 = a[row, b + 4], a[row, b + 5], a[row, b + 6], a[row, b + 7]
        for i in range(LANES):
            out[at, i] += (
                (a0 * src[c, i] + a1 * src[c + 1, i])
                + (a2 * src[c + 2, i] + a3 * src[c + 3, i])
            ) + (
                (a4 * src[c + 4, i] + a5 * src[c + 5, i])
                + (a6 * src[c + 6, i] + a7 * src[c + 7, i])
            )
        c += 8
    while c < count:
        a0 = a[row, first + c]
        for i in range(LANES):
            out[at, i] += a0 * src[c, i]
        c += 1


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _summed(
    out: Array, at: int, a: Array, row: int, col: int, src: Array, count: int
) -> None:
    """Writes row ``at`` of ``out``: rows of ``src`` weighted by a column of ``a``."""
    for i in range(LANES):
        out[at, i] = ZERO
    j = 0
    while j + 8 <= count:
        r = row + j
        a0, a1, a2, a3 = a[r, col], a[r + 1, col], a[r + 2, col], a[r + 3, col]
        a4, a5, a6, a7 = a[r + 4, col], a[r + 5, col], a[r + 6, col], a[r + 7, col]
        for i in range(LANES):
            out[at, i] += (
                (a0 * src[j, i] + a1 * src[j + 1, i])
                + (a2 * src[j + 2, i] + a3 * src[j + 3, i])
            ) + (
                (a4 * src[j + 4, i] + a5 * src[j + 5, i])
                + (a6 * src[j + 6, i] + a7 * src[j + 7, i])
            )
        j += 8
    while j < count:
        a0 = a[row + j, col]
        for i in range(LANES):
            out[at, i] += a0 * src[j, i]
        j += 1


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _add_outer(total: Array, left: Array, right: Array, count: int, stop: int) -> None:
    """Adds ``left @ right`` to ``total`` for the first ``count`` rows of ``right``."""
    for c in range(left.shape[0]):
        i = 0
        while i < count:
            a0, a1, a2, a3 = left[c, i], left[c, i + 1], left[c, i + 2], left[c, i + 3]
            a4, a5 = left[c, i + 4], left[c, i + 5]
            a6, a7 = left[c, i + 6], left[c, i + 7]
            for j in range(0, stop, LANES):
                for m in range(LANES):
                    n = j + m
                    total[c, n] += (
                        (a0 * right[i, n] + a1 * right[i + 1, n])
                        + (a2 * right[i + 2, n] + a3 * right[i + 3, n])
                    ) + (
                        (a4 * right[i + 4, n] + a5 * right[i + 5, n])
                        + (a6 * right[i + 6, n] + a7 * right[i + 7, n])
                    )
            i += 8


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _turned(x: Array, row: int, count: int, first: int, out: Array) -> None:
    """Writes rows of ``x``, some columns of them, as columns; zeros after the last."""
    for c in range(out.shape[0]):
        for i in range(LANES):
            out[c, i] = ZERO
    for i in range(count):
        for c in range(out.shape[0]):
            out[c, i] = x[row + i, first + c]


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _logits(
    k: Array, row: int, count: int, first: int, turned: Array, out: Array
) -> None:
    """Inner products of keys with a block of queries."""
    for j in range(count):
        _weighted(out, j, k, row + j, first, turned, turned.shape[0])


@njit(
    (ROWS, ROWS, ROWS, OFFSETS, OFFSETS, NUMBERS, types.int64, ROWS, ROWS, ROWS),
    nogil=True,
    cache=True,
    fastmath=LOOSE,
)
def forward(
    q: Array, k: Array, v: Array, query_ptr: Array, key_ptr: Array, factor: Array,
    heads: int, out: Array, top: Array, total: Array,
) -> None:  # fmt: skip
    """Writes results, and the largest product and the sum of each query and head."""
    width = q.shape[1] // heads
    largest = 1
    for g in range(factor.size):
        largest = max(largest, key_ptr[g + 1] - key_ptr[g])
    weights = np.empty((largest, LANES), np.float32)
    turned = np.empty((width, LANES), np.float32)
    mixed = np.empty((1, LANES), np.float32)
    high, size = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    for g in range(factor.size):
        keys, row = key_ptr[g + 1] - key_ptr[g], key_ptr[g]
        if keys == 0:
            continue
        for h in range(heads):
            first = h * width
            for start in range(query_ptr[g], query_ptr[g + 1], LANES):
                count = min(LANES, query_ptr[g + 1] - start)
                _turned(q, start, count, first, turned)
                _logits(k, row, keys, first, turned, weights)
                for i in range(LANES):
                    high[i] = weights[0, i]
                    size[i] = ZERO
                for j in range(1, keys):
                    for i in range(LANES):
                        value = weights[j, i]
                        high[i] = value if value > high[i] else high[i]
                for j in range(keys):
                    for i in range(LANES):
                        power = (weights[j, i] - high[i]) * factor[g]
                        value = ZERO if power < LOWEST else _exp(power)
                        weights[j, i] = value
                        size[i] += value
                for i in range(count):
                    top[start + i, h] = high[i]
                    total[start + i, h] = size[i]
                for c in range(width):
                    _summed(mixed, 0, v, row, first + c, weights, keys)
                    for i in range(count):
                        out[start + i, first + c] = mixed[0, i] / size[i]


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _slopes(
    weights: Array, slopes: Array, keys: int, factor: Any, limit: Any, across: Array,
    across_slopes: Array,
) -> None:  # fmt: skip
    """Turns gradients of weights into those of products; writes both also turned."""
    mean, bound = np.zeros(LANES, np.float32), np.float32(limit)
    for j in range(keys):
        for i in range(LANES):
            mean[i] += weights[j, i] * slopes[j, i]
    for j in range(keys):
        for i in range(LANES):
            value = weights[j, i] * (slopes[j, i] - mean[i]) * factor
            value = bound if value > bound else value
            slopes[j, i] = -bound if value < -bound else value
    for j in range(keys):
        for i in range(LANES):
            across[i, j] = weights[j, i]
            across_slopes[i, j] = slopes[j, i]


@njit(
    (
        ROWS,
        ROWS,
        ROWS,
        ROWS,
        OFFSETS,
        OFFSETS,
        NUMBERS,
        types.int64,
        ROWS,
        ROWS,
        types.float64,
        ROWS,
        ROWS,
        ROWS,
    ),
    nogil=True,
    cache=True,
    fastmath=LOOSE,
)
def backward(
    q: Array, k: Array, v: Array, grad: Array, query_ptr: Array, key_ptr: Array,
    factor: Array, heads: int, top: Array, total: Array, limit: Any, grad_q: Array,
    grad_k: Array, grad_v: Array,
) -> None:  # fmt: skip
    """Writes all gradients."""
    width = q.shape[1] // heads
    largest = 1
    for g in range(factor.size):
        largest = max(largest, key_ptr[g + 1] - key_ptr[g])
    padded = (largest + LANES - 1) // LANES * LANES
    weights = np.empty((largest, LANES), np.float32)
    slopes = np.empty((largest, LANES), np.float32)
    across = np.zeros((LANES, padded), np.float32)
    across_slopes = np.zeros((LANES, padded), np.float32)
    turned = np.empty((width, LANES), np.float32)
    up = np.empty((width, LANES), np.float32)
    down = np.empty((1, LANES), np.float32)
    sum_k = np.empty((width, padded), np.float32)
    sum_v = np.empty((width, padded), np.float32)
    high, size = np.zeros(LANES, np.float32), np.ones(LANES, np.float32)
    for g in range(factor.size):
        keys, row = key_ptr[g + 1] - key_ptr[g], key_ptr[g]
        if keys == 0:
            continue
        stop = (keys + LANES - 1) // LANES * LANES
        for h in range(heads):
            first = h * width
            sum_k[:, :stop] = ZERO
            sum_v[:, :stop] = ZERO
            for start in range(query_ptr[g], query_ptr[g + 1], LANES):
                count = min(LANES, query_ptr[g + 1] - start)
                _turned(q, start, count, first, turned)
                _turned(grad, start, count, first, up)
                _logits(k, row, keys, first, turned, weights)
                _logits(v, row, keys, first, up, slopes)
                for i in range(LANES):
                    high[i] = top[start + i, h] if i < count else ZERO
                    size[i] = ONE / total[start + i, h] if i < count else ZERO
                for j in range(keys):
                    for i in range(LANES):
                        power = (weights[j, i] - high[i]) * factor[g]
                        value = ZERO if power < LOWEST else _exp(power)
                        weights[j, i] = value * size[i]
                _slopes(weights, slopes, keys, factor[g], limit, across, across_slopes)
                for c in range(width):
                    _summed(down, 0, k, row, first + c, slopes, keys)
                    for i in range(count):
                        grad_q[start + i, first + c] = down[0, i]
                rounded = (count + 7) // 8 * 8
                _add_outer(sum_k, turned, across_slopes, rounded, stop)
                _add_outer(sum_v, up, across, rounded, stop)
            for j in range(keys):
                for c in range(width):
                    grad_k[row + j, first + c] = sum_k[c, j]
                    grad_v[row + j, first + c] = sum_v[c, j]
