"""Numba twin of ``edges.py``: count the kept edges, then write them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]


@njit(nogil=True, cache=True)
def numbers(node_index: Array, num_nodes: int) -> Array:
    """The new number of each kept node, -1 elsewhere."""
    table = np.full(num_nodes, -1, np.int32)
    for c in range(node_index.size):
        if not 0 <= node_index[c] < num_nodes:
            raise IndexError("a node of node_index is out of range")
        table[node_index[c]] = c
    return table


@njit(nogil=True, cache=True)
def filter_edges(
    edge_index: Array, node_index: Array, num_nodes: int, keep_loops: bool
) -> tuple[Array, Array]:
    """Edges between the given nodes under their new numbers, and their old ids."""
    table = numbers(node_index, num_nodes)
    row, col = edge_index[0], edge_index[1]
    count = 0
    for e in range(row.size):
        if not (0 <= row[e] < num_nodes and 0 <= col[e] < num_nodes):
            raise IndexError("a node id of edge_index is out of range")
        # No branch: whether an edge stays is hard to predict.
        both = (table[row[e]] >= 0) & (table[col[e]] >= 0)
        count += both & (keep_loops | (row[e] != col[e]))
    out, ids = np.empty((2, count + 1), np.int64), np.empty(count + 1, np.int64)
    count = 0
    for e in range(row.size):
        source, target = table[row[e]], table[col[e]]
        out[0, count], out[1, count], ids[count] = source, target, e
        both = (source >= 0) & (target >= 0)
        count += both & (keep_loops | (row[e] != col[e]))
    return out[:, :count], ids[:count]


@njit(nogil=True, cache=True)
def incident_edges(
    edge_index: Array, node_index: Array, num_nodes: int, swap_loops: bool
) -> tuple[Array, Array, Array, Array]:
    """Edges leaving and edges entering the given nodes, and their old ids."""
    table = numbers(node_index, num_nodes)
    row, col = edge_index[0], edge_index[1]
    n_out = n_in = 0
    for e in range(row.size):
        if not (0 <= row[e] < num_nodes and 0 <= col[e] < num_nodes):
            raise IndexError("a node id of edge_index is out of range")
        stays = not (swap_loops & (row[e] == col[e]))
        n_out += stays & (table[row[e]] >= 0)
        n_in += stays & (table[col[e]] >= 0)
    extra = node_index.size if swap_loops else 0
    left = np.empty((2, n_out + extra + 1), np.int64)
    right = np.empty((2, n_in + extra + 1), np.int64)
    out_ids, in_ids = np.empty(n_out + 1, np.int64), np.empty(n_in + 1, np.int64)
    n_out = n_in = 0
    for e in range(row.size):
        source, target = table[row[e]], table[col[e]]
        left[0, n_out], left[1, n_out], out_ids[n_out] = source, col[e], e
        right[0, n_in], right[1, n_in], in_ids[n_in] = row[e], target, e
        stays = not (swap_loops & (row[e] == col[e]))
        n_out += stays & (source >= 0)
        n_in += stays & (target >= 0)
    for c in range(extra):
        left[0, n_out + c], left[1, n_out + c] = c, node_index[c]
        right[0, n_in + c], right[1, n_in + c] = node_index[c], c
    return (
        left[:, : n_out + extra],
        out_ids[:n_out],
        right[:, : n_in + extra],
        in_ids[:n_in],
    )
