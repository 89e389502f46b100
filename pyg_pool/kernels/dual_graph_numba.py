"""Numba twin of ``dual_graph.py``: counting sorts and merges of sorted lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]


@njit(nogil=True, cache=True)
def _sorted_by(values: Array, order: Array, size: int) -> Array:
    """Stable counting sort of positions by a value below ``size``."""
    start = np.zeros(size + 1, np.int64)
    for k in order:
        start[values[k] + 1] += 1
    for v in range(size):
        start[v + 1] += start[v]
    out = np.empty_like(order)
    for k in order:
        out[start[values[k]]] = k
        start[values[k]] += 1
    return out


@njit(nogil=True, cache=True)
def coarse_pairs(pairs: Array, cluster: Array, count: int) -> tuple[Array, Array]:
    """Distinct pairs of clusters in order, and that of each pair, -1 inside one."""
    size = pairs.shape[1]
    low, high = np.empty(size, np.int64), np.empty(size, np.int64)
    kept = np.empty(size, np.int64)
    number = 0
    for p in range(size):
        a, b = cluster[pairs[0, p]], cluster[pairs[1, p]]
        low[p], high[p] = min(a, b), max(a, b)
        if a != b:
            kept[number] = p
            number += 1
    order = _sorted_by(low, _sorted_by(high, kept[:number], count), count)
    inverse = np.full(size, -1, np.int64)
    found = np.empty((2, number), np.int64)
    last = -1
    for p in order:
        if last < 0 or found[0, last] != low[p] or found[1, last] != high[p]:
            last += 1
            found[0, last], found[1, last] = low[p], high[p]
        inverse[p] = last
    return found[:, : last + 1].copy(), inverse


@njit(nogil=True, cache=True)
def both_ways(pairs: Array, num_nodes: int) -> tuple[Array, Array]:
    """Both directions of sorted pairs, sorted, and where each pair's are."""
    size = pairs.shape[1]
    free = np.zeros(num_nodes + 1, np.int64)
    for p in range(size):
        free[pairs[0, p] + 1] += 1
        free[pairs[1, p] + 1] += 1
    for v in range(num_nodes):
        free[v + 1] += free[v]
    edges = np.empty((2, 2 * size), np.int64)
    place = np.empty((2, size), np.int64)
    # A node's lower neighbours come before its higher ones.
    for way in (1, 0):
        for p in range(size):
            source, target = pairs[way, p], pairs[1 - way, p]
            e = free[source]
            free[source] += 1
            edges[0, e], edges[1, e] = source, target
            place[way, p] = e
    return edges, place


@njit(nogil=True, cache=True)
def _starts(source: Array, num_nodes: int) -> Array:
    """Where the edges out of each node start, and the end of the last."""
    start = np.zeros(num_nodes + 1, np.int64)
    for e in range(source.size):
        start[source[e] + 1] += 1
    for v in range(num_nodes):
        start[v + 1] += start[v]
    return start


@njit(nogil=True, cache=True)
def _edges_of(edges: Array, edge_to_dual: Array, size: int, is_single: bool) -> Array:
    """An edge of each dual node, the upward one of two."""
    out = np.empty(size, np.int64)
    for e in range(edges.shape[1]):
        if not is_single or edges[0, e] < edges[1, e]:
            out[edge_to_dual[e]] = e
    return out


@njit(nogil=True, cache=True)
def dual_edges(
    edge_index: Array,
    edge_to_dual: Array,
    reverse: Array,
    num_nodes: int,
    num_dual: int,
    is_single: bool,
    is_directed: bool,
    loops: bool,
) -> Array:
    """Edges between dual nodes, sorted by source and target."""
    start = _starts(edge_index[0], num_nodes)
    total = num_dual if loops else 0
    for v in range(num_nodes):
        degree = start[v + 1] - start[v]
        total += degree * (degree - 1) * (1 if is_single or is_directed else 2)
    edge_of = _edges_of(edge_index, edge_to_dual, num_dual, is_single)
    out = np.empty((2, total), np.int64)
    k = 0
    for d in range(num_dual):
        i, j = edge_index[0, edge_of[d]], edge_index[1, edge_of[d]]
        # Two ascending lists: dual nodes at (or into) i, and at (or out of) j.
        left, right = start[i], start[j]
        left_end = start[i] if is_directed else start[i + 1]
        right_end = start[j + 1]
        waits = loops
        while True:
            if left < left_end and edge_index[1, left] == j:
                left += 1
                continue
            if right < right_end and edge_index[1, right] == i:
                right += 1
                continue
            has_left, has_right = left < left_end, right < right_end
            a = b = num_dual
            if has_left:
                a = edge_to_dual[left] if is_single else edge_to_dual[reverse[left]]
            if has_right:
                b = edge_to_dual[right]
            if waits and d < a and d < b:
                waits = False
                out[0, k], out[1, k] = d, d
            elif not (has_left or has_right):
                break
            elif a < b:
                out[0, k], out[1, k] = d, a
                left += 1
            else:
                out[0, k], out[1, k] = d, b
                right += 1
            k += 1
    return out
