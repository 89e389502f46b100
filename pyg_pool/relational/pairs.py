"""Pairs of nodes and the joins of two of them: what 2-FWL networks run on."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_pool.relational.domains import Ground
from pyg_pool.relational.neighbours import Lists, find_balls, join_lists, spread

__all__ = ["PairSet", "find_pairs_and_joins", "repeat_pairs"]


@dataclass(frozen=True)
class PairSet:
    """Pairs of nodes and how they join.

    Args:
        pair: ``[2, Q]`` nodes of each pair, graph by graph, lexicographic.
        batch: ``[Q]`` graph (or copy) of each pair.
        joins: ``[3, R]`` pair (u, v), pair (u, w), pair (w, v), sorted by the first,
            then by w; ``None`` where all pairs are there and a matrix product does.
        size: Number of graphs (or copies).
        squares: What :func:`square_groups` makes of them, if it was asked for.
    """

    pair: Tensor
    batch: Tensor
    joins: Tensor | None
    size: int
    squares: list[tuple[int, Tensor]] | None = None

    @property
    def is_loop(self) -> Tensor:
        """Whether the two nodes of each pair are the same, ``[Q]``."""
        return self.pair[0] == self.pair[1]


def find_pairs_and_joins(
    ground: Ground, max_distance: int | None, *, joined: bool | None = None
) -> PairSet:
    """Lists the pairs of nodes within a distance, and their joins.

    Args:
        ground: The graphs.
        max_distance: Largest distance of the two nodes; ``None`` for all pairs.
        joined: Whether to list the joins; by default only with ``max_distance``.

    Note:
        Pairs are found by their position in the lists of their first node, so keys
        stay below the square of the number of nodes.

    Example:
        >>> import torch
        >>> from pyg_pool.relational.pairs import find_pairs_and_joins
        >>> from pyg_pool.relational.tuples import lay_ground
        >>> path = lay_ground(torch.tensor([[0, 1], [1, 2]]), None)
        >>> found = find_pairs_and_joins(path, 1)
        >>> found.pair.size(1), found.joins.size(1)
        (7, 15)
    """
    if max_distance is None:
        lists = ground.members
        row, value, _ = join_lists(lists, ground.batch)
        lists = Lists.from_sorted(row, value, ground.num_nodes)
    else:
        lists = find_balls(ground.lists, ground.num_nodes, max_distance).lists
        ids = torch.arange(ground.num_nodes, device=ground.batch.device)
        row, value = ids.repeat_interleave(lists.count), lists.value
    pair = torch.stack([row, value])
    batch = ground.batch.index_select(0, row)
    is_joined = max_distance is not None if joined is None else joined
    joins = _joins(lists, pair, ground.num_nodes) if is_joined else None
    return PairSet(pair, batch, joins, ground.start.numel() - 1)


def _joins(lists: Lists, pair: Tensor, num_nodes: int) -> Tensor:
    """Triples of pairs (u, v), (u, w), (w, v)."""
    first, end, second = join_lists(lists, pair[1])
    if first.numel() == 0:
        return pair.new_zeros((3, 0))
    known = pair[0] * num_nodes + pair[1]
    key = pair[0].index_select(0, first) * num_nodes + end
    place = torch.searchsorted(known, key).clamp_(max=known.numel() - 1)
    kept = (known.index_select(0, place) == key).nonzero().view(-1)
    place = place.index_select(0, kept)
    order = torch.sort(place, stable=True).indices
    kept = kept.index_select(0, order)
    return torch.stack(
        [
            place.index_select(0, order),
            first.index_select(0, kept),
            second.index_select(0, kept),
        ]
    )


def repeat_pairs(pairs: PairSet, graph: Tensor) -> tuple[PairSet, Tensor]:
    """The pairs of a graph once for each copy of it, and the pair each one copies."""
    ids = torch.arange(pairs.batch.numel(), device=graph.device)
    lists = Lists.from_sorted(pairs.batch, ids, pairs.size)
    owner, source, _ = join_lists(lists, graph)
    joins = None
    if pairs.joins is not None:
        target_graph = pairs.batch.index_select(0, pairs.joins[0])
        join_ids = torch.arange(target_graph.numel(), device=graph.device)
        by_graph = Lists.from_sorted(target_graph, join_ids, pairs.size)
        copy, join, _ = join_lists(by_graph, graph)
        count = lists.count.index_select(0, graph)
        start = count.cumsum(0) - count
        shift = (start - lists.ptr[:-1].index_select(0, graph)).index_select(0, copy)
        joins = pairs.joins.index_select(1, join) + shift
    pair = pairs.pair.index_select(1, source)
    return PairSet(pair, owner, joins, graph.numel()), source


def square_groups(pairs: PairSet) -> list[tuple[int, Tensor]]:
    """Positions of all pairs as ``[G, n, n]`` for each size n of a graph."""
    count = pairs.batch.new_zeros(pairs.size)
    count.scatter_add_(0, pairs.batch, torch.ones_like(pairs.batch))
    start = count.cumsum(0) - count
    out = []
    for number in torch.unique(count[count > 0]).tolist():
        size = round(number**0.5)
        first = start[count == number]
        rows = torch.full_like(first, number)
        owner, place = spread(rows)
        index = first.index_select(0, owner) + place
        out.append((size, index.view(-1, size, size)))
    return out
