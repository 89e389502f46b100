"""Compiled loops that find better clusters for nodes on labels that stand still.

``rows`` is described in ``contract_numba``; ``node`` is ``(m_i, Q_ii)`` of each node.
Loops come in two steps: what memory is slow to give is gathered for many nodes, then
each node branches on what lies near.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyg_pool.coarsen.contract_numba import SHORT, Rows, gather

Array = NDArray[Any]
Pair = tuple[Array, Array]
Triple = tuple[Array, Array, Array]
Work = tuple[Array, Array, Array, Array]
# A cluster that outweighs a node by no more than this share is the node.
ALONE = np.float32(1e-6)


@njit(nogil=True, cache=True, error_model="numpy")
def propose(
    nodes: Array,
    rows: Rows,
    label: Array,
    node: Pair,
    record: Array,
    cap: float,
    work: Work,
    wish: tuple[Array, Array],
) -> None:
    """The best cluster of each node on labels that stand still.

    ``wish`` is that cluster, and the similarities of the node to its own and to that
    one, and a lead: the similarity to another cluster that it would have to gain,
    about, to prefer that. ``record`` holds mass and similarity by mass of each
    cluster as float32. ``work`` is one zero for each cluster, zero again afterwards,
    and room for the clusters, weights and gains along the rows of some nodes, gathered
    ahead of what branches on them.
    """
    total, near, weight, _ = work
    indptr, indices = rows[0], rows[1]
    short = indices.size < SHORT * label.size
    first, far = 0, 0
    while first < nodes.size:
        last, room = first, near.size
        while last < nodes.size:
            i = np.uintp(nodes[last])
            begin, end = indptr[i], indptr[i + np.uintp(1)]
            room -= end - begin
            if room < 0 and last > first:
                break
            if end > begin:
                far += indices[np.uintp(begin)] < 0
                far += indices[np.uintp(end - 1)] < 0
            last += 1
        some = nodes[first:last]
        size = gather(some, rows, label, near, weight, True)
        if short:
            # Short rows leave gaps in which memory would idle.
            for p in range(size):
                k = np.uintp(near[p])
                far += (total[k] != 0) + (record[k, 0] < 0)
        part = (wish[0][first:last], wish[1][first:last])
        judge(some, rows, label, node, record.reshape(-1), cap + far, work, part)
        first = last


@njit(nogil=True, cache=True, error_model="numpy")
def judge(
    nodes: Array,
    rows: Rows,
    label: Array,
    node: Pair,
    record: Array,
    cap: float,
    work: Work,
    wish: tuple[Array, Array],
) -> None:
    """The best cluster of each node, from what was gathered along their rows.

    Loops run over whole rows, a cluster as often as it is met there: their ends are
    known early, and nothing in them branches on what memory holds.
    """
    total, near, weight, gains = work
    target, sums = wish
    mass, own = node
    plain = rows[2].size == 0 and rows[3].size == 0
    one, two, none = np.float32(1.0), np.float32(2.0), np.float32(np.inf)
    most, up, end = np.float32(cap), np.uintp(1), np.uintp(0)
    for t in range(nodes.size):
        i = np.uintp(nodes[t])
        a = np.uintp(label[i])
        begin = end
        end += np.uintp(rows[0][i + up] - rows[0][i])
        m, q = np.float32(mass[i]), np.float32(own[i])
        whole, ratio = record[a << up], record[(a << up) | up]
        target[t] = a
        if whole - m <= ALONE * m:
            sums[t, 2] = none
            continue
        if plain:
            for p in range(begin, end):
                total[np.uintp(near[p])] += one
        else:
            for p in range(begin, end):
                total[np.uintp(near[p])] += weight[p]
        inside = total[a]
        total[a] = -none
        best = -none
        for p in range(begin, end):
            k = np.uintp(near[p])
            c = record[k << up] + m
            gain = (two * total[k] + q - record[(k << up) | up] * m) / c
            gain = gain if c <= most else -none
            gains[p] = gain
            best = max(best, gain)
        stay = (two * inside + q - ratio * m) / (whole - m)
        sums[t, 0] = inside
        sums[t, 2] = (stay - best) * whole / two
        if best > stay:
            at: Any = begin
            while gains[at] != best:
                at += up
            target[t] = near[at]
            sums[t, 1] = total[np.uintp(near[at])]
        for p in range(begin, end):
            total[np.uintp(near[p])] = 0
        total[a] = 0
