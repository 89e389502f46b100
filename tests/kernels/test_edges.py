"""Edges of a subgraph against a loop, on every backend."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pyg_pool.kernels import filter_edges, incident_edges, use_backend
from pyg_pool.kernels.dispatch import runs_numba

BACKENDS = ("native", "numba")


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Tensor, Tensor, int]:
    """Edges with loops and repeats, and distinct kept nodes in any order."""
    size = draw(st.integers(1, 8))
    ids = st.integers(0, size - 1)
    edges = draw(st.lists(st.tuples(ids, ids), max_size=20))
    kept = draw(st.permutations(range(size)))[: draw(st.integers(0, size))]
    index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
    return index, torch.tensor(kept, dtype=torch.long), size


@given(graphs(), st.booleans(), st.sampled_from(BACKENDS))
def test_filter_equals_a_loop(
    graph: tuple[Tensor, Tensor, int], keep_loops: bool, backend: str
) -> None:
    edges, kept, size = graph
    number = {node: c for c, node in enumerate(kept.tolist())}
    expected = [
        (number[u], number[v], e)
        for e, (u, v) in enumerate(edges.t().tolist())
        if u in number and v in number and (keep_loops or u != v)
    ]
    with use_backend(backend):  # type: ignore[arg-type]
        assert runs_numba("filter_edges", 0, edges) == (backend == "numba")
        found, ids = filter_edges(edges, kept, size, keep_loops=keep_loops)
    assert found.shape == (2, len(expected))
    assert found.dtype == ids.dtype == torch.long
    assert [(*pair, e) for pair, e in zip(found.t().tolist(), ids.tolist(), strict=True)
            ] == [tuple(row) for row in expected]  # fmt: skip


@given(graphs(), st.booleans(), st.sampled_from(BACKENDS))
def test_incident_equals_a_loop(
    graph: tuple[Tensor, Tensor, int], swap_loops: bool, backend: str
) -> None:
    edges, kept, size = graph
    number = {node: c for c, node in enumerate(kept.tolist())}
    pairs = [
        (e, u, v)
        for e, (u, v) in enumerate(edges.t().tolist())
        if not (swap_loops and u == v)
    ]
    leaving = [(number[u], v) for _, u, v in pairs if u in number]
    entering = [(u, number[v]) for _, u, v in pairs if v in number]
    if swap_loops:
        leaving += [(c, node) for node, c in number.items()]
        entering += list(number.items())
    with use_backend(backend):  # type: ignore[arg-type]
        left, out_ids, right, in_ids = incident_edges(
            edges, kept, size, swap_loops=swap_loops
        )
    assert [tuple(edge) for edge in left.t().tolist()] == leaving
    assert [tuple(edge) for edge in right.t().tolist()] == entering
    assert out_ids.tolist() == [e for e, u, _ in pairs if u in number]
    assert in_ids.tolist() == [e for e, _, v in pairs if v in number]


def test_filter_takes_a_strided_edge_list(backend: str) -> None:
    edges = torch.tensor([[0, 1], [1, 2], [2, 0]]).t()
    found, ids = filter_edges(edges, torch.tensor([1, 0]), 3)
    assert found.tolist() == [[1], [0]]
    assert ids.tolist() == [0]


@pytest.mark.parametrize("bad", [-1, 3])
def test_ids_out_of_range_are_refused(bad: int, backend: str) -> None:
    edges, nodes = torch.tensor([[0, bad], [1, 2]]), torch.tensor([0, 1])
    with pytest.raises(IndexError, match="out of range"):
        filter_edges(edges, nodes, 3)
    with pytest.raises(IndexError, match="out of range"):
        incident_edges(edges, nodes, 3, swap_loops=True)
    if bad > 0:  # torch takes a negative position as counted from the end
        with pytest.raises(IndexError, match="out of"):
            filter_edges(edges[:, :1], torch.tensor([bad]), 3)
