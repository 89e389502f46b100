"""The coarse state of a partition, in parallel and in a fixed order of sums."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.contract_numba import contract_range, members
from pyg_pool.coarsen.state import State
from pyg_pool.coarsen.threads import Threads

__all__ = ["contract"]

Array = NDArray[Any]
# Entries that one piece of work reads at most, single nodes of more apart.
PIECE = 1 << 21


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
    own = np.bincount(label, weights=state.own, minlength=size)
    mass = np.bincount(label, weights=state.mass, minlength=size)
    length = np.zeros(size, dtype=np.int64)
    parts = _pieces(before, threads.count)
    store = threading.local()
    room = max((before[b] - before[a] for a, b in parts), default=0)

    def work(part: tuple[int, int]) -> tuple[Array, Array]:
        if not hasattr(store, "mark"):
            store.mark = np.zeros(size, dtype=np.int32)
            store.index = np.empty(room, dtype=label.dtype)
            store.value = np.empty(room, dtype=np.float32)
        out = (store.index, store.value)
        used = contract_range(
            part, rows, label, (order, start), store.mark, out, length, own
        )
        return store.index[:used].copy(), store.value[:used].copy()

    pieces = threads.map(work, parts)
    indptr = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(length, out=indptr[1:])
    indices = np.empty(indptr[-1], dtype=label.dtype)
    value = np.empty(indptr[-1], dtype=np.float32)
    place = 0
    for number, (index, weight) in enumerate(pieces):
        indices[place : place + index.size] = index
        value[place : place + index.size] = weight
        place += index.size
        pieces[number] = (index[:0], weight[:0])
    return State(indptr, indices, value, np.empty(0, np.float32), own, mass)


def _pieces(before: Array, threads: int) -> list[tuple[int, int]]:
    """Ranges of clusters with at most ``PIECE`` entries, or one cluster."""
    size = before.size - 1
    step = PIECE if threads == 1 else max(min(PIECE, before[-1] // (4 * threads)), 1024)
    out, first = [], 0
    while first < size:
        last = int(np.searchsorted(before, before[first] + step, side="right")) - 1
        last = min(max(last, first + 1), size)
        out.append((first, last))
        first = last
    return out
