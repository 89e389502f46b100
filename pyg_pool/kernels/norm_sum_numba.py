"""Numba twin of ``norm_sum.py``: each row is read once from memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]

# Sums may be reordered; NaN and infinity keep their meaning.
LOOSE = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True, fastmath=LOOSE)
def norm_sum(
    x: Array, scale: Array, shift: Array, eps: float, group: Array, kept: Array,
    sums: Array, count: Array, out: Array,
) -> None:  # fmt: skip
    """Sums the normalised rows; keeps mean and inverse deviation of each."""
    width = x.shape[1]
    # Typed numbers, lest everything becomes double precision.
    zero, one = x.dtype.type(0), x.dtype.type(1)
    share = one / x.dtype.type(max(width, 1))
    small = x.dtype.type(eps)
    for i in range(x.shape[0]):
        row, total = x[i], sums[group[i]]
        count[group[i]] += 1
        mean = zero
        for f in range(width):
            mean += row[f]
        mean *= share
        spread = zero
        for f in range(width):
            spread += (row[f] - mean) * (row[f] - mean)
        inverse = one / np.sqrt(spread * share + small)
        kept[0, i], kept[1, i] = mean, inverse
        for f in range(width):
            total[f] += (row[f] - mean) * inverse
    for c in range(out.shape[0]):
        for f in range(width):
            out[c, f] = sums[c, f] * scale[f] + count[c] * shift[f]


@njit(nogil=True, cache=True, fastmath=LOOSE)
def norm_sum_backward(
    x: Array, group: Array, kept: Array, slope: Array, grad_x: Array
) -> None:
    """Writes the gradient of the rows, given that of the normalised ones."""
    width = x.shape[1]
    # Typed numbers, lest everything becomes double precision.
    zero = x.dtype.type(0)
    share = x.dtype.type(1) / x.dtype.type(max(width, 1))
    first = np.empty(slope.shape[0], x.dtype)
    for c in range(slope.shape[0]):
        total = zero
        for f in range(width):
            total += slope[c, f]
        first[c] = total * share
    for i in range(x.shape[0]):
        row, up, down = x[i], slope[group[i]], grad_x[i]
        mean, inverse = kept[0, i], kept[1, i]
        total = zero
        for f in range(width):
            total += up[f] * (row[f] - mean)
        factor = total * share * inverse * inverse
        start = first[group[i]]
        for f in range(width):
            down[f] = inverse * (up[f] - start - factor * (row[f] - mean))
