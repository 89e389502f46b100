"""Sweeps of exact moves at one level."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.exact_numba import sweep_exact
from pyg_pool.coarsen.group import FREE, KEPT, Limits
from pyg_pool.coarsen.refine_numba import apply, propose, spread, sweep_blocks
from pyg_pool.coarsen.state import State
from pyg_pool.coarsen.threads import Threads

__all__ = ["Clusters", "refine"]

Array = NDArray[Any]
# Below this many nodes one follows the other; above, blocks are proposed in parallel.
SEQUENTIAL = 4096
BLOCK = 4096
ENOUGH = 1e-3
# Up to this many pairs of a node and a cluster, all are looked at.
WIDE = 1 << 18


@dataclass(eq=False)
class Clusters:
    """Sums of the clusters, kept up to date over all levels.

    Args:
        own: ``q_kk``, float64.
        mass: ``c_k``, float64.
        means: Extra coordinates of the clusters, ``[n, D]``; none: ``[0, 0]``.
    """

    own: Array
    mass: Array
    means: Array

    def objective(self, before: float, total: float) -> float:
        """``J`` for a trace ``before`` of the fine similarity and a total mass."""
        return float((before - (self.own / self.mass).sum()) / total)


def refine(
    state: State,
    label: Array,
    clusters: Clusters,
    limits: Limits,
    sweeps: int,
    threads: Threads,
    *,
    points: Array | None = None,
    report: Callable[[int, int], None] | None = None,
) -> None:
    """Moves nodes of a level to better clusters; ``label`` and sums are overwritten.

    Args:
        state: The level.
        label: Cluster of each node.
        clusters: Their sums.
        limits: What moving must respect.
        sweeps: Sweeps at most; later ones look at nodes near a move only.
        threads: Threads; the result is the same for any number.
        points: Extra coordinates of the nodes, ``[N, D]``.
        report: Called with the sweep and the number of moves.
    """
    size = label.size
    if size == 0 or clusters.mass.size == 0:
        return
    rows = (state.indptr, state.indices, state.value, state.scale)
    cluster = (
        clusters.mass,
        clusters.own,
        np.bincount(label, minlength=clusters.mass.size),
    )
    record = np.empty((clusters.mass.size, 2), dtype=np.float32)
    record[:, 0] = clusters.mass
    record[:, 1] = clusters.own / clusters.mass
    points = np.empty((0, 0)) if points is None else points
    is_plain = limits.lock.size == 0 and not limits.connected and points.size == 0
    sweep = _blocks if is_plain and size >= SEQUENTIAL else _exact
    active = np.ones(size, dtype=np.uint8)
    for turn in range(sweeps):
        moved = np.zeros(size, dtype=np.uint8)
        count = sweep(
            rows,
            label,
            (state.mass, state.own),
            cluster,
            record,
            active,
            moved,
            limits,
            (points, clusters.means),
            threads,
        )
        if report is not None:
            report(turn, count)
        if count <= ENOUGH * size or turn + 1 == sweeps:
            break
        if size * clusters.mass.size <= WIDE:
            continue
        active = np.zeros(size, dtype=np.uint8)
        mark = partial(spread, rows=rows, moved=moved, active=active)
        threads.map(mark, threads.ranges(size))


def _work(rows: Any, clusters: int, label: Array) -> tuple[Array, Array, Array]:
    """Room for the clusters around one node."""
    indptr = rows[0]
    widest = int(np.diff(indptr).max()) if indptr.size > 1 else 0
    near = np.zeros(widest + 2, dtype=label.dtype)
    return np.zeros(clusters, dtype=np.int32), near, np.zeros(widest + 2)


def _exact(
    rows: Any,
    label: Array,
    node: Any,
    cluster: Any,
    record: Array,
    active: Array,
    moved: Array,
    limits: Limits,
    means: tuple[Array, Array],
    threads: Threads,
) -> int:
    """One node after the other."""
    size = label.size
    lock = limits.lock
    fixed = (lock != FREE).astype(np.uint8) if lock.size else lock
    blocked = np.zeros(cluster[0].size if lock.size else 0, dtype=np.uint8)
    if lock.size:
        blocked[label[lock == KEPT]] = 1
    room = size if limits.connected else 0
    wide = not limits.connected and size * cluster[0].size <= WIDE
    search = (np.zeros(room, np.int64), np.zeros(room, np.int64))
    cap, work = float(limits.cap), _work(rows, cluster[0].size, label)
    return int(
        sweep_exact(
            rows,
            label,
            node,
            cluster,
            record,
            active,
            fixed,
            blocked,
            cap,
            wide,
            means,
            work,
            search,
            moved,
        )
    )


def _blocks(
    rows: Any,
    label: Array,
    node: Any,
    cluster: Any,
    record: Array,
    active: Array,
    moved: Array,
    limits: Limits,
    means: tuple[Array, Array],
    threads: Threads,
) -> int:
    """Blocks of nodes: proposals on labels that stand still, carried out in order."""
    size, cap = label.size, float(limits.cap)
    stamp = np.zeros(cluster[0].size, dtype=np.int64)
    work = _work(rows, cluster[0].size, label)
    found = (np.empty(BLOCK, label.dtype), np.empty(BLOCK), np.empty(BLOCK))
    fixed = (rows, label, node, cluster, record)
    if threads.count == 1:
        return int(sweep_blocks(BLOCK, *fixed, active, cap, work, found, stamp, moved))
    store = threading.local()

    def think(part: tuple[int, int]) -> None:
        if not hasattr(store, "work"):
            store.work = _work(rows, cluster[0].size, label)
        first = part[0] % BLOCK
        view = (found[0][first:], found[1][first:], found[2][first:])
        members = cluster[2]
        propose(part, rows, label, node, members, record, active, cap, store.work, view)

    count = 0
    for first in range(0, size, BLOCK):
        last = min(first + BLOCK, size)
        step = -(-(last - first) // threads.count)
        starts = range(first, last, step)
        threads.map(think, [(at, min(at + step, last)) for at in starts])
        count += apply((first, last), *fixed, cap, work, found, stamp, moved)
    return count
