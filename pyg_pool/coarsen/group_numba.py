"""Compiled loops that find which nodes of a level merge.

``rows`` is described in ``contract_numba``. ``record[i]`` holds the mass of node ``i``
and its own similarity by mass, infinite where the node may not merge any more, so that
one read of eight bytes tells all about a neighbour.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyg_pool.coarsen.contract_numba import SHORT, Rows
from pyg_pool.coarsen.degree_numba import GOLDEN, tie_start

Array = NDArray[Any]
# Nodes that are looked at together.
AHEAD = 256


@njit(nogil=True, cache=True)
def best_partners(
    bounds: tuple[int, int],
    rows: Rows,
    record: Array,
    lock: Array,
    best: Array,
    cost: Array,
    cap: float,
    seed: int,
) -> None:
    """The neighbour of least merge cost of each free node; by a hash on ties.

    A partner found earlier that is still free stays the best one.
    """
    indptr, indices = rows[0], rows[1]
    nodes = np.empty(AHEAD, np.int64)
    short = indices.size < SHORT * best.size
    none, i, far = np.float32(np.inf), bounds[0], 0
    while i < bounds[1]:
        count = 0
        while i < bounds[1] and count < nodes.size:
            b = best[i]
            nodes[count] = i
            count += record[i, 1] < none and (b < 0 or record[b, 1] == none)
            i += 1
        if short:
            # Short rows leave gaps in which memory would idle: what they lead to is
            # touched ahead.
            for t in range(count):
                k = np.uintp(nodes[t])
                first, last = np.uintp(indptr[k]), np.uintp(indptr[k + np.uintp(1)])
                for e in range(first, last):
                    far += record[np.uintp(indices[e]), 0] < 0
        seek(nodes[:count], rows, record, lock, best, cost, cap + far, seed)


@njit(nogil=True, cache=True, error_model="numpy")
def seek(
    nodes: Array,
    rows: Rows,
    record: Array,
    lock: Array,
    best: Array,
    cost: Array,
    cap: float,
    seed: int,
) -> None:
    """The neighbour of least cost of each node, or -1; without branches on costs.

    Costs are not below zero but for rounding, so that their bits are in order, and a
    hash of the pair below them decides between equal ones alike from both ends.
    """
    indptr, indices, value, scale = rows
    weighted, scaled = value.size > 0, scale.size > 0
    locked, capped = lock.size > 0, cap < np.inf
    zero, two, none = np.float32(0.0), np.float32(2.0), np.float32(np.inf)
    start, half = np.uint32(tie_start(seed)), np.int64(32)
    nothing = np.int64(none.view(np.int32)) << half
    for t in range(nodes.size):
        i = np.uintp(nodes[t])
        s_i, c_i = record[i, 1], record[i, 0]
        first, last = np.uintp(indptr[i]), np.uintp(indptr[i + np.uintp(1)])
        factor = two * scale[i] if scaled else two
        least, found = nothing, np.int64(-1)
        for e in range(first, last):
            j = np.uintp(indices[e])
            c_j = record[j, 0]
            w = factor
            if weighted:
                w *= value[e]
            if scaled:
                w *= scale[j]
            w = (s_i * c_j + record[j, 1] * c_i - w) / (c_i + c_j)
            w = w if w > zero else zero
            if locked:
                w = none if lock[i] > 0 and lock[j] > 0 else w
            if capped:
                w = none if c_i + c_j > cap else w
            tie = np.int64(np.uint32(np.uint32(np.uint32(i ^ j) * GOLDEN) + start))
            key = (np.int64(np.float32(w).view(np.int32)) << half) | tie
            found = np.int64(j) if key < least else found
            least = min(key, least)
        best[i] = found
        cost[i] = np.int32(least >> half).view(np.float32)


@njit(nogil=True, cache=True)
def mutual_pairs(bounds: tuple[int, int], best: Array, group: Array) -> Array:
    """Lower nodes of the pairs of nodes without group that are each other's best."""
    out = np.empty((bounds[1] - bounds[0]) + 1, best.dtype)
    count = 0
    for i in range(np.uintp(bounds[0]), np.uintp(bounds[1])):
        j = np.int64(best[i])
        out[count] = i
        upper = j > np.int64(i)
        back = best[np.uintp(j) if upper else i]
        count += upper & (back == np.int64(i)) & (group[i] < 0)
    return out[:count].copy()


@njit(nogil=True, cache=True)
def merge_pairs(
    first: Array, best: Array, taken: Array, mark: float, group: Array
) -> None:
    """Makes pairs of the given nodes and their partners; ``taken`` gets ``mark``."""
    for t in range(first.size):
        i = first[t]
        j = best[i]
        group[i] = i
        group[j] = i
        taken[i] = mark
        taken[j] = mark


@njit(nogil=True, cache=True)
def join_all(best: Array, group: Array) -> int:
    """Every single node joins the group of its best neighbour; returns how many did.

    Costs fall along the way from a node to its best neighbour, so that following it
    ends in a group. Rounding may close a circle: its last node then opens a group.
    """
    joined = 0
    path = np.empty(64, np.int64)
    for i in range(best.size):
        if group[i] >= 0 or best[i] < 0:
            continue
        count, k = 0, np.int64(i)
        while group[k] < 0 and best[k] >= 0 and count < path.size:
            path[count] = k
            count += 1
            k = best[k]
        opened = group[k] < 0
        if opened:
            group[k] = k
        for t in range(count):
            if path[t] != k:
                joined += group[path[t]] < 0
                group[path[t]] = group[k]
    return joined


@njit(nogil=True, cache=True)
def join_in_order(
    order: Array,
    best: Array,
    group: Array,
    mass: Array,
    lock: Array,
    cap: float,
    need: int,
) -> int:
    """Single nodes join in the given order, while ``need`` lasts and limits allow.

    ``mass`` and ``lock`` of the first node of a group are those of the group.
    """
    joined = 0
    for t in range(order.size):
        i = order[t]
        j = best[i]
        if joined >= need:
            break
        if group[i] >= 0 or j < 0:
            continue
        root = group[j] if group[j] >= 0 else j
        if mass[root] + mass[i] > cap:
            continue
        if lock.size > 0 and lock[root] > 0 and lock[i] > 0:
            continue
        group[j] = root
        group[i] = root
        mass[root] += mass[i]
        if lock.size > 0:
            lock[root] = max(lock[root], lock[i])
        joined += 1
    return joined


@njit(nogil=True, cache=True)
def add_up(group: Array, mass: Array, lock: Array) -> None:
    """Moves masses and locks of members to the first node of their group."""
    for i in range(group.size):
        root = group[i]
        if root >= 0 and root != i:
            mass[root] += mass[i]
            mass[i] = 0
            if lock.size > 0:
                lock[root] = max(lock[root], lock[i])


@njit(nogil=True, cache=True)
def number_groups(group: Array, label: Array) -> int:
    """Labels by first member; a node without group is one by itself."""
    number = np.full(group.size, -1, group.dtype)
    count = 0
    for i in range(group.size):
        root = group[i] if group[i] >= 0 else i
        if number[root] < 0:
            number[root] = count
            count += 1
        label[i] = number[root]
    return count


@njit(nogil=True, cache=True)
def number_by_first(label: Array, bound: int, out: Array) -> int:
    """Labels below ``bound`` renumbered by first member; returns their number."""
    number = np.full(bound, -1, np.int64)
    count = 0
    for i in range(label.size):
        k = label[i]
        if number[k] < 0:
            number[k] = count
            count += 1
        out[i] = number[k]
    return count
