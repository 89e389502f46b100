"""Which neighbour each node would merge with, and what that costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.degree_numba import MOST, TAKEN, least_degrees
from pyg_pool.coarsen.group_numba import best_partners
from pyg_pool.coarsen.state import State

__all__ = ["ByCost", "ByDegree"]

Array = NDArray[Any]
Part = tuple[int, int]
# The hash that stands for a neighbour has 32 bits.
WIDE = 1 << 32


class ByCost:
    """Best partners by Ward's cost.

    Args:
        state: The level.
        closed: Whether a node may not merge, for each node.
        cap: Largest mass of a pair.
        lock: Locks of the nodes, or empty.
        seed: Seed of the rule for ties.
    """

    def __init__(
        self, state: State, closed: Array, cap: float, lock: Array, seed: int
    ) -> None:
        self.rows = (state.indptr, state.indices, state.value, state.scale)
        self.record = np.empty((state.num_nodes, 2), dtype=np.float32)
        self.record[:, 0] = state.mass
        self.record[:, 1] = state.own / state.mass
        self.record[closed, 1] = np.inf
        self.taken, self.mark = self.record[:, 1], np.inf
        self.best = np.full(state.num_nodes, -1, dtype=state.indices.dtype)
        self.cost = np.full(state.num_nodes, np.inf, dtype=np.float32)
        self.lock, self.wishes = lock, (float(cap), seed)

    def look(self, part: Part) -> None:
        """Finds the best partner of the free nodes of a range."""
        where = (self.best, self.cost)
        best_partners(part, self.rows, self.record, self.lock, *where, *self.wishes)

    def prices(self) -> Array:
        """Cost of merging each node with its partner, infinite without one."""
        return self.cost

    def keep_prices(self) -> Callable[[], Array]:
        """Tells the costs of now, whatever partners are found later."""
        kept = self.cost.copy()
        return lambda: kept


class ByDegree:
    """The same for :meth:`fits` states, where the least degree is the least cost.

    Args:
        state: The level.
        closed: Whether a node may not merge, for each node.
        seed: Seed of the rule for ties.
    """

    def __init__(self, state: State, closed: Array, seed: int) -> None:
        self.rows, self.mass, self.seed = (
            (state.indptr, state.indices),
            state.mass,
            seed,
        )
        self.taken, self.mark = np.diff(state.indptr), TAKEN
        self.taken = np.minimum(self.taken, MOST, out=self.taken).astype(np.uint16)
        self.taken[closed] = TAKEN
        self.best = np.full(state.num_nodes, -1, dtype=state.indices.dtype)

    @staticmethod
    def fits(state: State) -> bool:
        """Whether a state is the rw kernel on edges without weights and self loops."""
        unweighted = state.value.size == 0 and state.scale.size == 0
        return unweighted and state.own is state.mass and state.num_nodes < WIDE

    def look(self, part: Part) -> None:
        """Finds the best partner of the free nodes of a range."""
        least_degrees(part, *self.rows, self.taken, self.best, self.seed)

    def prices(self) -> Array:
        """Cost of merging each node with its partner, infinite without one."""
        return self._prices(self.best)

    def keep_prices(self) -> Callable[[], Array]:
        """Tells the costs of now, whatever partners are found later."""
        kept = self.best.copy()
        return lambda: self._prices(kept)

    def _prices(self, best: Array) -> Array:
        both = self.mass + self.mass[best]
        return np.where(best < 0, np.inf, 1 - 2 / both).astype(np.float32)
