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
from pyg_pool.coarsen.propose_numba import Work, propose
from pyg_pool.coarsen.refine_numba import DEAL, WAKE, deal, settle, spread, wake
from pyg_pool.coarsen.state import State
from pyg_pool.coarsen.threads import Threads

__all__ = ["Clusters", "refine"]

Array = NDArray[Any]
Report = Callable[[int, int], None]
# Below this many nodes one follows the other; above, blocks are proposed in parallel.
SEQUENTIAL = 4096
# At most so many blocks, of about so many nodes at least.
BLOCKS, BLOCK = 32, 4096
# Entries that are gathered ahead.
AHEAD = 1024
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
    report: Report | None = None,
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
    sums = ((state.mass, state.own), cluster, record)
    if is_plain and size >= SEQUENTIAL:
        _blocks(rows, label, *sums, float(limits.cap), sweeps, threads, report)
    else:
        means = (points, clusters.means)
        _exact(rows, label, *sums, limits, means, sweeps, threads, report)


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
    limits: Limits,
    means: tuple[Array, Array],
    sweeps: int,
    threads: Threads,
    report: Report | None,
) -> None:
    """Sweeps over one node after the other, with all restrictions."""
    size, lock = label.size, limits.lock
    fixed = (lock != FREE).astype(np.uint8) if lock.size else lock
    blocked = np.zeros(cluster[0].size if lock.size else 0, dtype=np.uint8)
    if lock.size:
        blocked[label[lock == KEPT]] = 1
    room = size if limits.connected else 0
    small = size * cluster[0].size <= WIDE
    wide = not limits.connected and small
    search = (np.zeros(room, np.int64), np.zeros(room, np.int64))
    cap, work = float(limits.cap), _work(rows, cluster[0].size, label)
    sweep: Callable[..., int] = sweep_exact
    parts = (rows, label, node, cluster, record)
    wishes = (fixed, blocked, cap, wide, means, work, search)
    active = np.ones(size, dtype=np.uint8)
    for turn in range(sweeps):
        moved = np.zeros(size, dtype=np.uint8)
        count = int(sweep(*parts, active, *wishes, moved))
        if _is_last(turn, count, size, sweeps, report):
            break
        if not small:
            active = np.zeros(size, dtype=np.uint8)
            mark = partial(spread, rows=rows, moved=moved, active=active)
            threads.map(mark, threads.ranges(size))


def _blocks(
    rows: Any,
    label: Array,
    node: Any,
    cluster: Any,
    record: Array,
    cap: float,
    sweeps: int,
    threads: Threads,
    report: Report | None,
) -> None:
    """Blocks of nodes: proposals on labels that stand still, carried out in order."""
    size, clusters = label.size, cluster[0].size
    blocks = max(min(size // BLOCK, BLOCKS), 1)
    most = size // blocks + 2 * DEAL
    room = max(int(np.diff(rows[0]).max()), AHEAD)
    wish = (np.empty(most, label.dtype), np.empty((most, 3), np.float32))
    moved = np.empty(most, label.dtype)
    most_lead = WAKE if rows[2].size == rows[3].size == 0 else np.inf
    lead, picked = np.zeros(size, np.float32), np.empty(most + 1, np.int32)
    board = np.zeros((clusters, 4))
    board[:, :3] = np.stack(cluster, 1)
    nodes, active = np.empty(size + 1, label.dtype), np.ones(size + 1, np.uint8)
    store, stamp = threading.local(), 0

    def work() -> Work:
        if not hasattr(store, "work"):
            total, near = np.zeros(clusters, np.float32), np.empty(room, label.dtype)
            weight, gains = np.empty(room, np.float32), np.empty(room, np.float32)
            store.work = (total, near, weight, gains)
        return store.work

    def think(part: tuple[Array, int, tuple[int, int]]) -> None:
        some, at, ready = part
        wake(ready, moved, rows, lead, active)
        to = (wish[0][at:], wish[1][at:])
        propose(some, rows, label, node, record, cap, work(), to)

    for turn in range(sweeps):
        ends = deal(active, blocks, nodes, lead, most_lead)
        total = count = 0
        for block in range(blocks):
            some = nodes[ends[block] : ends[block + 1]]
            threads.map(think, _shares(some, count, threads))
            stamp += 1
            plan = (stamp, moved, picked)
            sums = (node, board, record, cap)
            count = int(settle(some, wish, rows, label, sums, (lead, active), plan))
            total += count
        cluster[0][:], cluster[1][:] = board[:, 0], board[:, 1]
        if _is_last(turn, total, size, sweeps, report):
            break
        threads.map(think, _shares(nodes[:0], count, threads))


def _shares(
    nodes: Array, moved: int, threads: Threads
) -> list[tuple[Array, int, tuple[int, int]]]:
    """Parts of the nodes, where they begin, and parts of what moved before."""
    parts = 1 if threads.count == 1 else 2 * threads.count
    ends = [nodes.size * part // parts for part in range(parts + 1)]
    ready = [moved * part // parts for part in range(parts + 1)]
    return [
        (nodes[ends[p] : ends[p + 1]], ends[p], (ready[p], ready[p + 1]))
        for p in range(parts)
    ]


def _is_last(
    turn: int, count: int, size: int, sweeps: int, report: Report | None
) -> bool:
    """Tells of a sweep; whether it was the last one."""
    if report is not None:
        report(turn, count)
    return count <= ENOUGH * size or turn + 1 == sweeps
