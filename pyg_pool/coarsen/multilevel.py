r"""The scalable method: levels of merging, then exact moves on the way back.

Every pass costs O(edges). Nodes merge with the neighbour for which Ward's cost

.. math::
    w_{kl} = \frac{q_k}{c_k} + \frac{q_l}{c_l} - \frac{q_k + q_l + 2 q_{kl}}{c_k + c_l}

is least, until exactly the wanted number of clusters is left; from the coarsest level
down, single nodes then move to better clusters. The result depends on graph, options
and seed only, never on the number of threads.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.contract import cluster_sums, contract
from pyg_pool.coarsen.group import Limits, group
from pyg_pool.coarsen.progress import Progress
from pyg_pool.coarsen.refine import Clusters, refine
from pyg_pool.coarsen.state import State
from pyg_pool.coarsen.threads import Threads
from pyg_pool.errors import PygPoolWarning

__all__ = ["PRESETS", "multilevel", "narrow"]

Array = NDArray[Any]
# Graphs up to this size are tried with several rules for ties.
FEW, TRIES = 256, 4


@dataclass(frozen=True)
class Preset:
    """Effort: rounds of pairing, sweeps at coarse levels and at the finest."""

    rounds: int
    coarse: int
    finest: int


PRESETS = {
    "fast": Preset(1, 0, 1),
    "balanced": Preset(1, 1, 2),
    "best": Preset(3, 3, 4),
}


@dataclass(eq=False)
class Levels:
    """The states from fine to coarse and the labels between them."""

    states: list[State]
    labels: list[Array] = field(default_factory=list)

    def project(self, label: Array) -> Array:
        """Labels of the coarsest nodes, handed down to the finest ones."""
        for step in reversed(self.labels):
            label = label.take(step)
        return label


def multilevel(
    state: State,
    target: int,
    *,
    preset: str = "best",
    limits: Limits | None = None,
    seed: int = 0,
    threads: Threads,
    progress: Progress | None = None,
    points: Array | None = None,
) -> Array:
    """Cluster of each node.

    Args:
        state: Similarity and masses.
        target: Number of clusters to reach, at least 1.
        preset: ``"fast"``, ``"balanced"`` or ``"best"``.
        limits: What must stay apart.
        seed: Seed of the rule for ties.
        threads: Threads to use.
        progress: What is told of the way, and keeps the last finished level.
        points: Extra coordinates of the nodes that moves respect, ``[N, D]``.

    Returns:
        ``[N]`` labels, numbered by the first member of the coarsest level.
    """
    limits, effort = limits or Limits(), PRESETS[preset]
    progress = progress or Progress()
    few = state.num_nodes <= FEW and points is None and not limits.are_set
    found = [
        _once(state, target, effort, limits, points, seed + turn, threads, progress)
        for turn in range(TRIES if few else 1)
    ]
    return max(found, key=lambda one: one[1])[0]


def _once(
    state: State,
    target: int,
    effort: Preset,
    limits: Limits,
    points: Array | None,
    seed: int,
    threads: Threads,
    progress: Progress,
) -> tuple[Array, float]:
    """One way up and down: labels, and the similarity that they keep."""
    levels = Levels([narrow(state)])
    lock = limits.lock
    sizes = {"fine": state.num_nodes, "target": target}
    progress.start(**sizes, edges=state.indices.size)
    while levels.states[-1].num_nodes > target:
        here = Limits(limits.cap, limits.connected, lock)
        last = levels.states[-1]
        label, size = group(last, target, here, effort.rounds, seed, threads)
        if size == last.num_nodes:
            _stalled(size, target, limits)
            break
        lock = coarse_lock(lock, label, size)
        levels.labels.append(label)
        if size > target:
            levels.states.append(contract(last, label, size, threads))
        else:
            levels.states.append(_unlinked(last, label, size, threads))
        progress.merged(levels.states[-1].num_nodes, levels)
    kept = _refine_all(levels, effort, limits, threads, progress, points)
    return levels.project(np.arange(levels.states[-1].num_nodes)), kept


def _unlinked(state: State, label: Array, size: int, threads: Threads) -> State:
    """The coarsest level: nothing asks for the similarities between its nodes."""
    none = state.value[:0]
    start = np.zeros(size + 1, dtype=np.int64)
    sums = cluster_sums(state, label, size, threads)
    return State(start, state.indices[:0], none, none, *sums)


def _refine_all(
    levels: Levels,
    effort: Preset,
    limits: Limits,
    threads: Threads,
    progress: Progress,
    points: Array | None,
) -> float:
    """Moves from the coarsest level down; ``levels`` shrinks to one step of labels.

    Returns the sum of similarity by mass over the clusters.
    """
    coarsest = levels.states[-1]
    total = float(coarsest.mass.sum())
    finest = levels.states[0]
    before = float((finest.own / finest.mass).sum())
    coordinates, locks = _hand_up(levels, points, limits.lock)
    clusters = Clusters(coarsest.own.copy(), coarsest.mass.copy(), coordinates[-1])
    states, levels.states = levels.states, [coarsest]
    states.pop()
    label = np.arange(coarsest.num_nodes, dtype=coarsest.indices.dtype)
    while levels.labels:
        here = states.pop()
        label = label.take(levels.labels[-1])
        coordinates.pop()
        locks.pop()

        def report(turn: int, moved: int, edges: int = here.indices.size) -> None:
            progress.swept(turn, moved, edges, clusters.objective(before, total))

        refine(
            here,
            label,
            clusters,
            Limits(limits.cap, limits.connected, locks[-1]),
            effort.coarse if states else effort.finest,
            threads,
            points=coordinates[-1],
            report=report,
        )
        levels.labels[-1] = label
        if len(levels.labels) == 1:
            progress.refined(levels, None)
            break
        label = levels.labels.pop()
        progress.refined(levels, label)
    return float((clusters.own / clusters.mass).sum())


def _hand_up(
    levels: Levels, points: Array | None, lock: Array
) -> tuple[list[Array], list[Array]]:
    """Mean coordinates and locks of every level's nodes."""
    coordinates = [np.empty((0, 0)) if points is None else points]
    locks = [lock]
    for state, label in zip(levels.states[:-1], levels.labels, strict=True):
        size = int(label.max()) + 1 if label.size else 0
        mean = coordinates[-1]
        if mean.size:
            mass = np.bincount(label, weights=state.mass, minlength=size)
            total = np.zeros((size, mean.shape[1]))
            np.add.at(total, label, mean * state.mass[:, None])
            mean = total / mass[:, None]
        coordinates.append(mean)
        locks.append(coarse_lock(locks[-1], label, size))
    return coordinates, locks


def coarse_lock(lock: Array, label: Array, size: int) -> Array:
    """The strictest lock of each group's members."""
    if not lock.size:
        return lock
    out = np.zeros(size, dtype=lock.dtype)
    np.maximum.at(out, label, lock)
    return out


def narrow(state: State) -> State:
    """The state with entries in single precision, as the compiled loops take them."""
    value = state.value.astype(np.float32, copy=False)
    scale = state.scale.astype(np.float32, copy=False)
    return State(state.indptr, state.indices, value, scale, state.own, state.mass)


def _stalled(size: int, target: int, limits: Limits) -> None:
    """Says why merging stopped above the target."""
    why = "connected=True" if limits.connected else "the limits set"
    warnings.warn(
        f"coarsen stopped at {size} clusters, expected {target}: {why} leaves nothing "
        f"that may merge; ask for more clusters, or loosen it.",
        PygPoolWarning,
        stacklevel=5,
    )
