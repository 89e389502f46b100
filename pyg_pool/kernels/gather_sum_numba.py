"""Compiled twin of :mod:`pyg_pool.kernels.gather_sum`."""

from __future__ import annotations

from typing import Any

from numba import njit

__all__ = ["add"]


@njit(nogil=True, cache=True)
def add(x: Any, source: Any, target: Any, out: Any) -> None:
    """Adds the row of each edge's source to its target."""
    width = x.shape[1]
    for edge in range(source.size):
        u, v = source[edge], target[edge]
        for f in range(width):
            out[v, f] += x[u, f]
