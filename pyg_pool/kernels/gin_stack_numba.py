"""Compiled parts of :mod:`pyg_pool.kernels.gin_stack`, each one pass over a block."""

from __future__ import annotations

from typing import Any

from numba import njit

__all__ = ["activate", "center", "gate", "moments", "pass_back", "shift"]


@njit(nogil=True, cache=True)
def moments(rows: Any, mean: Any, spread: Any) -> None:
    """Writes mean and sum of squared gaps of each column."""
    size, width = rows.shape
    mean[:] = 0.0
    spread[:] = 0.0
    for i in range(size):
        for f in range(width):
            mean[f] += rows[i, f]
    for f in range(width):
        mean[f] /= size
    for i in range(size):
        for f in range(width):
            gap = rows[i, f] - mean[f]
            spread[f] += gap * gap


@njit(nogil=True, cache=True)
def activate(inner: Any, factor: Any, offset: Any, out: Any) -> None:
    """Writes ReLU of the normalised rows."""
    size, width = inner.shape
    zero = inner.dtype.type(0.0)
    for i in range(size):
        for f in range(width):
            value = inner[i, f] * factor[f] + offset[f]
            out[i, f] = value if value > zero else zero


@njit(nogil=True, cache=True)
def pass_back(grad: Any, out: Any, result: Any, total: Any) -> None:
    """Writes the gradient where the output is positive, and adds its columns up."""
    size, width = grad.shape
    zero = grad.dtype.type(0.0)
    for i in range(size):
        for f in range(width):
            value = grad[i, f] if out[i, f] > zero else zero
            result[i, f] = value
            total[f] += value


@njit(nogil=True, cache=True)
def gate(
    grad: Any, inner: Any, factor: Any, offset: Any, mean: Any, along: Any, total: Any
) -> None:
    """Cuts the gradient where ReLU did; adds up its columns, plain and along gaps."""
    size, width = grad.shape
    zero = grad.dtype.type(0.0)
    for i in range(size):
        for f in range(width):
            is_on = inner[i, f] * factor[f] + offset[f] > zero
            value = grad[i, f] if is_on else zero
            grad[i, f] = value
            total[f] += value
            along[f] += value * (inner[i, f] - mean[f])


@njit(nogil=True, cache=True)
def center(
    grad: Any, inner: Any, factor: Any, slope: Any, offset: Any, out: Any
) -> None:
    """Writes the gradient of the rows before the normalisation."""
    size, width = grad.shape
    for i in range(size):
        for f in range(width):
            out[i, f] = grad[i, f] * factor[f] + inner[i, f] * slope[f] + offset[f]


@njit(nogil=True, cache=True)
def shift(rows: Any, bias: Any) -> None:
    """Adds the bias and takes ReLU, in place."""
    size, width = rows.shape
    zero = rows.dtype.type(0.0)
    for i in range(size):
        for f in range(width):
            value = rows[i, f] + bias[f]
            rows[i, f] = zero if value < zero else value
