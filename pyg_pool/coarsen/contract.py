"""The coarse state of a partition, in parallel and in a fixed order of sums."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.contract_numba import (
    contract_range,
    inner_sums,
    members,
    pull,
)
from pyg_pool.coarsen.state import State
from pyg_pool.coarsen.threads import Threads

__all__ = ["cluster_sums", "contract"]

Array = NDArray[Any]
# Entries that one piece of work of a thread reads at least.
PIECE = 1024
# Entries that are gathered ahead.
AHEAD = 4096


def contract(state: State, label: Array, size: int, threads: Threads) -> State:
    """The state of the clusters; levels compose exactly.

    Args:
        state: The finer state.
        label: Cluster of each node, in ``0..size-1``, every one used.
        size: Number of clusters.
        threads: Threads to use; the result is the same for any number.
    """
    rows = (state.indptr, state.indices, state.value, state.scale)
    order = np.empty(label.size, dtype=label.dtype)
    start = np.zeros(size + 1, dtype=np.int64)
    before = members(label, state.indptr, order, start)
    mass = np.bincount(label, weights=state.mass, minlength=size)
    if state.own is state.mass:
        own = mass.copy()
    else:
        own = np.bincount(label, weights=state.own, minlength=size)
    length = np.zeros(size, dtype=np.int64)
    parts = _pieces(before, threads.count)
    # Room for every entry; what is not written takes no memory. One more is looked at.
    indices = np.empty(before[-1] + 1, dtype=label.dtype)
    value = np.empty(before[-1] + 1, dtype=np.float32)
    room = max(int(np.diff(before).max(initial=0)), AHEAD)
    store = threading.local()

    def work(part: tuple[int, int]) -> int:
        if not hasattr(store, "work"):
            total, near = np.zeros(size, np.float32), np.empty(room, label.dtype)
            store.work = (total, near, np.empty(room, np.float32))
        out = (indices[before[part[0]] :], value[before[part[0]] :])
        ends = (order, start, before)
        return int(
            contract_range(part, rows, label, ends, store.work, out, length, own)
        )

    place = 0
    for part, used in zip(parts, threads.map(work, parts), strict=True):
        source = before[part[0]]
        if source > place:
            pull(indices, value, source, used, place)
        place += used
    indptr = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(length, out=indptr[1:])
    entries = (indices[:place], value[:place])
    return State(indptr, *entries, np.empty(0, np.float32), own, mass)


def cluster_sums(
    state: State, label: Array, size: int, threads: Threads
) -> tuple[Array, Array]:
    """``q_kk`` and ``c_k`` of every cluster, without the similarities between them."""
    rows = (state.indptr, state.indices, state.value, state.scale)
    own: Array = np.empty(label.size)
    threads.map(
        lambda part: inner_sums(part, rows, label, own), threads.ranges(label.size)
    )
    own += state.own
    own = np.bincount(label, weights=own, minlength=size)
    return own, np.bincount(label, weights=state.mass, minlength=size)


def _pieces(before: Array, threads: int) -> list[tuple[int, int]]:
    """Ranges of clusters with about equally many entries, a few for each thread."""
    size = before.size - 1
    if threads == 1:
        return [(0, size)] if size else []
    step = max(before[-1] // (4 * threads), PIECE)
    out, first = [], 0
    while first < size:
        last = int(np.searchsorted(before, before[first] + step, side="right")) - 1
        last = min(max(last, first + 1), size)
        out.append((first, last))
        first = last
    return out
