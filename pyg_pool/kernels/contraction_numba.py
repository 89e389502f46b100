"""Numba twin of ``contraction.py``: sequential walks over sorted edges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]


@njit(nogil=True, cache=True)
def reverse_edges(edge_index: Array, num_nodes: int) -> Array:
    """Position of each edge's opposite; the last entry is 0 where there is one."""
    size = edge_index.shape[1]
    out = np.full(size + 1, -1, np.int64)
    start = np.zeros(num_nodes + 1, np.int64)
    for e in range(size):
        start[edge_index[0, e] + 1] += 1
    for v in range(num_nodes):
        start[v + 1] += start[v]
    # Opposites of the edges (i, j), i < j, come in the order of i, as do these.
    free = start[:-1].copy()
    last = np.int64(-1)
    for e in range(size):
        i, j = edge_index[0, e], edge_index[1, e]
        key = i * num_nodes + j
        if key <= last or i == j:
            return out
        last = key
        if i > j:
            continue
        other = free[j]
        if other >= start[j + 1] or edge_index[1, other] != i:
            return out
        if edge_index[0, other] != j:
            return out
        free[j] += 1
        out[e], out[other] = other, e
    for e in range(size):
        if out[e] < 0:
            return out
    out[size] = 0
    return out


@njit(nogil=True, cache=True)
def _root(parent: Array, node: int) -> int:
    """Representative of a node, with the path to it halved."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@njit(nogil=True, cache=True)
def merge_pairs(pairs: Array, num_nodes: int) -> tuple[Array, int]:
    """Components joined by pairs, by smallest member, and their number."""
    parent = np.arange(num_nodes)
    for p in range(pairs.shape[1]):
        a, b = _root(parent, pairs[0, p]), _root(parent, pairs[1, p])
        if a < b:
            parent[b] = a
        elif b < a:
            parent[a] = b
    number = np.empty(num_nodes, np.int64)
    count = 0
    for v in range(num_nodes):
        root = _root(parent, v)
        if root == v:
            number[v] = count
            count += 1
        else:
            number[v] = number[root]
    return number, count


@njit(nogil=True, cache=True)
def match(pairs: Array, order: Array, graph: Array, limit: Array, size: int) -> Array:
    """Takes pairs in order whose ends are both free, up to a number per graph."""
    taken = np.zeros(pairs.shape[1], np.bool_)
    used = np.zeros(size, np.bool_)
    left = limit.copy()
    for p in order:
        a, b, g = pairs[0, p], pairs[1, p], graph[p]
        if left[g] > 0 and not used[a] and not used[b]:
            taken[p] = used[a] = used[b] = True
            left[g] -= 1
    return taken


@njit(nogil=True, cache=True)
def grow(
    pairs: Array, order: Array, graph: Array, limit: Array, size: int, most: int
) -> Array:
    """Takes pairs in order that leave no cluster larger than ``most``."""
    taken = np.zeros(pairs.shape[1], np.bool_)
    parent = np.arange(size)
    members = np.ones(size, np.int64)
    left = limit.copy()
    for p in order:
        g = graph[p]
        if left[g] <= 0:
            continue
        a, b = _root(parent, pairs[0, p]), _root(parent, pairs[1, p])
        if a != b:
            if members[a] + members[b] > most:
                continue
            parent[b] = a
            members[a] += members[b]
        taken[p] = True
        left[g] -= 1
    return taken
