"""Edges between clusters and between their dual nodes, on every backend."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.kernels.dual_graph import both_ways, coarse_pairs, dual_edges


@pytest.mark.parametrize("config", ["A", "B", "C"])
@pytest.mark.parametrize("loops", [False, True])
def test_links_are_those_of_the_rule(config: str, loops: bool, backend: str) -> None:
    chance = torch.Generator().manual_seed(7)
    for size in (1, 2, 6, 9):
        adjacent = torch.rand(size, size, generator=chance) < 0.5
        pairs = adjacent.triu(1).nonzero().t().contiguous()
        edges, place = both_ways(pairs, size)
        opposite = torch.empty_like(place.view(-1))
        opposite[place.view(-1)] = place.flip(0).view(-1)
        if config == "A":
            number = pairs.size(1)
            to_dual = torch.empty_like(opposite)
            to_dual[place.view(-1)] = torch.arange(2 * number) % max(number, 1)
            nodes = pairs.t().tolist()
        else:
            number, to_dual = edges.size(1), torch.arange(edges.size(1))
            nodes = edges.t().tolist()
        expected = set()
        for s, (a, b) in enumerate(nodes):
            for t, (c, d) in enumerate(nodes):
                if config == "A" and len({a, b, c, d}) == 3:
                    expected.add((s, t))
                follows = (b == c and a != d, d == a and c != b)
                if config == "B" and any(follows):
                    expected.add((s, t))
                if config == "C" and follows[0]:
                    expected.add((s, t))
                if loops and s == t:
                    expected.add((s, t))
        found = dual_edges(
            edges, to_dual, opposite, size, number, config=config, loops=loops
        )
        assert [tuple(e) for e in found.t().tolist()] == sorted(expected)


def test_pairs_of_clusters(backend: str) -> None:
    pairs = torch.tensor([[0, 0, 1, 2, 3], [1, 3, 2, 3, 4]])
    found, between = coarse_pairs(pairs, torch.tensor([2, 2, 0, 0, 1]), 3)
    assert found.t().tolist() == [[0, 1], [0, 2]]
    assert between.tolist() == [-1, 1, 1, -1, 0]
    none, between = coarse_pairs(pairs[:, :0], torch.tensor([0]), 1)
    assert none.shape == (2, 0)
    assert between.numel() == 0


def test_unknown_config() -> None:
    none = torch.empty(2, 0, dtype=torch.long)
    with pytest.raises(ValueError, match="config='D'"):
        dual_edges(none, none[0], none[0], 0, 0, config="D")
