"""Compiled twin of :mod:`pyg_pool.kernels.tuple_propagate`.

Threads share the coordinate that stays: no two of them write to one row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pyg_pool.kernels.threads import run_spans, spans

__all__ = ["propagate"]


@njit(nogil=True, cache=True)
def by_graph(edge_index: Any, ptr: Any) -> tuple[Any, Any]:
    """Edges graph by graph, in their order, and the first one of each graph."""
    size, length = ptr.size - 1, edge_index.shape[1]
    owner = np.empty(ptr[-1], np.int64)
    for g in range(size):
        owner[ptr[g] : ptr[g + 1]] = g
    start = np.zeros(size + 1, np.int64)
    for e in range(length):
        start[owner[edge_index[0, e]] + 1] += 1
    for g in range(size):
        start[g + 1] += start[g]
    free, order = start.copy(), np.empty(length, np.int64)
    for e in range(length):
        g = owner[edge_index[0, e]]
        order[free[g]] = e
        free[g] += 1
    return order, start


@njit(nogil=True, cache=True)
def move_first(
    x: Any, edges: Any, order: Any, start: Any, ptr: Any, low: int, high: int, out: Any
) -> None:
    """Along the first coordinate, for second ones from ``low`` to ``high``."""
    base, width = 0, x.shape[1]
    for g in range(ptr.size - 1):
        p, n = ptr[g], ptr[g + 1] - ptr[g]
        a, b = max(low, p), min(high, ptr[g + 1])
        if a < b:
            for i in range(start[g], start[g + 1]):
                e = order[i]
                s = base + (edges[0, e] - p) * n + a - p
                t = base + (edges[1, e] - p) * n + a - p
                for k in range(b - a):
                    for f in range(width):
                        out[t + k, f] += x[s + k, f]
        base += n * n


@njit(nogil=True, cache=True)
def move_second(
    x: Any, edges: Any, order: Any, start: Any, ptr: Any, low: int, high: int, out: Any
) -> None:
    """Along the second coordinate, for first ones from ``low`` to ``high``."""
    base, width = 0, x.shape[1]
    for g in range(ptr.size - 1):
        p, n = ptr[g], ptr[g + 1] - ptr[g]
        for u in range(max(low, p), min(high, ptr[g + 1])):
            row = base + (u - p) * n - p
            for i in range(start[g], start[g + 1]):
                e = order[i]
                s, t = row + edges[0, e], row + edges[1, e]
                for f in range(width):
                    out[t, f] += x[s, f]
        base += n * n


def propagate(x: Any, edge_index: Any, ptr: Any, axis: int, out: Any) -> None:
    """Adds the messages to ``out``."""
    order, start = by_graph(edge_index, ptr)
    run = move_second if axis else move_first

    def part(low: int, high: int) -> None:
        run(x, edge_index, order, start, ptr, low, high, out)

    run_spans(part, spans(int(ptr[-1]), x.size))
