"""Neighbour lists, joins with them and balls."""

from __future__ import annotations

import torch

from pyg_pool.relational.neighbours import (
    Lists,
    find_balls,
    join_lists,
    neighbour_lists,
    spread,
)

# A path 0-1-2 with a loop, a doubled edge and one direction only; node 3 alone.
EDGES = torch.tensor([[0, 1, 2, 2, 1], [1, 2, 1, 2, 0]])


def test_lists_ignore_direction_loops_and_multiplicity() -> None:
    lists = neighbour_lists(EDGES, 4)
    assert lists.value.tolist() == [1, 0, 2, 1]
    assert lists.count.tolist() == [1, 2, 1, 0]


def test_spread_and_join_keep_the_order_of_rows() -> None:
    owner, place = spread(torch.tensor([0, 3, 1]))
    assert (owner.tolist(), place.tolist()) == ([1, 1, 1, 2], [0, 1, 2, 0])
    lists = Lists.from_sorted(torch.tensor([0, 0, 2]), torch.tensor([5, 6, 7]), 3)
    owner, value, position = join_lists(lists, torch.tensor([2, 1, 0, 2]))
    assert owner.tolist() == [0, 2, 2, 3]
    assert value.tolist() == [7, 5, 6, 7]
    assert position.tolist() == [2, 0, 1, 2]


def test_distances_inside_and_outside_of_balls() -> None:
    balls = find_balls(neighbour_lists(EDGES, 4), 4, 1)
    source, target = torch.tensor([0, 0, 0, 3]), torch.tensor([0, 1, 2, 3])
    assert balls.distances(source, target, 9).tolist() == [0, 1, 9, 0]
    none = find_balls(neighbour_lists(EDGES[:, :0], 0), 0, 1)
    assert none.distances(source[:0], target[:0], 9).numel() == 0
