"""Numba twin of ``relu_dropout.py``: the mask is a hash of the position."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]


@njit(nogil=True, cache=True)
def forward(x: Array, seed: int, limit: int, factor: float, out: Array) -> None:
    """Writes positive entries times a factor, or 0 where the hash is below a limit."""
    zero, scale = x.dtype.type(0), x.dtype.type(factor)
    bound = np.uint64(limit)
    for i in range(x.size):
        # SplitMix64 (Steele, Lea and Flood 2014), of which 53 bits are compared.
        z = np.uint64(seed) + np.uint64(i) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = (z ^ (z >> np.uint64(31))) >> np.uint64(11)
        value = x[i]
        out[i] = zero if value <= zero or z < bound else value * scale


@njit(nogil=True, cache=True)
def backward(grad: Array, out: Array, factor: float, found: Array) -> None:
    """Writes the gradient times a factor where the result is not 0."""
    zero, scale = grad.dtype.type(0), grad.dtype.type(factor)
    for i in range(grad.size):
        found[i] = zero if out[i] <= zero else grad[i] * scale
