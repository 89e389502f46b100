"""Compiled loops that move single nodes to better clusters.

Moving node ``i`` from cluster ``a`` to ``b`` lowers the objective by

    (q_b + 2 s_b + Q_ii) / (c_b + m_i) - q_b / c_b
        - [q_a / c_a - (q_a - 2 s_a - Q_ii) / (c_a - m_i)],

with ``s_k`` the similarity of ``i`` to cluster ``k``. Clusters never become empty.
``rows`` is described in ``contract_numba``; ``node`` is ``(m_i, Q_ii)`` of each node;
``cluster`` is ``(c_k, q_k, members)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyg_pool.coarsen.contract_numba import Rows
from pyg_pool.coarsen.propose_numba import Pair, Triple

Array = NDArray[Any]
TOLERANCE = 1e-12
# An edge wakes a node whose best cluster leads by less than so many such edges.
WAKE = 3.0
# Nodes of neighbouring numbers that go to a block together.
DEAL = 16
# Nodes that wish to move and are looked at together.
LOOK = 64


@njit(nogil=True, cache=True, inline="always")
def near_clusters(
    i: int, rows: Rows, label: Array, mark: Array, near: Array, total: Array
) -> int:
    """A node's own cluster and those of its neighbours, and its similarity to each.

    Returns their number; the own one comes first. Without a branch in the loop, as
    none could be foretold. ``mark[k]`` is trusted only where ``near`` agrees.
    """
    indptr, indices, value, scale = rows
    weighted, scaled = value.size > 0, scale.size > 0
    near[0] = label[i]
    total[0] = 0.0
    mark[label[i]] = 0
    count = 1
    for e in range(indptr[i], indptr[i + 1]):
        j = indices[e]
        w = 1.0
        if weighted:
            w = np.float64(value[e])
        if scaled:
            w *= scale[i] * scale[j]
        k = label[j]
        p = mark[k]
        hit = (p < count) & (near[p] == k)
        p = p if hit else count
        near[p] = k
        mark[k] = p
        total[p] = (total[p] if hit else 0.0) + w
        count += 0 if hit else 1
    return count


@njit(nogil=True, cache=True)
def move(
    i: int,
    b: int,
    sums: tuple[float, float],
    label: Array,
    node: Pair,
    cluster: Triple,
    record: Array,
) -> None:
    """Moves a node to cluster ``b``; ``sums`` are its similarities to old and new."""
    mass, own, members = cluster
    a, m, q = label[i], node[0][i], node[1][i]
    own[a] -= 2 * sums[0] + q
    own[b] += 2 * sums[1] + q
    mass[a] -= m
    mass[b] += m
    members[a] -= 1
    members[b] += 1
    label[i] = b
    record[a, 0], record[a, 1] = mass[a], own[a] / mass[a]
    record[b, 0], record[b, 1] = mass[b], own[b] / mass[b]


@njit(nogil=True, cache=True)
def decide(
    i: int,
    rows: Rows,
    label: Array,
    node: Pair,
    cluster: Triple,
    blocked: Array,
    cap: float,
    wide: bool,
    work: Triple,
    means: Pair,
) -> tuple[int, float, float]:
    """The best cluster of a node in float64, or -1, and both similarities.

    Candidates are the clusters of the neighbours, or all of them if ``wide``.
    ``means`` are extra coordinates of nodes and clusters, with no rows if there are
    none; ``blocked`` marks clusters that take no node, and is empty if there are none.
    """
    mark, near, total = work
    mass, own, members = cluster
    points, centres = means
    a, m, q = label[i], node[0][i], node[1][i]
    if members[a] < 2:
        return -1, 0.0, 0.0
    count = near_clusters(i, rows, label, mark, near, total)
    inside = total[0]
    loss = own[a] / mass[a] - (own[a] - 2 * inside - q) / (mass[a] - m)
    if points.shape[0] > 0:
        gap = 0.0
        for d in range(points.shape[1]):
            gap += (points[i, d] - centres[a, d]) ** 2
        loss -= mass[a] * m / (mass[a] - m) * gap
    best: Any = -1
    gain, outside = loss + TOLERANCE * max(1.0, abs(loss)), 0.0
    for p in range(mass.size if wide else count):
        b = np.int64(p) if wide else np.int64(near[p])
        if b == a or mass[b] + m > cap or (blocked.size > 0 and blocked[b] > 0):
            continue
        s = 0.0
        at = mark[b]
        if at < count and near[at] == b:
            s = total[at]
        new = (own[b] + 2 * s + q) / (mass[b] + m) - own[b] / mass[b]
        if points.shape[0] > 0:
            gap = 0.0
            for d in range(points.shape[1]):
                gap += (points[i, d] - centres[b, d]) ** 2
            new -= mass[b] * m / (mass[b] + m) * gap
        if new > gain:
            best, gain, outside = b, new, s
    return best, inside, outside


@njit(nogil=True, cache=True, inline="always")
def similarity(i: int, rows: Rows, label: Array, a: int, b: int) -> tuple[float, float]:
    """Similarities of a node to two clusters."""
    indptr, indices, value, scale = rows
    weighted, scaled = value.size > 0, scale.size > 0
    inside: Any = 0.0
    outside: Any = 0.0
    for e in range(indptr[i], indptr[i + 1]):
        j = indices[e]
        w = np.float32(1.0)
        if weighted:
            w = value[e]
        if scaled:
            w *= scale[i] * scale[j]
        k = label[j]
        inside += w if k == a else np.float32(0.0)
        outside += w if k == b else np.float32(0.0)
    return inside, outside


@njit(nogil=True, cache=True, error_model="numpy")
def settle(
    nodes: Array,
    wish: tuple[Array, Array],
    rows: Rows,
    label: Array,
    state: tuple[Pair, Array, Array, float],
    marks: Pair,
    plan: tuple[int, Array, Array],
) -> int:
    """Carries out proposals in order, each only where it still lowers the objective.

    ``board`` holds mass, similarity, members and stamp of each cluster in one row; the
    stamp is that of ``plan`` where the cluster changed since the proposals were made,
    and only these are looked at along the rows again. ``moved`` gets who moved. Marks
    in ``active`` the nodes that wanted to move, unmarks the others, whose choice knows
    of all that moved before, and keeps everyone's ``lead``.
    """
    target, sums = wish
    node, board, record, cap = state
    (lead, active), (stamp, moved, picked) = marks, plan
    wishes, count, far = 0, 0, 0
    for t in range(np.uintp(nodes.size)):
        k = np.uintp(nodes[t])
        lead[k], active[k] = sums[t, 2], 0
        picked[wishes] = t
        wishes += target[t] != label[k]
    for first in range(0, wishes, LOOK):
        last = min(first + LOOK, wishes)
        for t in range(first, last):
            # What the next ones need is read ahead of the branches on it.
            p = np.uintp(picked[t])
            far += board[np.uintp(target[p]), 2] < 0
            far += board[np.uintp(label[np.uintp(nodes[p])]), 2] < 0
        for t in range(first, last):
            p = np.uintp(picked[t])
            i: Any = np.uintp(nodes[p])
            a: Any = np.uintp(label[i])
            b: Any = np.uintp(target[p])
            old, new = board[a], board[b]
            if old[2] < 2 + far:
                continue
            inside, outside = float(sums[p, 0]), float(sums[p, 1])
            if old[3] == stamp or new[3] == stamp:
                inside, outside = similarity(i, rows, label, a, b)
            m, q = node[0][i], node[1][i]
            active[i] = 1
            loss = old[1] / old[0] - (old[1] - 2 * inside - q) / (old[0] - m)
            gain = (new[1] + 2 * outside + q) / (new[0] + m) - new[1] / new[0]
            if gain - loss <= TOLERANCE * max(1.0, abs(loss)) or new[0] + m > cap:
                continue
            old[0], old[1] = old[0] - m, old[1] - 2 * inside - q
            new[0], new[1] = new[0] + m, new[1] + 2 * outside + q
            old[2], new[2] = old[2] - 1, new[2] + 1
            old[3], new[3] = stamp, stamp
            record[a, 0], record[a, 1] = old[0], old[1] / old[0]
            record[b, 0], record[b, 1] = new[0], new[1] / new[0]
            label[i] = b
            moved[count] = i
            count += 1
    return count


@njit(nogil=True, cache=True)
def wake(
    bounds: tuple[int, int],
    moved: Array,
    rows: Rows,
    lead: Array,
    active: Array,
) -> None:
    """Marks neighbours of nodes that moved, where that may change their choice.

    Where all edges weigh the same, all are marked, and ``deal`` looks at their leads.
    All writers write the same value; the last entry of ``active`` takes the marks of
    those that sleep on, as no branch on them could be foretold.
    """
    indptr, indices, value, scale = rows
    weighted, scaled = value.size > 0, scale.size > 0
    asleep = np.uintp(active.size - 1)
    for t in range(bounds[0], bounds[1]):
        i = np.uintp(moved[t])
        first, last = np.uintp(indptr[i]), np.uintp(indptr[i + np.uintp(1)])
        if not weighted and not scaled:
            for e in range(first, last):
                active[np.uintp(indices[e])] = 1
            continue
        factor = np.float32(WAKE)
        if scaled:
            factor *= scale[i]
        for e in range(first, last):
            j = np.uintp(indices[e])
            w = factor
            if weighted:
                w *= value[e]
            if scaled:
                w *= scale[j]
            active[j if w >= lead[j] else asleep] = 1


@njit(nogil=True, cache=True)
def deal(active: Array, blocks: int, nodes: Array, lead: Array, most: float) -> Array:
    """Deals active nodes out to blocks, some from each place; returns their bounds.

    Neighbours often have numbers close to each other; in one block they would wish for
    the same clusters. Who leads by more than ``most`` sleeps on. Clears all marks.
    """
    ends = np.zeros(blocks + 1, np.int64)
    size, count = active.size - 1, 0
    for block in range(blocks):
        for first in range(block * DEAL, size, blocks * DEAL):
            for i in range(first, min(first + DEAL, size)):
                nodes[count] = i
                count += (active[i] > 0) & (lead[i] <= most)
        ends[block + 1] = count
    active[:] = 0
    return ends


@njit(nogil=True, cache=True)
def spread(bounds: tuple[int, int], rows: Rows, moved: Array, active: Array) -> None:
    """Marks moved nodes and their neighbours; all writers write the same value."""
    indptr, indices = rows[0], rows[1]
    for i in range(bounds[0], bounds[1]):
        if moved[i]:
            active[i] = 1
            for e in range(indptr[i], indptr[i + 1]):
                active[indices[e]] = 1
