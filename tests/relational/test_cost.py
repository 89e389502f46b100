"""Estimates against the sizes themselves, and the refusal before a crash."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from torch.nn import Identity

from pyg_pool.relational import (
    RelationalPooling,
    estimate_cost,
    expand_copies,
    find_tuples,
    lay_ground,
)
from pyg_pool.relational.cost import Cost, check_cost, free_memory
from tests.relational.families import as_data


@pytest.mark.parametrize("length", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("domain", "is_exact"),
    [
        ("all", True),
        ("distinct", True),
        ("subset", True),
        ("star", True),
        ("star_set", True),
        ("path", False),
        ("connected", False),
        ("connected_set", False),
        ("dist<=2", False),
    ],
)
def test_counts(domain: str, is_exact: bool, length: int) -> None:
    graph = as_data(nx.gnm_random_graph(9, 12, seed=3))
    ground = lay_ground(graph.edge_index, None, num_nodes=9)
    batch = torch.zeros(9, dtype=torch.long)
    tuples = find_tuples(graph.edge_index, batch, length, domain, cover=False)
    cost = estimate_cost(ground, length, domain)
    copies = expand_copies(ground, tuples)
    if is_exact or length < 2:
        assert cost.tuples == len(tuples)
        assert cost.pairs == copies.num_pairs
        assert cost.edges == copies.edge_id.numel()
    assert cost.tuples >= len(tuples)


def test_the_table_of_sizes() -> None:
    """Rows of the published table for 500 nodes of degree 4."""
    graph = as_data(nx.random_regular_graph(4, 500, seed=1))
    ground = lay_ground(graph.edge_index, None, num_nodes=500)
    assert estimate_cost(ground, 1, "distinct").pairs == 250_000
    assert estimate_cost(ground, 1, "distinct").edges == 1_000_000
    assert estimate_cost(ground, 2, "star").pairs == 1_000_000
    assert estimate_cost(ground, 2, "subset").pairs == 62_375_000
    one = estimate_cost(ground, 1, "distinct", ego=3)
    assert 20_000 < one.pairs < 30_000
    rows = estimate_cost(ground, 1, "distinct", channels=64, num_layers=6)
    assert 6_500 < rows.num_bytes / rows.pairs < 6_900
    part = estimate_cost(ground, 2, "subset", num_samples=100, chunk_size=10)
    assert part.tuples == 100
    assert part.num_bytes < rows.num_bytes / 10


def test_paths_of_hubs_are_not_overestimated() -> None:
    star = torch.stack([torch.zeros(200, dtype=torch.long), torch.arange(1, 201)])
    ground = lay_ground(star, None)
    walks = estimate_cost(ground, 3, "path").tuples
    assert len(find_tuples(star, None, 3, "path", cover=False)) == 39_800
    assert 39_800 <= walks <= 40_200


def test_too_much_is_refused_before_it_is_built() -> None:
    ring = torch.stack([torch.arange(3000), (torch.arange(3000) + 1) % 3000])
    model = RelationalPooling(Identity(), 3)
    message = r"T = 26,973,006,000 tuples.*domain.*ego.*num_samples.*chunk_size"
    with pytest.raises(ValueError, match=message):
        model(torch.ones(3000, 1), ring)
    check_cost("x", Cost(1, 1, 1, 100), torch.device("cpu"), 100)
    with pytest.raises(ValueError, match="memory_limit"):
        check_cost("x", Cost(1, 1, 1, 101), torch.device("cpu"), 100)
    assert free_memory(torch.device("cpu")) > 2**20


def test_copies_without_an_edge_are_counted_too() -> None:
    ring = torch.stack([torch.arange(40), (torch.arange(40) + 1) % 40])
    cost = estimate_cost(lay_ground(ring, None), 1, "distinct", per_edge=True)
    assert (cost.tuples, cost.pairs) == (40, 1600)
    model = RelationalPooling(Identity(), policy="delete_edge", memory_limit=1000)
    with pytest.raises(ValueError, match="T = 40 tuples, P = 1,600 pairs"):
        model(torch.ones(40, 1), ring)
