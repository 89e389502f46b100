"""Compiled Ward merging with moves for many small graphs in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyg_pool.coarsen.dense_numba import single_moves, ward_merges

Array = NDArray[Any]


@njit(nogil=True, cache=True)
def ward_graphs(
    bounds: tuple[int, int],
    node_start: Array,
    edge_start: Array,
    edges: tuple[Array, Array, Array],
    target: Array,
    kernel: int,
    sweeps: int,
    label: Array,
) -> None:
    """Clusters of the graphs ``bounds[0]`` to ``bounds[1]``, numbered from 0 in each.

    ``edges`` are row, column and weight (or no weights); both directions are there,
    duplicates add up. ``kernel`` is 0 for rw with degrees as masses, 1 for normalized
    and 2 for signless with equal masses.
    """
    row, col, weight = edges
    for g in range(bounds[0], bounds[1]):
        first, n = node_start[g], node_start[g + 1] - node_start[g]
        if n == 0:
            continue
        if target[g] >= n:
            for i in range(n):
                label[first + i] = i
            continue
        q = np.zeros((n, n))
        degree = np.zeros(n)
        for e in range(edge_start[g], edge_start[g + 1]):
            w = weight[e] if weight.size > 0 else 1.0
            q[row[e] - first, col[e] - first] += w
            degree[row[e] - first] += w
        mass = np.ones(n)
        for i in range(n):
            safe = degree[i] if degree[i] > 0 else 1.0
            if kernel == 0:
                mass[i] = safe
                q[i, i] += safe
            elif kernel == 2:
                q[i, i] += degree[i]
        if kernel == 1:
            for i in range(n):
                for j in range(n):
                    if q[i, j] != 0:
                        q[i, j] /= np.sqrt(degree[i] * degree[j])
                q[i, i] += 1.0
        owner = ward_merges(q.copy(), mass.copy(), target[g])
        own_label(owner)
        if sweeps > 0:
            single_moves(q, mass, owner, target[g], sweeps)
            own_label(owner)
        for i in range(n):
            label[first + i] = owner[i]


@njit(nogil=True, cache=True)
def own_label(owner: Array) -> None:
    """Numbers labels by first member, in place."""
    number = np.full(owner.size, -1)
    count = 0
    for i in range(owner.size):
        k = owner[i]
        if number[k] < 0:
            number[k] = count
            count += 1
        owner[i] = number[k]
