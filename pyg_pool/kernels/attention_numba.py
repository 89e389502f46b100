"""Numba twin of ``attention.py``: one pass over the edges, no row is copied."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]


@njit(nogil=True, cache=True)
def attend(x: Array, weight: Array, source: Array, target: Array, out: Array) -> None:
    """Adds weighted rows of the sources to the rows of the targets."""
    heads, width = x.shape[1], x.shape[2]
    for e in range(source.size):
        s, t = source[e], target[e]
        for h in range(heads):
            factor = weight[e, h]
            for c in range(width):
                out[t, h, c] += factor * x[s, h, c]


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def attend_backward(
    x: Array,
    weight: Array,
    source: Array,
    target: Array,
    grad: Array,
    grad_x: Array,
    grad_weight: Array,
) -> None:
    """Gradients for rows and weights."""
    heads, width = x.shape[1], x.shape[2]
    for e in range(source.size):
        s, t = source[e], target[e]
        for h in range(heads):
            factor = weight[e, h]
            total = x.dtype.type(0)
            for c in range(width):
                total += grad[t, h, c] * x[s, h, c]
                grad_x[s, h, c] += factor * grad[t, h, c]
            grad_weight[e, h] = total


@njit(nogil=True, cache=True)
def softmax(score: Array, target: Array, size: int) -> Array:
    """Softmax of the scores over the edges into each target."""
    heads = score.shape[1]
    top = np.full((size, heads), -np.inf, score.dtype)
    total = np.zeros((size, heads), score.dtype)
    out = np.empty_like(score)
    for e in range(target.size):
        t = target[e]
        for h in range(heads):
            value = score[e, h]
            if value > top[t, h] or value != value:
                top[t, h] = value
    for e in range(target.size):
        t = target[e]
        for h in range(heads):
            # A target whose scores are all -inf gets zeros.
            if score[e, h] == -np.inf:
                out[e, h] = 0
            else:
                out[e, h] = np.exp(score[e, h] - top[t, h])
            total[t, h] += out[e, h]
    for e in range(target.size):
        t = target[e]
        for h in range(heads):
            if total[t, h] != 0:
                out[e, h] /= total[t, h]
    return out


@njit(nogil=True, cache=True)
def softmax_backward(out: Array, target: Array, grad: Array, size: int) -> Array:
    """Gradient for the scores."""
    heads = out.shape[1]
    inner = np.zeros((size, heads), out.dtype)
    result = np.empty_like(out)
    for e in range(target.size):
        for h in range(heads):
            inner[target[e], h] += out[e, h] * grad[e, h]
    for e in range(target.size):
        for h in range(heads):
            result[e, h] = out[e, h] * (grad[e, h] - inner[target[e], h])
    return result
