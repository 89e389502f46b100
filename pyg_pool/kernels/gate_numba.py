"""Numba twin of ``gate.py``: one pass over the picked rows in each direction."""

from __future__ import annotations

import math
from typing import Any

from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]

# Sums may be reordered; NaN and infinity keep their meaning.
LOOSE = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True, fastmath=LOOSE)
def forward(
    x: Array, index: Array, vector: Array, bias: Array, gate: int, out: Array,
    score: Array,
) -> None:  # fmt: skip
    """Writes gated rows and their gates (1: sigmoid, 2: tanh, 0: identity)."""
    for k in range(index.size):
        row = x[index[k]]
        total = bias[0]
        for f in range(row.size):
            total += row[f] * vector[f]
        if gate == 1:
            total = 1 / (1 + math.exp(-total))
        elif gate == 2:
            total = math.tanh(total)
        score[k] = total
        total = score[k]
        for f in range(row.size):
            out[k, f] = row[f] * total


@njit(nogil=True, cache=True, fastmath=LOOSE)
def backward(
    x: Array, index: Array, vector: Array, score: Array, gate: int, grad: Array,
    grad_score: Array, grad_x: Array, grad_vector: Array, slopes: Array,
) -> None:  # fmt: skip
    """Writes the gradients of the picked rows, the vector, and the projections."""
    for k in range(index.size):
        row, up, down = x[index[k]], grad[k], grad_x[index[k]]
        gated = score[k]
        slope = grad_score[k]
        for f in range(row.size):
            slope += up[f] * row[f]
        if gate == 1:
            slope *= gated * (1 - gated)
        elif gate == 2:
            slope *= 1 - gated * gated
        slopes[k] = slope
        slope = slopes[k]
        for f in range(row.size):
            down[f] = up[f] * gated + slope * vector[f]
            grad_vector[f] += slope * row[f]
