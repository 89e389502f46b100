"""Numba twin of ``segment_attention.py``: no weight is held for a score per channel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyg_pool.kernels.pnorm_numba import ENTRIES, LOOSE, ONE
from pyg_pool.kernels.segment_numba import add_block, lower, powers, scale_block

Array = NDArray[Any]


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _times_rows(a: Array, y: Array, first: int, start: int) -> None:
    """Multiplies a block by rows of another matrix."""
    at = np.uint64(start)
    for i in range(a.shape[0]):
        row = np.uint64(first + i)
        for f in range(a.shape[1]):
            a[i, f] *= y[row, at + np.uint64(f)]


@njit(nogil=True, cache=True)
def forward(
    scores: Array, values: Array, index: Array, shift: Array, start: int, stop: int,
    total: Array, out: Array,
) -> None:  # fmt: skip
    """Adds exponentials to ``total`` and values times exponentials to ``out``."""
    block = max(1, ENTRIES // max(1, stop - start))
    a = np.empty((block, stop - start), scores.dtype)
    for first in range(0, index.size, block):
        rows = min(block, index.size - first)
        lower(scores, index, shift, first, start, a[:rows])
        powers(a[:rows].reshape(-1))
        add_block(a, index, first, rows, start, total)
        _times_rows(a[:rows], values, first, start)
        add_block(a, index, first, rows, start, out)


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _score_rows(
    weighted: Array, values: Array, out: Array, index: Array, first: int, rows: int,
    into: Array,
) -> None:  # fmt: skip
    """Weighted gradients times values less their mean."""
    for i in range(np.uint64(first), np.uint64(first + rows)):
        b = index[i]
        for f in range(values.shape[1]):
            into[i, f] = weighted[i, f] * (values[i, f] - out[b, f])


@njit(nogil=True, cache=True, fastmath=LOOSE)
def _both_rows(
    weighted: Array, values: Array, out: Array, index: Array, first: int, rows: int
) -> None:
    """Adds to weighted gradients those of the scores, which are the values."""
    for i in range(np.uint64(first), np.uint64(first + rows)):
        b = index[i]
        for f in range(values.shape[1]):
            weighted[i, f] *= values[i, f] - out[b, f] + ONE


@njit(nogil=True, cache=True)
def backward(
    scores: Array, values: Array, index: Array, shift: Array, factor: Array,
    out: Array, start: int, stop: int, grad_values: Array, grad_scores: Array,
    same: bool,
) -> None:  # fmt: skip
    """Writes both gradients, or their sum in the first array if scores are values.

    ``factor`` is the gradient of the result divided by the sum of exponentials.
    """
    block = max(1, ENTRIES // max(1, values.shape[1]))
    for first in range(start, stop, block):
        rows = min(block, stop - first)
        now = grad_values[first : first + rows]
        lower(scores, index, shift, first, 0, now)
        powers(now.reshape(-1))
        scale_block(grad_values, index, first, rows, factor)
        if same:
            _both_rows(grad_values, values, out, index, first, rows)
        else:
            _score_rows(grad_values, values, out, index, first, rows, grad_scores)


@njit(nogil=True, cache=True)
def add_weighted(
    weight: Array, values: Array, index: Array, depth: int, start: int, stop: int,
    out: Array,
) -> None:  # fmt: skip
    """Adds rows times the weight of their head; a head has ``depth`` channels."""
    for i in range(index.size):
        b = index[i]
        for h in range(start // depth, (stop + depth - 1) // depth):
            first, last = max(start, h * depth), min(stop, (h + 1) * depth)
            w = weight[i, h]
            for f in range(np.uint64(first), np.uint64(last)):
                out[b, f] += w * values[i, f]


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def weighted_backward(
    weight: Array, values: Array, index: Array, grad: Array, depth: int, start: int,
    stop: int, grad_values: Array, grad_weight: Array,
) -> None:  # fmt: skip
    """Gradients of weighted sums for rows ``start`` to ``stop``."""
    for i in range(np.uint64(start), np.uint64(stop)):
        b = index[i]
        for h in range(weight.shape[1]):
            first, last = np.uint64(h * depth), np.uint64((h + 1) * depth)
            w = weight[i, h]
            for f in range(first, last):
                grad_values[i, f] = w * grad[b, f]
            total = w - w
            for f in range(first, last):
                total += grad[b, f] * values[i, f]
            grad_weight[i, h] = total
