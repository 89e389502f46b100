"""Numba twin of ``parse.py``: one pass over the edges, one walk along the links."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]


@njit(nogil=True, cache=True)
def _offer(best: Array, link: Array, node: int, other: int, score: float) -> None:
    """Takes an edge if it is better, or as good and leads to a lower node."""
    if link[node] < 0 or score > best[node]:
        best[node], link[node] = score, other
    elif score == best[node] and other < link[node]:
        link[node] = other


@njit(nogil=True, cache=True)
def dominant_links(
    edge_index: Array, score: Array, num_nodes: int, loops: Array, both_ways: bool
) -> Array:
    """The end of the best edge of each node, or the node itself."""
    best = np.empty(num_nodes, score.dtype)
    link = np.full(num_nodes, -1, np.int64)
    for e in range(score.size):
        value = score[e]
        source, target = edge_index[0, e], edge_index[1, e]
        if value != value or source == target:
            continue
        _offer(best, link, source, target, value)
        if both_ways:
            _offer(best, link, target, source, value)
    for u in range(num_nodes):
        if link[u] < 0 or (loops.size > 0 and loops[u] > best[u]):
            link[u] = u
    return link


@njit(nogil=True, cache=True)
def pair_links(pairs: Array, score: Array, num_nodes: int) -> Array:
    """:func:`dominant_links` of pairs that ascend, lower node first.

    A node meets its neighbours in their order: only a better edge takes over.
    """
    best = np.full(num_nodes, -np.inf, score.dtype)
    link = np.arange(num_nodes)
    lowest = False
    for e in range(score.size):
        value, low, high = score[e], pairs[0, e], pairs[1, e]
        lowest |= value == -np.inf
        # Without branches: which edge is the better one cannot be foreseen.
        old, to = best[low], link[low]
        best[low] = value if value > old else old
        link[low] = high if value > old else to
        old, to = best[high], link[high]
        best[high] = value if value > old else old
        link[high] = low if value > old else to
    if lowest:
        return dominant_links(pairs, score, num_nodes, score[:0], True)
    return link


@njit(nogil=True, cache=True)
def link_components(link: Array) -> tuple[Array, int]:
    """Groups of nodes joined by links, by smallest member, and their number."""
    group = np.full(link.size, -1, np.int64)
    count = 0
    for start in range(link.size):
        if group[start] >= 0:
            continue
        # A walk that comes back to itself (or to a known group) is one group.
        node = start
        while group[node] == -1:
            group[node] = -2
            node = link[node]
        number = group[node]
        if number == -2:
            number = count
            count += 1
        node = start
        while group[node] == -2:
            group[node] = number
            node = link[node]
    return group, count
