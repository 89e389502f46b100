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
# The mean degree below which rows are short.
SHORT = 8


@njit(nogil=True, cache=True)
def inner_sums(bounds: tuple[int, int], rows: Rows, label: Array, inner: Array) -> None:
    """Similarity of each node to the others of its cluster, into ``inner``."""
    indptr, indices, value, scale = rows
    weighted, scaled = value.size > 0, scale.size > 0
    for i in range(bounds[0], bounds[1]):
        k = label[i]
        total: Any = 0.0
        for e in range(np.uintp(indptr[i]), np.uintp(indptr[i + 1])):
            j = np.uintp(indices[e])
            w = 1.0
            if weighted:
                w = np.float64(value[e])
            if scaled:
                w *= scale[j]
            total += w if label[j] == k else 0.0
        inner[i] = total * scale[i] if scaled else total


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
def gather(
    members: Array,
    rows: Rows,
    label: Array,
    near: Array,
    weight: Array,
    ascending: bool,
) -> np.uintp:
    """Clusters and weights along the rows of some nodes, one after the other.

    Rows of nodes that follow each other are read in one loop, if ``ascending``.
    """
    indptr, indices, value, scale = rows
    weighted, scaled = value.size > 0, scale.size > 0
    count, one = np.uintp(0), np.float32(1.0)
    t = 0
    while ascending and not scaled and t < members.size:
        begin = t
        t += 1
        while t < members.size and members[t] == members[t - 1] + 1:
            t += 1
        first = np.uintp(indptr[members[begin]])
        last = np.uintp(indptr[members[t - 1] + 1])
        for e in range(first, last):
            near[count + e - first] = label[np.uintp(indices[e])]
        if weighted:
            for e in range(first, last):
                weight[count + e - first] = value[e]
        count += last - first
    if ascending and not scaled:
        return count
    for t in range(members.size):
        i = np.uintp(members[t])
        first, last = np.uintp(indptr[i]), np.uintp(indptr[i + np.uintp(1)])
        for e in range(first, last):
            near[count + e - first] = label[np.uintp(indices[e])]
        if weighted:
            for e in range(first, last):
                weight[count + e - first] = value[e]
        if scaled:
            for e in range(first, last):
                w = weight[count + e - first] if weighted else one
                weight[count + e - first] = w * scale[i] * scale[np.uintp(indices[e])]
        count += last - first
    return count


@njit(nogil=True, cache=True)
def contract_range(
    bounds: tuple[int, int],
    rows: Rows,
    label: Array,
    sorted_nodes: tuple[Array, Array, Array],
    work: tuple[Array, Array, Array],
    out: tuple[Array, Array],
    length: Array,
    own: Array,
) -> int:
    """Rows of the coarse nodes ``bounds[0]`` to ``bounds[1]``; returns their entries.

    ``work`` is one zero for each cluster, zero again afterwards, and room for the
    clusters and weights along the rows of some coarse nodes. These are gathered ahead,
    and loops run over all of them, so that no branch waits for memory.
    """
    order, start, before = sorted_nodes
    total, near, weight = work
    index, value = out
    plain = rows[2].size == 0 and rows[3].size == 0
    short = rows[1].size < SHORT * label.size
    place: Any = np.uintp(0)
    up, one = np.uintp(1), np.float32(1.0)
    first, far = bounds[0], 0
    while first < bounds[1]:
        last = first + 1
        while last < bounds[1] and before[last + 1] - before[first] <= near.size:
            last += 1
        some = order[start[first] : start[last]]
        if short:
            # Short rows leave gaps in which memory would idle.
            far = touch_rows(some, rows, far)
        size = gather(some, rows, label, near, weight, False)
        if short:
            for p in range(size):
                far += total[np.uintp(near[p])] != 0
        own[first] += far
        shift = np.uintp(before[first])
        for k in range(np.uintp(first), np.uintp(last)):
            begin = place
            at, end = np.uintp(before[k]) - shift, np.uintp(before[k + up]) - shift
            if plain:
                for p in range(at, end):
                    total[np.uintp(near[p])] += one
            else:
                for p in range(at, end):
                    total[np.uintp(near[p])] += weight[p]
            own[k] += total[k]
            total[k] = 0
            for p in range(at, end):
                other = np.uintp(near[p])
                s = total[other]
                index[place], value[place] = other, s
                place += np.uintp(s != 0)
                total[other] = 0
            length[k] = place - begin
        first = last
    return place


@njit(nogil=True, cache=True)
def touch_rows(nodes: Array, rows: Rows, far: int) -> int:
    """Reads where the rows of some nodes begin, ahead of their use; adds nothing."""
    indptr, indices = rows[0], rows[1]
    last = np.uintp(indices.size - 1)
    for t in range(nodes.size):
        begin = np.uintp(indptr[np.uintp(nodes[t])])
        far += indices[min(begin, last)] < 0
    return far


@njit(nogil=True, cache=True)
def pull(index: Array, value: Array, source: int, count: int, place: int) -> None:
    """Moves entries to an earlier place of the same arrays."""
    for e in range(count):
        index[place + e] = index[source + e]
        value[place + e] = value[source + e]
