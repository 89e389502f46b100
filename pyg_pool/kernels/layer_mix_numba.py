"""Numba twin of ``layer_mix.py``: one pass over the rows, sums in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]

# Sums may be reordered; NaN and infinity keep their meaning.
LOOSE = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True)
def largest(x: Array, index: Array, out: Array) -> None:
    """Largest magnitude of the rows of each group; NaN where there is one."""
    for i in range(index.size):
        top = abs(x[i, 0])
        for j in range(1, x.shape[1]):
            value = abs(x[i, j])
            # The sum of a NaN is not above the top, nor below it.
            top = value if not value <= top else top
        group = index[i]
        if not top <= out[group]:
            out[group] = top


@njit(nogil=True, cache=True, fastmath=LOOSE)
def dots(
    r: Array, x: Array, starts: Array, index: Array, scale: Array, out: Array
) -> None:
    """Inner products of each layer, summed over the rows of each group."""
    num_layers, width = starts.size - 1, x.shape[1]
    total = np.zeros(out.shape, np.float64)
    for i in range(index.size):
        group = index[i]
        for layer in range(num_layers):
            part = r[i, 0] * 0
            for j in range(starts[layer], starts[layer + 1]):
                part += r[i, j] * (x[i, j] * scale[group])
            total[group, layer] += part + r[i, width + layer] * scale[group]
    for group in range(out.shape[0]):
        for layer in range(num_layers):
            out[group, layer] = total[group, layer]


@njit(nogil=True, cache=True, fastmath=LOOSE)
def dots_backward(
    r: Array, x: Array, starts: Array, index: Array, scale: Array, grad: Array,
    grad_r: Array, grad_x: Array,
) -> None:  # fmt: skip
    """Writes the gradients of both factors."""
    num_layers, width = starts.size - 1, x.shape[1]
    for i in range(index.size):
        group = index[i]
        for layer in range(num_layers):
            slope = grad[group, layer] * scale[group]
            for j in range(starts[layer], starts[layer + 1]):
                grad_r[i, j] = slope * x[i, j]
                grad_x[i, j] = slope * r[i, j]
            grad_r[i, width + layer] = slope


@njit(nogil=True, cache=True)
def mix(
    weights: Array, x: Array, starts: Array, index: Array, scale: Array, out: Array
) -> None:
    """Writes weighted activations and weights."""
    num_layers, width = starts.size - 1, x.shape[1]
    for i in range(index.size):
        group = index[i]
        for layer in range(num_layers):
            weight = weights[group, layer]
            for j in range(starts[layer], starts[layer + 1]):
                out[i, j] = (x[i, j] * scale[group]) * weight
            out[i, width + layer] = scale[group] * weight


@njit(nogil=True, cache=True, fastmath=LOOSE)
def mix_backward(
    weights: Array, x: Array, starts: Array, index: Array, scale: Array, grad: Array,
    grad_weights: Array, grad_x: Array,
) -> None:  # fmt: skip
    """Writes the gradients of the weights and of the activations."""
    num_layers, width = starts.size - 1, x.shape[1]
    total = np.zeros(grad_weights.shape, np.float64)
    for i in range(index.size):
        group = index[i]
        for layer in range(num_layers):
            weight = weights[group, layer] * scale[group]
            part = grad[i, 0] * 0
            for j in range(starts[layer], starts[layer + 1]):
                part += grad[i, j] * (x[i, j] * scale[group])
                grad_x[i, j] = weight * grad[i, j]
            total[group, layer] += part + grad[i, width + layer] * scale[group]
    for group in range(grad_weights.shape[0]):
        for layer in range(num_layers):
            grad_weights[group, layer] = total[group, layer]
