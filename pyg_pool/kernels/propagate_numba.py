"""Numba twin of ``propagate.py``: one pass over the edges, row by row."""

from __future__ import annotations

from typing import Any

from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]


@njit(nogil=True, cache=True, fastmath={"contract"})
def propagate(x: Array, edge_index: Array, scale: Array, out: Array) -> None:
    """Writes the product of the scaled adjacency and the features."""
    width = x.shape[1]
    for i in range(x.shape[0]):
        own = scale[i] * scale[i]
        for f in range(width):
            out[i, f] = own * x[i, f]
    for e in range(edge_index.shape[1]):
        i, j = edge_index[0, e], edge_index[1, e]
        factor = scale[i] * scale[j]
        for f in range(width):
            out[i, f] += factor * x[j, f]
