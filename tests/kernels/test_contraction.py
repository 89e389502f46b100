"""Choice of edges and the clusters that come of it, on every backend."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.library import opcheck

from pyg_pool.kernels import contraction, use_backend
from pyg_pool.kernels.contraction import (
    first_pairs,
    grown_pairs,
    matched_pairs,
    merge_pairs,
    reverse_edges,
)
from pyg_pool.kernels.dual_graph import both_ways
from pyg_pool.kernels.pairs import distinct_pairs


@settings(max_examples=40)
@given(st.integers(1, 12), st.integers(0, 30), st.integers(0, 999))
def test_backends_agree(size: int, edges: int, seed: int) -> None:
    chance = torch.Generator().manual_seed(seed)
    pairs = distinct_pairs(torch.randint(size, (2, edges), generator=chance), size)
    number = pairs.size(1)
    order = torch.randperm(number, generator=chance)
    graph, limit = torch.zeros(number, dtype=torch.long), torch.tensor([number // 2])
    found = []
    for name in ("native", "numba"):
        with use_backend(name):
            both, place = both_ways(pairs, size)
            opposite = reverse_edges("test", both, size)
            cluster, count = merge_pairs(pairs[:, : number // 2], size)
            taken = matched_pairs(pairs, order, graph, limit, size)
            found.append([opposite, cluster, torch.tensor(count), taken])
        assert torch.equal(both[:, opposite], both.flip(0))
        assert torch.equal(opposite[place[0]], place[1])
        ends = pairs[:, taken].view(-1).tolist()
        assert len(ends) == len(set(ends))
    for a, b in zip(*found, strict=True):
        assert torch.equal(a, b)


def test_first_of_each_graph(backend: str) -> None:
    order = torch.tensor([4, 1, 0, 3])
    graph = torch.tensor([0, 0, 1, 1, 1])
    out = first_pairs(order, graph, torch.tensor([1, 5]))
    assert out.tolist() == [False, True, False, True, True]


def test_matching_takes_what_it_can(backend: str) -> None:
    star = torch.tensor([[0, 0, 0], [1, 2, 3]])
    graph, limit = torch.zeros(3, dtype=torch.long), torch.tensor([2])
    taken = matched_pairs(star, torch.tensor([2, 0, 1]), graph, limit, 4)
    assert taken.tolist() == [False, False, True]


def test_growth_stops_at_the_size() -> None:
    path = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    graph, limit = torch.zeros(4, dtype=torch.long), torch.tensor([4])
    taken = grown_pairs(path, torch.arange(4), graph, limit, 5, 2)
    assert taken.tolist() == [True, False, True, False]
    few = grown_pairs(path, torch.arange(4), graph, torch.tensor([1]), 5, 2)
    assert few.tolist() == [True, False, False, False]


@pytest.mark.parametrize(
    "columns",
    [
        [(0, 1), (0, 1), (1, 0)],
        [(0, 0)],
        [(0, 1), (1, 2), (2, 1)],
        [(1, 0), (0, 1)],
        [(0, 1), (1, 2), (2, 0)],
        [(0, 1), (1, 0), (2, 0)],
    ],
)
def test_unsorted_edges_are_refused(columns: list, backend: str) -> None:
    edges = torch.tensor(columns).t().contiguous()
    with pytest.raises(ValueError, match="test got edge_index of shape"):
        reverse_edges("test", edges, 3)


def test_operations_of_traced_graphs_keep_torch_s_rules() -> None:
    pairs, graph = torch.tensor([[0, 1, 2], [1, 2, 3]]), torch.zeros(3).long()
    given = pairs, torch.arange(3), graph, torch.tensor([2]), 4
    opcheck(contraction._matched_op, given)
    opcheck(contraction._grown_op, (*given, 3))
    assert contraction._matched_op(*given).tolist() == [True, False, True]
