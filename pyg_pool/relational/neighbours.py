"""Neighbour lists, ragged joins with them, and balls by breadth-first search.

All of it works on the undirected view of a graph: direction, multiplicity and self
loops of the edges do not matter. Nothing here holds a square matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_pool.kernels.dispatch import is_traced
from pyg_pool.kernels.hops import hop_pairs
from pyg_pool.kernels.pairs import distinct_pairs
from pyg_pool.relational.checks import check_room

__all__ = ["Balls", "Lists", "find_balls", "join_lists", "neighbour_lists", "spread"]


def spread(count: Tensor) -> tuple[Tensor, Tensor]:
    """Lists ``count[i]`` entries for each ``i``: their owner and place in its list.

    Raises:
        ValueError: If the list would not fit into the memory.

    Example:
        >>> import torch
        >>> from pyg_pool.relational.neighbours import spread
        >>> spread(torch.tensor([2, 0, 1]))
        (tensor([0, 0, 2]), tensor([0, 1, 0]))
    """
    if not is_traced():
        check_room(int(count.sum()), count.device)
    owner = torch.arange(count.numel(), device=count.device).repeat_interleave(count)
    start = count.cumsum(0) - count
    place = torch.arange(owner.numel(), device=count.device)
    return owner, place - start.index_select(0, owner)


@dataclass(frozen=True)
class Lists:
    """A list of numbers for each row, one after the other.

    Args:
        ptr: ``[N + 1]`` offsets.
        value: ``[M]`` entries of all lists.
    """

    ptr: Tensor
    value: Tensor

    @property
    def count(self) -> Tensor:
        """Length of each list, ``[N]``."""
        return self.ptr[1:] - self.ptr[:-1]

    @classmethod
    def from_sorted(cls, row: Tensor, value: Tensor, num_rows: int) -> Lists:
        """Lists of entries that are sorted by their row."""
        count = row.new_zeros(num_rows + 1)
        count.scatter_add_(0, row + 1, torch.ones_like(row))
        return cls(count.cumsum(0), value)


def join_lists(lists: Lists, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Lists the entries of each row asked for: owner, entry, position among all.

    Example:
        >>> import torch
        >>> from pyg_pool.relational.neighbours import Lists, join_lists
        >>> lists = Lists(torch.tensor([0, 2, 3]), torch.tensor([7, 8, 9]))
        >>> join_lists(lists, torch.tensor([1, 0]))
        (tensor([0, 1, 1]), tensor([9, 7, 8]), tensor([2, 0, 1]))
    """
    owner, place = spread(lists.count.index_select(0, rows))
    place = place + lists.ptr.index_select(0, rows).index_select(0, owner)
    return owner, lists.value.index_select(0, place), place


def neighbour_lists(edge_index: Tensor, num_nodes: int) -> Lists:
    """Returns the neighbours of each node, ascending, each once.

    Shapes:
        edge_index: ``[2, E]`` int64.

    Example:
        >>> import torch
        >>> from pyg_pool.relational.neighbours import neighbour_lists
        >>> neighbour_lists(torch.tensor([[2, 1, 1], [1, 1, 2]]), 3).value
        tensor([2, 1])
    """
    low, high = distinct_pairs(edge_index, num_nodes)
    row, value = torch.cat([low, high]), torch.cat([high, low])
    order = torch.argsort(row * max(num_nodes, 1) + value)
    row, value = row.index_select(0, order), value.index_select(0, order)
    return Lists.from_sorted(row, value, num_nodes)


@dataclass(frozen=True)
class Balls:
    """The nodes near each node, ascending, with their distance.

    Args:
        lists: The nodes within ``radius`` of each node, itself among them.
        distance: ``[M]`` distance of each entry.
        num_nodes: Number of nodes.
    """

    lists: Lists
    distance: Tensor
    num_nodes: int

    def distances(self, source: Tensor, target: Tensor, far: int) -> Tensor:
        """Distance of each pair, ``far`` where the target is outside the ball."""
        key = source * self.num_nodes + target
        ids = torch.arange(self.num_nodes, device=key.device)
        rows = ids.repeat_interleave(self.lists.count)
        known = rows * self.num_nodes + self.lists.value
        if known.numel() == 0:
            return torch.full_like(key, far)
        place = torch.searchsorted(known, key).clamp_(max=known.numel() - 1)
        found = known.index_select(0, place) == key
        return self.distance.index_select(0, place).masked_fill(~found, far)


def find_balls(lists: Lists, num_nodes: int, radius: int | None) -> Balls:
    """Returns the ball of each node by breadth-first search.

    Args:
        lists: Neighbours of each node.
        num_nodes: Number of nodes.
        radius: Largest distance, or ``None`` for whole components.

    Example:
        >>> import torch
        >>> from pyg_pool.relational.neighbours import find_balls, neighbour_lists
        >>> path = neighbour_lists(torch.tensor([[0, 1], [1, 2]]), 3)
        >>> find_balls(path, 3, 1).lists.value
        tensor([0, 1, 0, 1, 2, 1, 2])
    """
    if radius is not None:
        radius = min(radius, num_nodes)  # no shortest path is longer
    ptr, node, distance = hop_pairs(lists.ptr, lists.value, radius)
    return Balls(Lists(ptr, node), distance, num_nodes)
