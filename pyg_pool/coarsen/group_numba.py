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
    work: tuple[Array, Array],
) -> None:
    """The neighbour of least merge cost of each free node; larger hash on ties.

    A partner found earlier that is still free stays the best one. ``work`` has room for
    the costs along the rows of some nodes, computed ahead of what branches on them, and
    for these nodes.
    """
    indptr = rows[0]
    price, nodes = work
    limited = lock.size > 0 or cap < np.inf
    none, i = np.float32(np.inf), bounds[0]
    while i < bounds[1]:
        count, room = 0, price.size
        while i < bounds[1] and count < nodes.size:
            b = best[i]
            if record[i, 1] < none and (b < 0 or record[b, 1] == none):
                room -= indptr[i + 1] - indptr[i]
                if room < 0 and count > 0:
                    break
                nodes[count] = i
                count += 1
            i += 1
        merge_costs(nodes[:count], rows, record, price)
        if limited:
            forbid(nodes[:count], rows, record, lock, cap, price)
        choose(nodes[:count], rows, price, seed, best, cost)


@njit(nogil=True, cache=True, error_model="numpy")
def merge_costs(nodes: Array, rows: Rows, record: Array, price: Array) -> None:
    """Cost of merging along the rows of some nodes, one after the other."""
    indptr, indices, value, scale = rows
    weighted, scaled = value.size > 0, scale.size > 0
    two = np.float32(2.0)
    place = np.uintp(0)
    for t in range(nodes.size):
        i = np.uintp(nodes[t])
        s_i, c_i = record[i, 1], record[i, 0]
        first, last = np.uintp(indptr[i]), np.uintp(indptr[i + np.uintp(1)])
        factor = two * scale[i] if scaled else two
        for e in range(first, last):
            j = np.uintp(indices[e])
            c_j = record[j, 0]
            w = factor
            if weighted:
                w *= value[e]
            if scaled:
                w *= scale[j]
            w = (s_i * c_j + record[j, 1] * c_i - w) / (c_i + c_j)
            price[place + e - first] = w
        place += last - first


@njit(nogil=True, cache=True)
def choose(
    nodes: Array, rows: Rows, price: Array, seed: int, best: Array, cost: Array
) -> None:
    """The neighbour of least cost of each node, or -1; without branches on costs."""
    indptr, indices = rows[0], rows[1]
    key, zero = np.uint64(seed), np.uint64(0)
    none = np.float32(np.inf)
    place = np.uintp(0)
    for t in range(nodes.size):
        i = np.uintp(nodes[t])
        first, last = np.uintp(indptr[i]), np.uintp(indptr[i + np.uintp(1)])
        found: Any = np.int64(-1)
        least, tie = none, zero
        for e in range(first, last):
            j = indices[e]
            w = price[place + e - first]
            other = tie_value(i, np.uint64(j), key)
            better = (w < least) | ((w == least) & (other > tie) & (w < none))
            least = w if better else least
            tie = other if better else tie
            found = np.int64(j) if better else found
        place += last - first
        best[i] = found
        cost[i] = least


@njit(nogil=True, cache=True, inline="always")
def tie_value(i: np.uint64, j: np.uint64, seed: np.uint64) -> np.uint64:
    """A number for an unordered pair, the same from both ends."""
    return ((i ^ j) + seed) * np.uint64(0x9E3779B97F4A7C15)


@njit(nogil=True, cache=True)
def forbid(
    nodes: Array, rows: Rows, record: Array, lock: Array, cap: float, price: Array
) -> None:
    """Takes out the partners that limits exclude."""
    indptr, indices = rows[0], rows[1]
    place = 0
    for t in range(nodes.size):
        i = nodes[t]
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            locked = lock.size > 0 and lock[i] > 0 and lock[j] > 0
            if locked or record[i, 0] + record[j, 0] > cap:
                price[place] = np.inf
            place += 1


@njit(nogil=True, cache=True)
def mutual_pairs(bounds: tuple[int, int], best: Array, record: Array) -> Array:
    """Lower nodes of the pairs of free nodes that are each other's best."""
    out = np.empty((bounds[1] - bounds[0]), best.dtype)
    count = 0
    for i in range(bounds[0], bounds[1]):
        j = best[i]
        if j > i and best[j] == i and record[i, 1] < np.inf:
            out[count] = i
            count += 1
    return out[:count].copy()


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
