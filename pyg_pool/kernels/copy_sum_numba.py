"""Compiled twin of :mod:`pyg_pool.kernels.copy_sum`: copy by copy, edge by edge."""

from __future__ import annotations

from typing import Any

from numba import njit

__all__ = ["add_edges", "add_rows", "back_edges", "back_weights"]


@njit(nogil=True, cache=True)
def add_rows(
    x: Any, source: Any, target: Any, ids: Any, out: Any, weight: Any, count: int,
    size: int,
) -> None:  # fmt: skip
    """Adds the rows of the sources, times the weights of one or all columns, if any."""
    width, ways = x.shape[1], weight.shape[1]
    for c in range(count):
        first = c * size
        for i in range(source.size):
            u, v = first + source[i], first + target[i]
            if ways == 0:
                for f in range(width):
                    out[v, f] += x[u, f]
            elif ways == 1:
                w = weight[ids[i], 0]
                for f in range(width):
                    out[v, f] += w * x[u, f]
            else:
                e = ids[i]
                for f in range(width):
                    out[v, f] += weight[e, f] * x[u, f]


@njit(nogil=True, cache=True)
def back_weights(
    x: Any, source: Any, target: Any, ids: Any, grad: Any, out: Any, count: int,
    size: int,
) -> None:  # fmt: skip
    """Adds to each weight the products of the rows at its edge's ends."""
    width, is_wide = x.shape[1], out.shape[1] > 1
    for c in range(count):
        first = c * size
        for i in range(source.size):
            u, v, e = first + source[i], first + target[i], ids[i]
            if is_wide:
                for f in range(width):
                    out[e, f] += x[u, f] * grad[v, f]
                continue
            total = x.dtype.type(0.0)
            for f in range(width):
                total += x[u, f] * grad[v, f]
            out[e, 0] += total


@njit(nogil=True, cache=True)
def add_edges(
    x: Any, source: Any, target: Any, ids: Any, out: Any, edge: Any, count: int,
    size: int,
) -> None:  # fmt: skip
    """Adds ReLU of the rows of the sources plus the features of the edges."""
    width, zero = x.shape[1], x.dtype.type(0.0)
    for c in range(count):
        first = c * size
        for i in range(source.size):
            u, v, e = first + source[i], first + target[i], ids[i]
            for f in range(width):
                value = x[u, f] + edge[e, f]
                # NaN is not below 0 and stays, as in torch's ReLU.
                out[v, f] += zero if value < zero else value


@njit(nogil=True, cache=True)
def back_edges(
    x: Any, source: Any, target: Any, ids: Any, grad: Any, first_grad: Any, edge: Any,
    edge_grad: Any, count: int, size: int,
) -> None:  # fmt: skip
    """Gradients of the rows and of the features, where ReLU lets them pass."""
    width, zero = x.shape[1], x.dtype.type(0.0)
    for c in range(count):
        first = c * size
        for i in range(source.size):
            u, v, e = first + source[i], first + target[i], ids[i]
            for f in range(width):
                value = grad[v, f] if x[u, f] + edge[e, f] > zero else zero
                first_grad[u, f] += value
                edge_grad[e, f] += value
