"""One level of merging: pairs, joins, and what is left over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.group_numba import (
    add_up,
    join_all,
    join_in_order,
    merge_pairs,
    mutual_pairs,
    number_groups,
)
from pyg_pool.coarsen.partners import ByCost, ByDegree
from pyg_pool.coarsen.state import State
from pyg_pool.coarsen.threads import Threads

__all__ = ["Limits", "group"]

Array = NDArray[Any]
Partners = ByCost | ByDegree
FREE, ANCHOR, KEPT = 0, 1, 2
# A round that merges less than this share of the nodes is the last one.
LEAST = 0.02


@dataclass(eq=False)
class Limits:
    """What merging must respect.

    Args:
        cap: Largest mass of a cluster that merging or moving may make.
        connected: Whether only neighbours may merge.
        lock: Per node ``FREE``, ``ANCHOR`` (merges with free nodes only) or ``KEPT``
            (stays alone); empty if all are free.
    """

    cap: float = np.inf
    connected: bool = False
    lock: Array = field(default_factory=lambda: np.empty(0, np.uint8))

    @property
    def are_set(self) -> bool:
        """Whether anything is restricted node by node."""
        return self.cap < np.inf or self.lock.size > 0


def group(
    state: State, target: int, limits: Limits, rounds: int, seed: int, threads: Threads
) -> tuple[Array, int]:
    """Merges nodes of one level, down to ``target`` at most.

    Args:
        state: The level.
        target: Number of groups not to go below.
        limits: What must stay apart.
        rounds: Rounds of pairing.
        seed: Seed of the rule for ties.
        threads: Threads to use.

    Returns:
        The group of each node, numbered by first member, and the number of groups.
    """
    size = state.num_nodes
    need = size - target
    groups = np.full(size, -1, dtype=state.indices.dtype)
    if not limits.connected:
        need -= _merge_isolated(state, target, need, limits, groups)
    closed = groups >= 0
    if limits.lock.size:
        closed |= limits.lock == KEPT
    partners: Partners
    if ByDegree.fits(state) and not limits.are_set:
        partners = ByDegree(state, closed, seed)
    else:
        partners = ByCost(state, closed, limits.cap, limits.lock, seed)
    need, first, prices = _pair(partners, groups, need, rounds, threads)
    if need > 0:
        need = _join(state, groups, first, prices, need, limits)
    if need == size - target and need > 0 and not limits.connected:
        _merge_leftovers(state, groups, need, limits)
    label = np.empty(size, dtype=groups.dtype)
    return label, int(number_groups(groups, label))


def _merge_isolated(
    state: State, target: int, need: int, limits: Limits, groups: Array
) -> int:
    """Cuts the nodes without edges into runs of near-equal length."""
    alone = np.diff(state.indptr) == 0
    if limits.lock.size:
        alone &= limits.lock == FREE
    nodes = np.flatnonzero(alone)
    count = nodes.size
    if count < 2 or need < 1:
        return 0
    runs = max(-(-count * target // state.num_nodes), count - need, 1)
    if limits.cap < np.inf:
        most = max(int(limits.cap // state.mass[nodes].max()), 1)
        runs = max(runs, -(-count // most))
    run = np.arange(count) * runs // count
    starts = np.searchsorted(run, np.arange(runs))
    groups[nodes] = nodes[starts[run]]
    return int(count - runs)


def _pair(
    partners: Partners, groups: Array, need: int, rounds: int, threads: Threads
) -> tuple[int, Array, Callable[[], Array]]:
    """Merges mutual best neighbours; returns everyone's first choice and its cost."""
    best, size = partners.best, groups.size
    first, prices = best, partners.prices
    parts = threads.ranges(size)

    def agree(part: tuple[int, int]) -> Array:
        return mutual_pairs(part, best, groups)

    def merge(pairs: Array) -> None:
        merge_pairs(pairs, best, partners.taken, partners.mark, groups)

    for turn in range(rounds):
        if need <= 0:
            break
        threads.map(partners.look, parts)
        if turn == 0:
            first, prices = best.copy(), partners.keep_prices()
        pairs = threads.map(agree, parts)
        count = sum(some.size for some in pairs)
        if count > need:
            flat = np.concatenate(pairs)
            pairs = [flat[cheapest(partners.prices()[flat], need)]]
            count = need
        threads.map(merge, pairs)
        need -= count
        if count < LEAST * size:
            break
    return need, first, prices


def cheapest(cost: Array, count: int) -> Array:
    """Places of the lowest costs, the first ones on ties, by place."""
    limit = np.partition(cost, count - 1)[count - 1]
    below = cost < limit
    rest = count - int(np.count_nonzero(below))
    below[np.flatnonzero(cost == limit)[:rest]] = True
    return np.flatnonzero(below)


def _join(
    state: State,
    groups: Array,
    best: Array,
    prices: Callable[[], Array],
    need: int,
    limits: Limits,
) -> int:
    """Single nodes join the group of their best neighbour; returns what is left."""
    single = (groups < 0) & (best >= 0)
    if not limits.are_set and int(single.sum()) <= need:
        return need - int(join_all(best, groups))
    nodes = np.flatnonzero(single)
    order = nodes[np.argsort(prices()[nodes], kind="stable")]
    mass, lock = state.mass.copy(), limits.lock.copy()
    add_up(groups, mass, lock)
    return need - int(
        join_in_order(order, best, groups, mass, lock, float(limits.cap), need)
    )


def _merge_leftovers(state: State, groups: Array, need: int, limits: Limits) -> None:
    """Pairs nodes in ascending ``q / c`` where no edges are left between them."""
    free = np.ones(state.num_nodes, dtype=bool)
    if limits.lock.size:
        free = limits.lock == FREE
    nodes = np.flatnonzero(free)
    # Under a limit of mass, small ones first, or little would fit.
    key = state.own[nodes] / state.mass[nodes]
    key = state.mass[nodes] if limits.cap < np.inf else key
    order = nodes[np.argsort(key, kind="stable")]
    pairs = order[: order.size // 2 * 2].reshape(-1, 2)[:need]
    if limits.cap < np.inf:
        pairs = pairs[state.mass[pairs].sum(axis=1) <= limits.cap]
    groups[pairs[:, 0]] = pairs[:, 0]
    groups[pairs[:, 1]] = pairs[:, 0]
