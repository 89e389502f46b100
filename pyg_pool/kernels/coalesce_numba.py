"""Numba twin of ``coalesce.py``: edges in order by counting, in O(N + E)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]


@njit(nogil=True, cache=True)
def counted_order(row: Array, col: Array, num_nodes: int) -> Array:
    """The stable order of edges by row, then column, in O(N + E)."""
    by_col, order = np.empty(row.size, np.int64), np.empty(row.size, np.int64)
    start = np.zeros(num_nodes + 1, np.int64)
    for e in range(row.size):
        start[col[e] + 1] += 1
    for u in range(num_nodes):
        start[u + 1] += start[u]
    for e in range(row.size):
        by_col[start[col[e]]] = e
        start[col[e]] += 1
    start[:] = 0
    for e in range(row.size):
        start[row[e] + 1] += 1
    for u in range(num_nodes):
        start[u + 1] += start[u]
    for k in range(row.size):
        e = by_col[k]
        order[start[row[e]]] = e
        start[row[e]] += 1
    return order


@njit(nogil=True, cache=True)
def coalesce(row: Array, col: Array, num_nodes: int) -> tuple[Array, Array]:
    """Distinct edges in order, and the number of each given edge among them."""
    order = counted_order(row, col, num_nodes)
    out = np.empty((2, row.size), np.int64)
    slot = np.empty(row.size, np.int64)
    count = 0
    for k in range(row.size):
        e = order[k]
        if count == 0 or out[0, count - 1] != row[e] or out[1, count - 1] != col[e]:
            out[0, count], out[1, count] = row[e], col[e]
            count += 1
        slot[e] = count - 1
    return out[:, :count].copy(), slot
