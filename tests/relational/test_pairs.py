"""Pairs, their joins, and their repetition for copies, against loops."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
import torch

from pyg_pool.relational.pairs import (
    find_pairs_and_joins,
    repeat_pairs,
    square_groups,
)
from pyg_pool.relational.tuples import lay_ground
from tests.relational.families import as_data


@pytest.mark.parametrize("distance", [0, 1, 2])
def test_joins_equal_loops(distance: int) -> None:
    source = nx.gnm_random_graph(7, 8, seed=2)
    ground = lay_ground(as_data(source).edge_index, None, num_nodes=7)
    found = find_pairs_and_joins(ground, distance)
    far = dict(nx.all_pairs_shortest_path_length(source))
    pairs = [
        (u, v)
        for u, v in itertools.product(range(7), repeat=2)
        if far[u].get(v, 99) <= distance
    ]
    place = {pair: number for number, pair in enumerate(pairs)}
    joins = [
        [place[u, v], place[u, w], place[w, v]]
        for u, v in pairs
        for w in range(7)
        if (u, w) in place and (w, v) in place
    ]
    assert [tuple(p) for p in found.pair.t().tolist()] == pairs
    assert found.joins is not None
    assert found.joins.t().tolist() == joins


def test_repetition_is_a_batch_of_the_copies() -> None:
    edges = torch.tensor([[0, 1, 3], [1, 2, 4]])
    ground = lay_ground(edges, torch.tensor([0, 0, 0, 1, 1]))
    pairs = find_pairs_and_joins(ground, 1)
    every, source = repeat_pairs(pairs, torch.tensor([0, 0, 1]))
    assert every.batch.tolist() == [0] * 7 + [1] * 7 + [2] * 4
    assert torch.equal(every.pair, pairs.pair[:, source])
    assert every.joins is not None
    assert pairs.joins is not None
    number = int((pairs.batch[pairs.joins[0]] == 0).sum())
    first, second = every.joins[:, :number], every.joins[:, number : 2 * number]
    assert torch.equal(first + 7, second)
    assert torch.equal(every.joins[:, 2 * number :], pairs.joins[:, number:] + 7)


def test_squares_by_size() -> None:
    ground = lay_ground(torch.empty((2, 0)).long(), torch.tensor([0, 1, 1, 3]), 4)
    groups = square_groups(find_pairs_and_joins(ground, None))
    assert [(size, index.tolist()) for size, index in groups] == [
        (1, [[[0]], [[5]]]),
        (2, [[[1, 2], [3, 4]]]),
    ]
