"""The domains of node tuples, each grown by joins with neighbour lists.

A table of tuples is extended position by position: by all nodes of the graph, by the
neighbours of a position, or by the ball of the first. Nothing is laid out on a grid
of all tuples and then thrown away, except for repeats.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from pyg_pool.errors import check_choice
from pyg_pool.relational.checks import check_room, check_whole
from pyg_pool.relational.neighbours import (
    Lists,
    find_balls,
    join_lists,
    neighbour_lists,
    spread,
)

__all__ = ["DOMAINS", "Domain", "Ground", "count_tuples", "grow"]

DOMAINS = (
    "all",
    "distinct",
    "subset",
    "star",
    "star_set",
    "path",
    "connected",
    "connected_set",
    "dist",
    "dist_set",
)


#: Domains whose size follows from the number of nodes.
COUNTED = ("all", "distinct", "subset")


@dataclass(frozen=True)
class Domain:
    """A domain word with its distance.

    Args:
        word: One of :data:`DOMAINS`.
        max_distance: Largest distance, for ``"dist"`` and ``"dist_set"`` only.
    """

    word: str
    max_distance: int | None = None

    @classmethod
    def parse(cls, text: str, max_distance: int | None = None) -> Domain:
        """Reads ``"star"``, ``"dist<=2"``, or ``"dist"`` with ``max_distance``.

        Raises:
            ValueError: If the word is unknown or its distance missing or superfluous.

        Example:
            >>> from pyg_pool.relational.domains import Domain
            >>> Domain.parse("dist_set<=3")
            Domain(word='dist_set', max_distance=3)
        """
        match = re.fullmatch(r"(dist|dist_set)\s*<=\s*(\d+)", str(text))
        if match and max_distance is None:
            return cls(match[1], int(match[2]))
        check_whole("enumerate_tuples", max_distance=max_distance)
        if match:
            raise ValueError(
                f"enumerate_tuples got domain={text!r} and max_distance="
                f"{max_distance}, expected one distance; leave max_distance out."
            )
        check_choice("enumerate_tuples", "domain", text, DOMAINS)
        if text.startswith("dist") == (max_distance is None) and text != "distinct":
            raise ValueError(
                f"enumerate_tuples got domain={text!r} and max_distance="
                f"{max_distance}, expected a distance with 'dist' and 'dist_set' and "
                f"with no other domain; write for instance domain='dist<=2'."
            )
        if text == "distinct" and max_distance is not None:
            raise ValueError(
                f"enumerate_tuples got domain='distinct' and max_distance="
                f"{max_distance}, expected no distance; take domain='dist<="
                f"{max_distance}', or leave max_distance out."
            )
        return cls(text, max_distance)

    @property
    def is_set(self) -> bool:
        """Whether each set of nodes comes in one order only."""
        return self.word == "subset" or self.word.endswith("_set")

    def __str__(self) -> str:
        """The word as it is given in calls."""
        tail = "" if self.max_distance is None else f"<={self.max_distance}"
        return self.word + tail


@dataclass(frozen=True)
class Ground:
    """The graphs that tuples are drawn from.

    Args:
        edge_index: ``[2, E]``.
        batch: ``[N]`` graph of each node, ascending.
        start: ``[B + 1]`` first node of each graph.
    """

    edge_index: Tensor
    batch: Tensor
    start: Tensor

    @classmethod
    def of(cls, edge_index: Tensor, batch: Tensor, batch_size: int) -> Ground:
        """Finds the first node of each graph."""
        ids = torch.arange(batch.numel(), device=batch.device)
        return cls(edge_index, batch, Lists.from_sorted(batch, ids, batch_size).ptr)

    @cached_property
    def lists(self) -> Lists:
        """Neighbours of each node, ascending; sorted when they are asked for."""
        return neighbour_lists(self.edge_index, self.batch.numel())

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all graphs."""
        return self.batch.numel()

    @property
    def members(self) -> Lists:
        """The nodes of each graph."""
        return Lists(self.start, torch.arange(self.num_nodes, device=self.start.device))


def grow(ground: Ground, length: int, domain: Domain) -> Tensor:
    """Returns all tuples of a domain, ``[T, length]``, in lexicographic order."""
    nodes = torch.arange(ground.num_nodes, device=ground.batch.device)
    table = nodes.view(-1, 1)
    if domain.word in COUNTED:
        sizes = (ground.start[1:] - ground.start[:-1]).tolist()
        total = sum(count_tuples(size, length, domain.word) for size in sizes)
        check_room(float(min(total, 10**300)), table.device, width=2 * length + 4)
    if domain.word in ("connected", "connected_set"):
        return _connected(ground, length, in_order=domain.word == "connected")
    extend = _STEPS[domain.word]
    if domain.word in ("dist", "dist_set"):
        radius = min(domain.max_distance or 0, ground.num_nodes)
        balls = find_balls(ground.lists, ground.num_nodes, radius)
        for _ in range(length - 1):
            if table.size(0) == 0:
                return table.new_empty((0, length))
            table = _near(balls.lists, table, is_set=domain.is_set)
            for place in range(1, table.size(1) - 1):
                far = radius + 1
                near = balls.distances(table[:, place], table[:, -1], far) < far
                table = table[near]
        return table
    for _ in range(length - 1):
        if table.size(0) == 0:  # nothing grows from nothing, however many labels
            return table.new_empty((0, length))
        table = extend(ground, table)
    return table


def count_tuples(size: int, length: int, word: str) -> int:
    """Number of tuples of a graph in a domain of :data:`COUNTED`.

    Example:
        >>> from pyg_pool.relational.domains import count_tuples
        >>> [count_tuples(5, 2, word) for word in ("all", "distinct", "subset")]
        [25, 20, 10]
    """
    if word == "all":
        return size**length
    return (math.perm if word == "distinct" else math.comb)(size, length)


def _appended(table: Tensor, lists: Lists, rows: Tensor) -> Tensor:
    """Each tuple with each entry of the list of its row."""
    total = int(lists.count.index_select(0, rows).sum())
    check_room(total, table.device, width=2 * table.size(1) + 4)
    owner, value, _ = join_lists(lists, rows)
    return torch.cat([table.index_select(0, owner), value.view(-1, 1)], dim=1)


def _fresh(table: Tensor) -> Tensor:
    """Only the tuples whose last node is none of the others."""
    return table[(table[:, :-1] != table[:, -1:]).all(dim=1)]


def _rising(table: Tensor, first: int) -> Tensor:
    """Only the tuples whose last node is above the one before, from a position on."""
    if table.size(1) - 2 < first:
        return table
    return table[table[:, -1] > table[:, -2]]


def _any(ground: Ground, table: Tensor) -> Tensor:
    graphs = ground.batch.index_select(0, table[:, 0])
    return _appended(table, ground.members, graphs)


def _distinct(ground: Ground, table: Tensor) -> Tensor:
    return _fresh(_any(ground, table))


def _subset(ground: Ground, table: Tensor) -> Tensor:
    last = table[:, -1]
    end = ground.start.index_select(0, ground.batch.index_select(0, last) + 1)
    owner, place = spread(end - last - 1)
    value = last.index_select(0, owner) + 1 + place
    return torch.cat([table.index_select(0, owner), value.view(-1, 1)], dim=1)


def _star(ground: Ground, table: Tensor) -> Tensor:
    return _fresh(_appended(table, ground.lists, table[:, 0]))


def _star_set(ground: Ground, table: Tensor) -> Tensor:
    return _rising(_appended(table, ground.lists, table[:, 0]), 1)


def _path(ground: Ground, table: Tensor) -> Tensor:
    return _fresh(_appended(table, ground.lists, table[:, -1]))


def _near(balls: Lists, table: Tensor, *, is_set: bool) -> Tensor:
    longer = _appended(table, balls, table[:, 0])
    return _rising(longer, 0) if is_set else _fresh(longer)


_STEPS: dict[str, Callable[[Ground, Tensor], Tensor]] = {
    "all": _any,
    "distinct": _distinct,
    "subset": _subset,
    "star": _star,
    "star_set": _star_set,
    "path": _path,
    "dist": _distinct,
    "dist_set": _subset,
}


def _connected(ground: Ground, length: int, *, in_order: bool) -> Tensor:
    """Grows connected sets by neighbours of any member, then orders them."""
    nodes = torch.arange(ground.num_nodes, device=ground.batch.device)
    table = nodes.view(-1, 1)
    for _ in range(length - 1):
        if table.size(0) == 0:
            return table.new_empty((0, length))
        parts = [
            _fresh(_appended(table, ground.lists, table[:, place]))
            for place in range(table.size(1))
        ]
        table = sort_rows(torch.sort(torch.cat(parts), dim=1).values, unique=True)
    if in_order and length > 1:
        check_room(table.size(0) * math.factorial(length), table.device, width=length)
        orders = torch.tensor(
            list(itertools.permutations(range(length))), device=table.device
        )
        table = sort_rows(table[:, orders].view(-1, length))
    return table


def sort_rows(table: Tensor, *, unique: bool = False) -> Tensor:
    """The rows in lexicographic order, each once where asked for."""
    for place in reversed(range(table.size(1))):
        order = torch.sort(table[:, place], stable=True).indices
        table = table.index_select(0, order)
    if unique and table.size(0) > 1:
        new = torch.ones(table.size(0), dtype=torch.bool, device=table.device)
        new[1:] = (table[1:] != table[:-1]).any(dim=1)
        table = table[new]
    return table
