"""Compiled twin of :mod:`pyg_pool.kernels.join_product`."""

from __future__ import annotations

from typing import Any

from numba import njit

__all__ = ["add", "add_gradient"]


@njit(nogil=True, cache=True)
def add(a: Any, b: Any, triples: Any, out: Any) -> None:
    """Adds the products of joined rows to their targets."""
    width = a.shape[1]
    for place in range(triples.shape[1]):
        p, i, j = triples[0, place], triples[1, place], triples[2, place]
        for f in range(width):
            out[p, f] += a[i, f] * b[j, f]


@njit(nogil=True, cache=True)
def add_gradient(
    a: Any, b: Any, triples: Any, grad: Any, grad_a: Any, grad_b: Any
) -> None:
    """Adds the gradients of both factors."""
    width = a.shape[1]
    for place in range(triples.shape[1]):
        p, i, j = triples[0, place], triples[1, place], triples[2, place]
        for f in range(width):
            grad_a[i, f] += grad[p, f] * b[j, f]
            grad_b[j, f] += grad[p, f] * a[i, f]
