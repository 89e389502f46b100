"""Compiled sweeps of exact moves, one node after the other, with all restrictions."""

from __future__ import annotations

from typing import Any

from numba import njit
from numpy.typing import NDArray

from pyg_pool.coarsen.contract_numba import Rows
from pyg_pool.coarsen.propose_numba import Pair, Triple
from pyg_pool.coarsen.refine_numba import decide, move

Array = NDArray[Any]


@njit(nogil=True, cache=True)
def stays_connected(
    i: int, rows: Rows, label: Array, seen: Array, queue: Array, stamp: int
) -> bool:
    """Whether the cluster of a node is in one piece without it.

    ``seen`` holds the last ``stamp`` of each node, ``queue`` has room for all nodes.
    """
    indptr, indices = rows[0], rows[1]
    a, wanted, tail = label[i], 0, 0
    seen[i] = stamp
    for e in range(indptr[i], indptr[i + 1]):
        j = indices[e]
        if label[j] == a:
            wanted += 1
            if tail == 0:
                queue[0] = j
                seen[j] = stamp
                tail = 1
    if wanted < 2:
        return wanted == 1
    head, found = 0, 0
    while head < tail:
        k = queue[head]
        head += 1
        for e in range(indptr[k], indptr[k + 1]):
            j = indices[e]
            if j == i:
                found += 1
            elif label[j] == a and seen[j] != stamp:
                seen[j] = stamp
                queue[tail] = j
                tail += 1
        if found == wanted:
            return True
    return False


@njit(nogil=True, cache=True)
def sweep_exact(
    rows: Rows,
    label: Array,
    node: Pair,
    cluster: Triple,
    record: Array,
    active: Array,
    fixed: Array,
    blocked: Array,
    cap: float,
    wide: bool,
    means: Pair,
    work: Triple,
    search: Pair,
    moved: Array,
) -> int:
    """One sweep over all active nodes in order; returns the number of moves.

    ``fixed`` nodes stay and ``blocked`` clusters take none (both may be empty);
    ``search`` has room for all nodes where clusters must stay connected, else none.
    """
    seen, queue = search
    points, centres = means
    mass = cluster[0]
    count = 0
    for i in range(label.size):
        if active[i] == 0 or (fixed.size > 0 and fixed[i] > 0):
            continue
        b, inside, outside = decide(
            i, rows, label, node, cluster, blocked, cap, wide, work, means
        )
        if b < 0:
            continue
        if queue.size > 0 and not stays_connected(i, rows, label, seen, queue, i + 1):
            continue
        a, m = label[i], node[0][i]
        for d in range(points.shape[1]):
            if points.shape[0] > 0:
                x = points[i, d]
                centres[a, d] += (centres[a, d] - x) * m / (mass[a] - m)
                centres[b, d] += (x - centres[b, d]) * m / (mass[b] + m)
        move(i, b, (inside, outside), label, node, cluster, record)
        moved[i] = 1
        count += 1
    return count
