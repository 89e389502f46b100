"""Numba twin of ``deepsets.py``: normalised rows and their slopes.

The weights come with the mean over their outputs taken out, so that every row has mean
zero and only its length is left to be found. The loops are written out: functions of
their own for them took twice the time of the whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]

# Sums may be reordered; NaN and infinity keep their meaning.
LOOSE = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True)
def centred(w1: Array, b1: Array, w2: Array, b2: Array, layers: Array) -> None:
    """Writes weights plus identity, and below them the bias, less the mean output."""
    width = b1.size
    one = w1.dtype.type(1)
    share = one / w1.dtype.type(max(width, 1))
    for weight, bias, out in ((w1, b1, layers[0]), (w2, b2, layers[1])):
        mean = np.zeros(width, weight.dtype)
        for o in range(width):
            for f in range(width):
                out[o, f] = weight[o, f]
            out[o, o] += one
            for f in range(width):
                mean[f] += out[o, f]
        for o in range(width):
            for f in range(width):
                out[o, f] -= mean[f] * share
        shift = bias.sum() * share
        for o in range(width):
            out[width, o] = bias[o] - shift


@njit(nogil=True, cache=True, fastmath=LOOSE)
def norm_sum(
    x: Array, offset: Array, eps: float, group: Array, inverse: Array, sums: Array,
    count: Array,
) -> None:  # fmt: skip
    """Adds the normalised rows of each group, and their number."""
    width = offset.size
    # Typed numbers, lest everything becomes double precision.
    zero, one = x.dtype.type(0), x.dtype.type(1)
    share, small = one / x.dtype.type(max(width, 1)), x.dtype.type(eps)
    for i in range(x.shape[0]):
        row, total = x[i], sums[group[i]]
        count[group[i]] += one
        spread = zero
        for f in range(width):
            spread += (row[f] + offset[f]) * (row[f] + offset[f])
        times = one / np.sqrt(spread * share + small)
        inverse[i] = times
        for f in range(width):
            total[f] += (row[f] + offset[f]) * times


@njit(nogil=True, cache=True)
def affine_sums(
    sums: Array, count: Array, scale: Array, shift: Array, out: Array
) -> None:
    """Writes the sums with scale and shift."""
    for c in range(out.shape[0]):
        members = count[c]
        for f in range(scale.size):
            out[c, f] = sums[c, f] * scale[f] + members * shift[f]


@njit(nogil=True, cache=True, fastmath=LOOSE)
def norm_sum_backward(
    x: Array, offset: Array, group: Array, inverse: Array, slope: Array,
    grad_x: Array, of_bias: Array,
) -> None:  # fmt: skip
    """Writes the gradient of the rows, given that of the normalised ones."""
    width = offset.size
    zero = x.dtype.type(0)
    share = x.dtype.type(1) / x.dtype.type(max(width, 1))
    for i in range(x.shape[0]):
        row, up, down = x[i], slope[group[i]], grad_x[i]
        times = inverse[i]
        total = zero
        for f in range(width):
            total += up[f] * (row[f] + offset[f])
        total *= share * times * times * times
        for f in range(width):
            down[f] = times * up[f] - total * (row[f] + offset[f])
        for f in range(width):
            of_bias[f] += down[f]


@njit(nogil=True, cache=True, fastmath=LOOSE)
def norm_rows(
    x: Array, offset: Array, scale: Array, shift: Array, eps: float, factor: Array,
    inverse: Array, out: Array,
) -> None:  # fmt: skip
    """Writes normalised rows times a factor; keeps the inverse deviation of each."""
    width = offset.size
    zero, one = x.dtype.type(0), x.dtype.type(1)
    share, small = one / x.dtype.type(max(width, 1)), x.dtype.type(eps)
    for i in range(x.shape[0]):
        row, to, times = x[i], out[i], factor[i]
        spread = zero
        for f in range(width):
            spread += (row[f] + offset[f]) * (row[f] + offset[f])
        step = one / np.sqrt(spread * share + small)
        inverse[i] = step
        for f in range(width):
            to[f] = ((row[f] + offset[f]) * step * scale[f] + shift[f]) * times


@njit(nogil=True, cache=True, fastmath=LOOSE)
def norm_rows_backward(
    grad: Array, x: Array, offset: Array, scale: Array, shift: Array, factor: Array,
    inverse: Array, grad_x: Array, slopes: Array, grad_factor: Array,
) -> None:  # fmt: skip
    """Writes the gradients of rows and factors; adds those of scale, shift and bias."""
    width = offset.size
    zero = x.dtype.type(0)
    share = x.dtype.type(1) / x.dtype.type(max(width, 1))
    of_scale, of_shift, of_bias = slopes[0], slopes[1], slopes[2]
    for i in range(x.shape[0]):
        up, row, down = grad[i], x[i], grad_x[i]
        step, times = inverse[i], factor[i]
        first, second, steep = zero, zero, zero
        for f in range(width):
            pull = up[f] * scale[f]
            first += pull
            second += pull * (row[f] + offset[f])
            steep += up[f] * shift[f]
        grad_factor[i] = steep + second * step
        first *= share
        second *= share * step * step
        step *= times
        for f in range(width):
            of_scale[f] += up[f] * step * (row[f] + offset[f])
            of_shift[f] += up[f] * times
        for f in range(width):
            pull = up[f] * scale[f]
            down[f] = step * (pull - first - second * (row[f] + offset[f]))
            of_bias[f] += down[f]


@njit(nogil=True, cache=True, fastmath=LOOSE)
def norm_sides(
    grad: Array, sums: Array, count: Array, scale: Array, sides: Array
) -> None:
    """Adds the gradients of scale and shift of a summed norm.

    What is left in ``grad`` is the gradient of a normalised row less its mean.
    """
    zero = grad.dtype.type(0)
    share = grad.dtype.type(1) / grad.dtype.type(max(scale.size, 1))
    for c in range(grad.shape[0]):
        up, total, members = grad[c], sums[c], count[c]
        mean = zero
        for f in range(scale.size):
            sides[0, f] += up[f] * total[f]
            sides[1, f] += up[f] * members
            up[f] *= scale[f]
            mean += up[f]
        mean *= share
        for f in range(scale.size):
            up[f] -= mean


@njit(nogil=True, cache=True)
def plain_sum(x: Array, group: Array, factor: Array, sums: Array, out: Array) -> None:
    """Writes the sum of the rows of each group, and the same times a factor."""
    for i in range(x.shape[0]):
        row, total = x[i], sums[group[i]]
        for f in range(row.size):
            total[f] += row[f]
    for c in range(out.shape[0]):
        for f in range(out.shape[1]):
            out[c, f] = sums[c, f] * factor[c]


@njit(nogil=True, cache=True, fastmath=LOOSE)
def plain_sum_backward(
    grad: Array, group: Array, factor: Array, sums: Array, grad_x: Array,
    grad_factor: Array,
) -> None:  # fmt: skip
    """Writes the gradients of the rows and of the factors."""
    for c in range(sums.shape[0]):
        total = grad.dtype.type(0)
        for f in range(sums.shape[1]):
            total += grad[c, f] * sums[c, f]
        grad_factor[c] = total
    for i in range(grad_x.shape[0]):
        up, down, times = grad[group[i]], grad_x[i], factor[group[i]]
        for f in range(down.size):
            down[f] = up[f] * times
