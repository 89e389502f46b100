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

from pyg_pool.coarsen.contract_numba import Rows, gather

Array = NDArray[Any]
Pair = tuple[Array, Array]
Triple = tuple[Array, Array, Array]
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
    work: tuple[Array, Array, Array],
    wish: tuple[Array, Array],
) -> None:
    """The best cluster of each node on labels that stand still.

    ``wish`` is that cluster, and the similarities of the node to its own and to that
    one, and a lead: the similarity to the second best cluster that it would have to
    gain, about, to prefer that. ``record`` holds mass and similarity by mass of each
    cluster as float32. ``work`` is one zero for each cluster, zero
    again afterwards, and room for the clusters and weights along the rows of some
    nodes, gathered ahead of what branches on them.
    """
    total, near, weight = work
    indptr, indices = rows[0], rows[1]
    first = 0
    while first < nodes.size:
        last, room = first, near.size
        none = 0
        while last < nodes.size:
            i = np.uintp(nodes[last])
            begin, end = indptr[i], indptr[i + np.uintp(1)]
            room -= end - begin
            if room < 0 and last > first:
                break
            if end > begin:
                none += indices[np.uintp(begin)] < 0
                none += indices[np.uintp(end - 1)] < 0
            last += 1
        some = nodes[first:last]
        size = gather(some, rows, label, near, weight, True)
        for p in range(size):
            k = np.uintp(near[p])
            none += (total[k] != 0) + (record[k, 0] < 0)
        part = (wish[0][first:last], wish[1][first:last])
        judge(some, rows, label, node, record, cap + none, work, part)
        first = last


@njit(nogil=True, cache=True, error_model="numpy")
def judge(
    nodes: Array,
    rows: Rows,
    label: Array,
    node: Pair,
    record: Array,
    cap: float,
    work: tuple[Array, Array, Array],
    wish: tuple[Array, Array],
) -> None:
    """The best cluster of each node, from what was gathered along their rows."""
    total, near, weight = work
    target, sums = wish
    mass, own = node
    plain = rows[2].size == 0 and rows[3].size == 0
    one, two, none = np.float32(1.0), np.float32(2.0), np.float32(np.inf)
    end = np.uintp(0)
    for t in range(nodes.size):
        i = np.uintp(nodes[t])
        a = np.uintp(label[i])
        target[t] = a
        begin = end
        end += np.uintp(rows[0][i + np.uintp(1)] - rows[0][i])
        m, q = np.float32(mass[i]), np.float32(own[i])
        rest = record[a, 0] - m
        if rest <= ALONE * m:
            sums[t, 2] = none
            continue
        count = begin
        for p in range(begin, end):
            k = np.uintp(near[p])
            s = total[k]
            near[count] = k
            count += np.uintp(s == 0)
            total[k] = s + (one if plain else weight[p])
        inside = total[a]
        best = (two * inside + q - record[a, 1] * m) / rest
        total[a] = -none
        found, outside, second = a, np.float32(0.0), -none
        for p in range(begin, count):
            k = np.uintp(near[p])
            c, s = record[k, 0] + m, total[k]
            gain = (two * s + q - record[k, 1] * m) / c
            total[k] = 0
            better = (gain > best) & (c <= cap)
            other = best if better else gain
            second = other if other > second else second
            best = gain if better else best
            found = k if better else found
            outside = s if better else outside
        total[a] = 0
        target[t] = found
        sums[t, 0], sums[t, 1] = inside, outside
        sums[t, 2] = (best - second) * record[a, 0] / two
