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

from pyg_pool.coarsen.contract_numba import Rows

Array = NDArray[Any]


@njit(nogil=True, cache=True, inline="always")
def tie_value(i: int, j: int, seed: int) -> np.uint64:
    """A number for an unordered pair, the same from both ends."""
    low, high = np.uint64(min(i, j)), np.uint64(max(i, j))
    key = low * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    key ^= (high + np.uint64(1)) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


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
    """The neighbour of least merge cost of each free node; larger hash on ties.

    A partner found earlier that is still free stays the best one.
    """
    indptr, indices, value, scale = rows
    weighted, scaled, locked = value.size > 0, scale.size > 0, lock.size > 0
    capped = cap < np.inf
    two = np.float32(2.0)
    for i in range(bounds[0], bounds[1]):
        s_i, c_i = record[i, 1], record[i, 0]
        if s_i == np.inf:
            continue
        if best[i] >= 0 and record[best[i], 1] < np.inf:
            continue
        found: Any = np.int64(-1)
        least = np.float32(np.inf)
        tie, has_tie = np.uint64(0), False
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            c_j = record[j, 0]
            w = np.float32(1.0)
            if weighted:
                w = value[e]
            if scaled:
                w *= scale[i] * scale[j]
            w = (s_i * c_j + record[j, 1] * c_i - two * w) / (c_i + c_j)
            if w > least or w == np.inf:
                continue
            if locked and lock[i] > 0 and lock[j] > 0:
                continue
            if capped and c_i + c_j > cap:
                continue
            if w < least:
                found, least, has_tie = j, w, False
                continue
            if not has_tie:
                tie, has_tie = tie_value(i, found, seed), True
            other = tie_value(i, j, seed)
            if other > tie:
                found, tie = j, other
        best[i] = found
        cost[i] = least


@njit(nogil=True, cache=True)
def mutual_pairs(best: Array, record: Array) -> Array:
    """Lower nodes of the pairs of free nodes that are each other's best."""
    count = 0
    for i in range(best.size):
        j = best[i]
        if j > i and best[j] == i and record[i, 1] < np.inf:
            count += 1
    out = np.empty(count, np.int64)
    count = 0
    for i in range(best.size):
        j = best[i]
        if j > i and best[j] == i and record[i, 1] < np.inf:
            out[count] = i
            count += 1
    return out


@njit(nogil=True, cache=True)
def merge_pairs(first: Array, best: Array, record: Array, group: Array) -> None:
    """Makes pairs of the given nodes and their partners."""
    for t in range(first.size):
        i = first[t]
        j = best[i]
        group[i] = i
        group[j] = i
        record[i, 1] = np.inf
        record[j, 1] = np.inf


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
