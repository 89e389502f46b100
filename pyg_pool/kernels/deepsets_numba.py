"""Numba twin of ``deepsets.py``: normalised rows times a factor, and their slopes.

Mean and deviation of a row are written out, as in ``norm_sum_numba.py``: a function of
its own for them took twice the time of the whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]

# Sums may be reordered; NaN and infinity keep their meaning.
LOOSE = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True, fastmath=LOOSE)
def norm_rows(
    x: Array, scale: Array, shift: Array, eps: float, factor: Array, kept: Array,
    out: Array,
) -> None:  # fmt: skip
    """Writes normalised rows times a factor; keeps mean and inverse deviation."""
    width = x.shape[1]
    # Typed numbers, lest everything becomes double precision.
    zero, one = x.dtype.type(0), x.dtype.type(1)
    share = one / x.dtype.type(max(width, 1))
    small = x.dtype.type(eps)
    for i in range(x.shape[0]):
        row, to, times = x[i], out[i], factor[i]
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
            to[f] = ((row[f] - mean) * inverse * scale[f] + shift[f]) * times


@njit(nogil=True, cache=True, fastmath=LOOSE)
def norm_rows_backward(
    grad: Array, x: Array, scale: Array, shift: Array, factor: Array, kept: Array,
    grad_x: Array, slopes: Array, grad_factor: Array,
) -> None:  # fmt: skip
    """Writes the gradients of rows and factors; adds those of scale, shift and bias."""
    width = x.shape[1]
    zero = x.dtype.type(0)
    share = x.dtype.type(1) / x.dtype.type(max(width, 1))
    of_scale, of_shift, of_bias = slopes[0], slopes[1], slopes[2]
    for i in range(x.shape[0]):
        up, row, down = grad[i], x[i], grad_x[i]
        mean, inverse, times = kept[0, i], kept[1, i], factor[i]
        first, second, steep = zero, zero, zero
        for f in range(width):
            normed = (row[f] - mean) * inverse
            step = up[f] * scale[f]
            first += step
            second += step * normed
            steep += up[f] * shift[f]
        grad_factor[i] = steep + second
        first *= share * times
        second *= share * times
        for f in range(width):
            normed = (row[f] - mean) * inverse
            of_scale[f] += up[f] * times * normed
            of_shift[f] += up[f] * times
        for f in range(width):
            normed = (row[f] - mean) * inverse
            down[f] = inverse * (up[f] * times * scale[f] - first - second * normed)
            of_bias[f] += down[f]


@njit(nogil=True, cache=True, fastmath=LOOSE)
def norm_sides(
    grad: Array, sums: Array, count: Array, scale: Array, sides: Array
) -> None:
    """Adds the gradients of scale and shift of a summed norm; scales ``grad``."""
    for c in range(grad.shape[0]):
        up, total, members = grad[c], sums[c], count[c]
        for f in range(scale.size):
            sides[0, f] += up[f] * total[f]
            sides[1, f] += up[f] * members
            up[f] *= scale[f]
