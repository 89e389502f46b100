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


@njit(nogil=True, cache=True)
def sort_few(values: Array) -> None:
    """Sorts in place, by insertion while there are few values."""
    if values.size > 32:
        values.sort()
        return
    for k in range(1, values.size):
        value, at = values[k], k
        while at > 0 and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value


@njit(nogil=True, cache=True)
def contract(
    edge_index: Array, cluster: Array, num_clusters: int
) -> tuple[Array, Array]:
    """Distinct edges between clusters, and the place of each edge or -1."""
    size = edge_index.shape[1]
    slot = np.empty(size, np.int64)
    start = np.zeros(num_clusters + 1, np.int64)
    for e in range(size):
        a, b = cluster[edge_index[0, e]], cluster[edge_index[1, e]]
        slot[e] = -1
        if a != b:
            start[a + 1] += 1
    for c in range(num_clusters):
        start[c + 1] += start[c]
    count = start[num_clusters]
    # The edges of each cluster, which are few: distinct ends are found by a mark.
    fill = start[:-1].copy()
    order = np.empty(count, np.int64)
    for e in range(size):
        a, b = cluster[edge_index[0, e]], cluster[edge_index[1, e]]
        if a != b:
            order[fill[a]] = e
            fill[a] += 1
    place = np.full(num_clusters, -1, np.int64)
    out = np.empty((2, count), np.int64)
    total = 0
    for c in range(num_clusters):
        first = total
        for k in range(start[c], start[c + 1]):
            b = cluster[edge_index[1, order[k]]]
            if place[b] < first:
                place[b] = total
                out[0, total], out[1, total] = c, b
                total += 1
        sort_few(out[1, first:total])
        for k in range(first, total):
            place[out[1, k]] = k
        for k in range(start[c], start[c + 1]):
            slot[order[k]] = place[cluster[edge_index[1, order[k]]]]
    return out[:, :total].copy(), slot
