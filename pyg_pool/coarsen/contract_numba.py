"""Compiled loops that add up a similarity over the clusters of a partition.

``rows`` is always ``(indptr, indices, value, scale)``: entry ``e`` of row ``i`` stands
for ``value[e] * scale[i] * scale[indices[e]]``, where an empty array means ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]
Rows = tuple[Array, Array, Array, Array]


@njit(nogil=True, cache=True)
def inner_sums(rows: Rows, label: Array, own: Array) -> None:
    """Adds to ``own`` the entries inside each cluster, both directions."""
    indptr, indices, value, scale = rows
    for i in range(indptr.size - 1):
        k = label[i]
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if label[j] == k:
                w = 1.0
                if value.size > 0:
                    w = np.float64(value[e])
                if scale.size > 0:
                    w *= scale[j]
                total += w
        if scale.size > 0:
            total *= scale[i]
        own[k] += total


@njit(nogil=True, cache=True)
def square_sum(rows: Rows, mass: Array) -> float:
    """Sum over all entries of their square, divided by both masses."""
    indptr, indices, value, scale = rows
    total = 0.0
    for i in range(indptr.size - 1):
        part = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            w = 1.0
            if value.size > 0:
                w = np.float64(value[e])
            if scale.size > 0:
                w *= scale[j]
            part += w * w / mass[j]
        if scale.size > 0:
            part *= scale[i] * scale[i]
        total += part / mass[i]
    return total


@njit(nogil=True, cache=True)
def members(label: Array, indptr: Array, order: Array, start: Array) -> Array:
    """Sorts nodes by cluster; returns how many entries precede each cluster's rows.

    ``order`` gets the nodes and ``start``, of one more than the clusters, their bounds.
    """
    n = start.size - 1
    before = np.zeros(n + 1, np.int64)
    for i in range(label.size):
        start[label[i] + 1] += 1
        before[label[i] + 1] += indptr[i + 1] - indptr[i]
    for k in range(n):
        start[k + 1] += start[k]
        before[k + 1] += before[k]
    for i in range(label.size):
        order[start[label[i]]] = i
        start[label[i]] += 1
    for k in range(n, 0, -1):
        start[k] = start[k - 1]
    start[0] = 0
    return before


@njit(nogil=True, cache=True)
def contract_range(
    bounds: tuple[int, int],
    rows: Rows,
    label: Array,
    sorted_nodes: tuple[Array, Array],
    mark: Array,
    out: tuple[Array, Array],
    length: Array,
    own: Array,
) -> int:
    """Rows of the coarse nodes ``bounds[0]`` to ``bounds[1]``; returns their entries.

    ``mark[k]`` is where cluster ``k`` was put last, trusted only if it stands there, so
    it never needs to be cleared.
    """
    indptr, indices, value, scale = rows
    order, start = sorted_nodes
    out_index, out_value = out
    weighted, scaled = value.size > 0, scale.size > 0
    place = 0
    for k in range(bounds[0], bounds[1]):
        begin = place
        inside: Any = 0.0
        for t in range(start[k], start[k + 1]):
            i = order[t]
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                w = np.float32(1.0)
                if weighted:
                    w = value[e]
                if scaled:
                    w *= scale[i] * scale[j]
                other = label[j]
                if other == k:
                    inside += w
                    continue
                p = mark[other]
                if begin <= p < place and out_index[p] == other:
                    out_value[p] += w
                else:
                    mark[other] = place
                    out_index[place] = other
                    out_value[place] = w
                    place += 1
        own[k] += inside
        length[k] = place - begin
    return place
