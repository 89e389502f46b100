"""Merging parallel edges against a dictionary."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.utils import coalesce as pyg_coalesce

from pyg_pool.kernels import coalesce, use_backend
from pyg_pool.kernels.coalesce import REDUCES, contract

SLOW: dict[str, Callable[[list[float]], float]] = {
    "sum": sum,
    "mean": lambda v: sum(v) / len(v),
    "max": max,
    "min": min,
    "mul": math.prod,
}


def edge_index(edges: list[tuple[int, int]]) -> Tensor:
    return torch.tensor(edges, dtype=torch.long).view(-1, 2).t()


@st.composite
def weighted(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[float], int]:
    n = draw(st.integers(1, 4))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=10))
    weight = st.sampled_from([-1.0, 0.0, 0.5, 2.0])
    size = len(edges)
    return edges, draw(st.lists(weight, min_size=size, max_size=size)), n


@settings(derandomize=True, max_examples=80, deadline=None)
@given(weighted(), st.sampled_from(REDUCES), st.sampled_from([(), (1,), (2,), (0,)]))
def test_equals_a_dictionary(
    case: tuple[list[tuple[int, int]], list[float], int],
    reduce: str,
    shape: tuple[int, ...],
) -> None:
    edges, weight, n = case
    groups: dict[tuple[int, int], list[float]] = {}
    for edge, value in zip(edges, weight, strict=True):
        groups.setdefault(edge, []).append(value)
    attr = torch.tensor(weight).view(-1, *(1 for _ in shape)).expand(-1, *shape)
    wanted = torch.tensor([SLOW[reduce](groups[e]) for e in sorted(groups)])
    wanted = wanted.view(-1, *(1 for _ in shape)).expand(-1, *shape)
    for name in ("native", "numba"):
        with use_backend(name):
            index, out = coalesce(edge_index(edges), attr, n, reduce)
            bare, none = coalesce(edge_index(edges), None, n, reduce)
        assert [tuple(e) for e in index.t().tolist()] == sorted(groups)
        assert torch.equal(bare, index)
        assert none is None
        assert out is not None
        assert out.shape == (len(groups), *shape)
        torch.testing.assert_close(out, wanted.clone())
    bare, nothing = coalesce(edge_index(edges), num_nodes=n)
    assert bare.equal(index)
    assert nothing is None


def test_equals_pyg() -> None:
    edges, attr = torch.randint(0, 30, (2, 500)), torch.rand(500, 2)
    index, out = coalesce(edges, attr, 30, "mean")
    wanted, attr = pyg_coalesce(edges, attr, num_nodes=30, reduce="mean")
    assert index.equal(wanted)
    torch.testing.assert_close(out, attr)


def test_number_of_nodes_is_found() -> None:
    edges = edge_index([(7, 1), (0, 9), (7, 1)])
    assert coalesce(edges)[0].equal(coalesce(edges, num_nodes=10)[0])
    assert coalesce(edges[:, :0])[0].shape == (2, 0)


@pytest.mark.parametrize("reduce", REDUCES)
def test_gradients(reduce: str) -> None:
    edges = edge_index([(1, 0), (0, 1), (1, 0), (2, 2), (1, 0)])
    weight = torch.randn(5, dtype=torch.double, requires_grad=True)

    def run(weight: Tensor) -> Tensor:
        out = coalesce(edges, weight, 3, reduce)[1]
        assert out is not None
        return out

    assert torch.autograd.gradcheck(run, (weight,))
    assert torch.autograd.gradgradcheck(run, (weight,))


def test_layouts_and_types() -> None:
    edges = torch.tensor([[1, 0], [0, 1], [1, 0]]).t()  # not contiguous
    assert not edges.is_contiguous()
    assert coalesce(EdgeIndex(edges.contiguous()))[0].tolist() == [[0, 1], [1, 0]]
    for dtype in (torch.half, torch.bfloat16, torch.long):
        out = coalesce(edges, torch.tensor([1, 2, 3]).to(dtype), 2)[1]
        assert out is not None
        assert out.dtype == dtype
        assert out.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: coalesce(edge_index([(0, 1)]), reduce="summ"),
            "coalesce got reduce='summ', .* did you mean 'sum'",
        ),
        (lambda: coalesce(edge_index([(0, 3)]), num_nodes=3), "node ids 0 to 3 for 3"),
        (lambda: coalesce(edge_index([(0, -1)])), "node ids -1 to 0"),
        (
            lambda: coalesce(edge_index([(0, 1)]), torch.ones(2)),
            r"edge_attr of shape \[2\] for 1 edges",
        ),
    ],
)
def test_wrong_input_is_explained(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_lists_are_refused() -> None:
    with pytest.raises(TypeError, match="coalesce got edge_index of type list"):
        coalesce([[0], [1]])  # type: ignore[arg-type]


@pytest.mark.parametrize("reduce", REDUCES)
def test_compiled_equals_eager(reduce: str) -> None:
    def run(edges: Tensor, weight: Tensor) -> tuple[Tensor, Tensor | None]:
        return coalesce(edges, weight, 4, reduce)

    fast = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    for size in (7, 12):
        edges, weight = torch.randint(0, 4, (2, size)), torch.rand(size)
        torch.testing.assert_close(fast(edges, weight), run(edges, weight))


@pytest.mark.parametrize("order", ["drawn", "ascending", "both ways"])
@pytest.mark.parametrize("seed", range(5))
def test_contract_equals_relabel_and_coalesce(
    seed: int, order: str, backend: str
) -> None:
    chance = torch.Generator().manual_seed(seed)
    edges = torch.randint(20, (2, 60), generator=chance)
    if order == "both ways":
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    if order != "drawn":
        edges = coalesce(edges, num_nodes=22)[0]
    # Nodes 20 and 21 have no edges, cluster 6 no members.
    cluster = torch.randint(6, (22,), generator=chance)
    found, place = contract(edges, cluster, 7)
    ends = cluster[edges]
    between = ends[0] != ends[1]
    assert torch.equal(found, coalesce(ends[:, between], num_nodes=7)[0])
    assert torch.equal(place < found.size(1), between)
    assert torch.equal(place[~between], torch.full_like(place[~between], found.size(1)))
    assert torch.equal(found[:, place[between]], ends[:, between])
    without, none = contract(edges, cluster, 7, has_place=False)
    assert torch.equal(without, found)
    assert none.shape == (0,)


def test_contract_of_nothing(backend: str) -> None:
    cluster = torch.tensor([0, 1])
    nothing, place = contract(torch.empty(2, 0, dtype=torch.long), cluster, 2)
    assert nothing.shape == (2, 0)
    assert place.shape == (0,)
    loops = torch.tensor([[0, 1], [0, 1]])
    nothing, place = contract(loops, cluster, 2)
    assert nothing.shape == (2, 0)
    assert place.tolist() == [0, 0]
