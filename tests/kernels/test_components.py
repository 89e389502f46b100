"""Connected components against a depth-first search.

The number of rounds depends on the graph: one operation in a traced graph.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.library import opcheck

from pyg_pool.kernels import connected_components
from pyg_pool.kernels.components import _roots_op


def slow(edges: list[tuple[int, int]], num_nodes: int) -> list[int]:
    near: list[list[int]] = [[] for _ in range(num_nodes)]
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    found = [-1] * num_nodes
    count = 0
    for start in range(num_nodes):
        if found[start] >= 0:
            continue
        stack = [start]
        while stack:
            node = stack.pop()
            if found[node] < 0:
                found[node] = count
                stack.extend(near[node])
        count += 1
    return found


def edge_index(edges: list[tuple[int, int]]) -> torch.Tensor:
    return torch.tensor(edges, dtype=torch.long).view(-1, 2).t()


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[int, int]], int]:
    n = draw(st.integers(1, 12))
    node = st.integers(0, n - 1)
    return draw(st.lists(st.tuples(node, node), max_size=14)), n


@settings(derandomize=True, max_examples=120, deadline=None)
@given(graphs())
def test_equals_a_search(case: tuple[list[tuple[int, int]], int]) -> None:
    edges, n = case
    assert connected_components(edge_index(edges), n).tolist() == slow(edges, n)


def test_long_path_with_shuffled_numbers() -> None:
    n = 3000
    order = torch.randperm(n)
    path = torch.stack([order[:-1], order[1:]])
    cut = torch.cat([path[:, :1000], path[:, 1001:]], dim=1)
    assert connected_components(path, n).tolist() == [0] * n
    pieces = connected_components(cut, n)
    assert pieces.tolist() == slow([tuple(e) for e in cut.t().tolist()], n)
    assert int(pieces.max()) == 1


def test_nothing_and_no_edges() -> None:
    none = torch.empty(2, 0, dtype=torch.long)
    assert connected_components(none, 0).tolist() == []
    assert connected_components(none, 3).tolist() == [0, 1, 2]


def test_batches_of_graphs_stay_apart() -> None:
    one = edge_index([(0, 2), (1, 1)])
    both = torch.cat([one, one + 3], dim=1)
    assert connected_components(both, 6).tolist() == [0, 1, 0, 2, 3, 2]


def test_wrong_edges_are_explained() -> None:
    with pytest.raises(ValueError, match="connected_components got edge_index with"):
        connected_components(edge_index([(0, 3)]), 3)
    with pytest.raises(ValueError, match=r"edge_index of shape \[3\]"):
        connected_components(torch.tensor([0, 1, 2]), 3)


def test_operation_of_traced_graphs_keeps_torch_s_rules() -> None:
    edges = torch.tensor([[3, 1, 0], [0, 2, 3]])
    opcheck(_roots_op, (edges, 5))
    assert _roots_op(edges, 5).tolist() == [0, 1, 1, 0, 4]
