"""Balls of nodes against networkx."""

from __future__ import annotations

import networkx as nx
import pytest
import torch

from pyg_pool.kernels.hops import hop_pairs
from pyg_pool.relational.neighbours import neighbour_lists


@pytest.mark.parametrize("radius", [0, 1, 2, None])
def test_equals_networkx(radius: int | None, backend: str) -> None:
    source = nx.gnm_random_graph(12, 13, seed=5)
    edges = torch.tensor(list(source.edges)).t()
    lists = neighbour_lists(edges, 12)
    ptr, node, hops = hop_pairs(lists.ptr, lists.value, radius)
    for root in range(12):
        want = nx.single_source_shortest_path_length(source, root, radius)
        span = slice(int(ptr[root]), int(ptr[root + 1]))
        assert node[span].tolist() == sorted(want)
        assert hops[span].tolist() == [want[v] for v in sorted(want)]


def test_without_nodes(backend: str) -> None:
    empty = torch.empty(0, dtype=torch.long)
    ptr, node, hops = hop_pairs(torch.zeros(1, dtype=torch.long), empty, 2)
    assert (ptr.tolist(), node.numel(), hops.numel()) == ([0], 0, 0)
