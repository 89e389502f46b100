"""Coarse edges against the dense S'AS, for every kind of selection."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric import EdgeIndex

from pyg_pool import Selection
from pyg_pool.core import connect
from pyg_pool.typing import EdgeReduce

few = settings(derandomize=True, max_examples=80, deadline=None)
Edges = list[tuple[int, int]]
SLOW: dict[str, Callable[[list[float]], float]] = {
    "sum": sum,
    "mean": lambda v: sum(v) / len(v),
    "max": max,
    "min": min,
    "mul": math.prod,
}


def edge_index(edges: Edges) -> Tensor:
    return torch.tensor(edges, dtype=torch.long).view(-1, 2).t()


@st.composite
def cases(draw: st.DrawFn) -> tuple[Selection, Edges, list[float]]:
    """Selections of every kind over graphs with loops and parallel edges."""
    n, k = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    form = draw(st.sampled_from(["kept", "hard", "soft"]))
    if form == "kept":
        order = draw(st.permutations(range(n)))
        nodes = torch.tensor(order[: draw(st.integers(0, n))]).long()
        clusters = torch.randperm(nodes.numel())
        k = nodes.numel()
    else:
        pair = st.tuples(st.integers(0, n - 1), st.integers(0, k - 1))
        unique = (lambda p: p[0]) if form == "hard" else (lambda p: p)
        pairs = draw(st.lists(pair, max_size=8, unique_by=unique))
        nodes, clusters = torch.tensor(pairs).long().view(-1, 2).unbind(1)
    weight = torch.rand(nodes.numel()).double() if draw(st.booleans()) else None
    selection = Selection(nodes, n, clusters, k, weight)
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=9))
    value = st.sampled_from([-1.0, 0.5, 2.0])
    return (
        selection,
        edges,
        draw(st.lists(value, min_size=len(edges), max_size=len(edges))),
    )


def slow(
    selection: Selection, edges: Edges, weight: list[float], weighted: bool, loops: bool
) -> dict[tuple[int, int], list[float]]:
    """The contributions to each coarse edge."""
    entries = list(
        zip(
            selection.node_index.tolist(),
            selection.cluster_index.tolist(),
            [1.0] * selection.node_index.numel()
            if selection.weight is None or not weighted
            else selection.weight.tolist(),
            strict=True,
        )
    )
    out: dict[tuple[int, int], list[float]] = {}
    for (a, b), value in zip(edges, weight, strict=True):
        for node, c, left in entries:
            for other, d, right in entries:
                if (node, other) == (a, b) and (loops or c != d):
                    out.setdefault((c, d), []).append(value * left * right)
    return out


def attributes(weight: list[float], shape: tuple[int, ...]) -> Tensor:
    out = torch.tensor(weight, dtype=torch.double).view(-1, *[1] * len(shape))
    return out.expand(-1, *shape).clone()


@few
@given(
    cases(),
    st.sampled_from(list(SLOW)),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(), (1,), (3,)]),
)
def test_equals_loops(
    case: tuple[Selection, Edges, list[float]],
    reduce: str,
    weighted: bool,
    loops: bool,
    shape: tuple[int, ...],
) -> None:
    selection, edges, weight = case
    wanted = slow(selection, edges, weight, weighted, loops)
    out = connect(
        selection,
        edge_index(edges),
        attributes(weight, shape),
        reduce=reduce,  # type: ignore[arg-type]
        keep_loops=loops,
        weighted=weighted,
    )
    got = [tuple(e) for e in out.edge_index.t().tolist()]
    assert out.edge_attr.shape == (len(got), *shape)
    if selection.is_one_to_one:  # filtered: parallel edges stay apart
        values = [v for group in wanted.values() for v in group]
        assert sorted(got) == sorted(e for e, g in wanted.items() for _ in g)
        column = out.edge_attr.reshape(len(got), -1)[:, 0] if got else torch.ones(0)
        assert sorted(column.tolist()) == pytest.approx(sorted(values))
        return
    assert got == sorted(wanted), "merged edges come sorted"
    right = [SLOW[reduce](wanted[e]) for e in sorted(wanted)]
    torch.testing.assert_close(out.edge_attr, attributes(right, shape))


@few
@given(cases(), st.booleans())
def test_sum_is_the_dense_product(
    case: tuple[Selection, Edges, list[float]], weighted: bool
) -> None:
    """S'AS with 0/1 S as given, its diagonal kept or dropped (fault P09)."""
    selection, edges, weight = case
    dense = torch.zeros(selection.num_nodes, selection.num_nodes).double()
    for (a, b), value in zip(edges, weight, strict=True):
        dense[a, b] += value
    s = selection.to_dense(weighted).double()
    product = s.t() @ dense @ s
    for loops in (True, False):
        out = connect(
            selection,
            edge_index(edges),
            attributes(weight, ()),
            keep_loops=loops,
            weighted=weighted,
        )
        size = (selection.num_clusters,) * 2
        got = torch.zeros(size).double()
        got.index_put_(tuple(out.edge_index), out.edge_attr, accumulate=True)
        wanted = product if loops else product - torch.diag(product.diag())
        torch.testing.assert_close(got, wanted)


@few
@given(cases())
def test_without_attributes_the_pattern_is_the_same(
    case: tuple[Selection, Edges, list[float]],
) -> None:
    selection, edges, weight = case
    bare = connect(selection, edge_index(edges))
    full = connect(selection, edge_index(edges), attributes(weight, ()))
    assert bare.edge_attr is None
    assert bare.edge_index.equal(full.edge_index)
    apart = connect(selection, edge_index(edges), attributes(weight, ()), reduce="none")
    contributions = slow(selection, edges, weight, False, False)
    assert apart.edge_index.size(1) == sum(len(g) for g in contributions.values())
    assert apart.edge_attr.sum().item() == pytest.approx(
        sum(sum(g) for g in contributions.values())
    )


def test_fault_p09_rows_and_edges_use_one_order() -> None:
    path = edge_index([(0, 1), (1, 0), (1, 2), (2, 1)])
    by_score = Selection.from_nodes(torch.tensor([1, 3, 2]), 4)
    by_node = Selection.from_nodes(torch.tensor([1, 2, 3]), 4)
    assert connect(by_score, path).edge_index.tolist() == [[0, 2], [2, 0]]
    assert connect(by_node, path).edge_index.tolist() == [[0, 1], [1, 0]]
    turned = Selection(by_node.node_index, 4, torch.tensor([0, 2, 1]), 3)
    assert connect(turned, path).edge_index.tolist() == [[0, 2], [2, 0]]


def test_weights_of_a_hard_selection_do_not_act_by_themselves() -> None:
    pairs = Selection.from_clusters(
        torch.tensor([0, 0, 1]), weight=torch.tensor([0.5, 0.5, 0.1])
    )
    edges, weight = edge_index([(0, 2), (1, 2)]), torch.tensor([2.0, 4.0])
    assert connect(pairs, edges, weight).edge_attr.tolist() == [6.0]
    scaled = connect(pairs, edges, weight, weighted=True)
    torch.testing.assert_close(scaled.edge_attr, torch.tensor([0.3]))
    bare = connect(pairs, edges, weighted=True)
    torch.testing.assert_close(bare.edge_attr, torch.tensor([0.1]))


def test_batch_of_the_clusters() -> None:
    cluster, batch = torch.tensor([2, 0, 0, -1]), torch.tensor([1, 0, 0, 1])
    edges = edge_index([(1, 2)])
    out = connect(Selection.from_clusters(cluster, 3), edges, batch=batch)
    assert out.batch.tolist() == [0, 0, 1]
    kept = Selection(torch.tensor([3, 1]), 4, torch.tensor([1, 0]), 2)
    assert connect(kept, edges, batch=batch).batch.tolist() == [0, 1]
    assert connect(kept, edges).batch is None


@pytest.mark.parametrize("reduce", get_args(EdgeReduce))
@pytest.mark.parametrize("kind", ["one_to_one", "hard", "soft"])
def test_gradients(reduce: str, kind: str) -> None:
    nodes, clusters = {
        "one_to_one": ([2, 0, 3], [1, 0, 2]),
        "hard": ([2, 0, 1, 3], [1, 1, 0, 2]),
        "soft": ([2, 0, 2, 1], [1, 1, 0, 2]),
    }[kind]
    edges = edge_index([(0, 1), (1, 2), (2, 3), (0, 2), (1, 2), (3, 0), (0, 1)])
    attr = torch.randn(7, 2, dtype=torch.double)
    weight = torch.rand(len(nodes), dtype=torch.double) + 0.5

    def run(attr: Tensor, weight: Tensor) -> Tensor:
        selection = Selection(torch.tensor(nodes), 4, torch.tensor(clusters), 3, weight)
        return connect(
            selection,
            edges,
            attr,
            reduce=reduce,  # type: ignore[arg-type]
            weighted=True,
        ).edge_attr

    inputs = attr.requires_grad_(), weight.requires_grad_()
    assert torch.autograd.gradcheck(run, inputs)
    assert torch.autograd.gradgradcheck(run, inputs)
    plain = connect(
        Selection(torch.tensor(nodes), 4, torch.tensor(clusters), 3, weight),
        edges,
        attr,
    )
    assert torch.autograd.grad(plain.edge_attr.sum(), weight, allow_unused=True) == (
        None,
    ), "plain membership lets no gradient through to the gate"


@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16])
def test_half_types_are_kept(dtype: torch.dtype) -> None:
    edges = edge_index([(0, 1)] * 600)
    pairs = Selection.from_clusters(torch.tensor([0, 1]), weight=torch.ones(2))
    for weighted in (False, True):
        out = connect(pairs, edges, torch.ones(600, dtype=dtype), weighted=weighted)
        assert out.edge_attr.dtype == dtype
        assert out.edge_attr.tolist() == [600.0]


def test_nan_stays_on_its_edge() -> None:
    pairs = Selection.from_clusters(torch.tensor([0, 1, 2]))
    edges = edge_index([(0, 1), (1, 2)])
    out = connect(pairs, edges, torch.tensor([torch.nan, 1.0]))
    assert out.edge_attr.isnan().tolist() == [True, False]


def test_nothing_left() -> None:
    nobody = Selection.from_nodes(torch.empty(0).long(), 3)
    edges = edge_index([(0, 1), (1, 2)])
    for selection in (nobody, Selection.from_clusters(torch.full((3,), -1))):
        out = connect(selection, edges, torch.ones(2, 4), batch=torch.zeros(3).long())
        assert out.edge_index.shape == (2, 0)
        assert out.edge_attr.shape == (0, 4)
        assert out.batch.shape == (0,)
    one = Selection.from_clusters(torch.zeros(3).long())
    assert connect(one, edges).edge_index.shape == (2, 0)
    assert connect(one, edges, keep_loops=True).edge_index.tolist() == [[0], [0]]


def test_edge_index_of_pyg() -> None:
    pairs = Selection.from_clusters(torch.tensor([0, 0, 1]))
    out = connect(pairs, EdgeIndex([[0, 1], [2, 2]], sparse_size=(3, 3)))
    assert type(out.edge_index) is Tensor
    assert out.edge_index.tolist() == [[0], [1]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda s, e: connect(s, e, reduce="summ"),
            "connect got reduce='summ', .* did you mean 'sum'",
        ),
        (lambda s, e: connect(s, e + 2), "node ids 2 to 4 for 3 nodes"),
        (lambda s, e: connect(s, e, torch.ones(3)), r"edge_attr of shape \[3\] for 2"),
        (lambda s, e: connect(s, e[:1]), r"edge_index of shape \[1, 2\]"),
        (lambda s, e: connect(s, e.int()), r"dtype torch\.int32"),
    ],
)
def test_wrong_input_is_explained(
    call: Callable[[Selection, Tensor], object], message: str
) -> None:
    selection = Selection.from_clusters(torch.tensor([0, 0, 1]))
    with pytest.raises(ValueError, match=message):
        call(selection, edge_index([(0, 1), (1, 2)]))


def test_sparse_adjacency_is_refused_with_a_way_out() -> None:
    selection = Selection.from_clusters(torch.tensor([0, 0, 1]))
    adjacency = torch.sparse_coo_tensor(
        edge_index([(0, 1)]), torch.ones(1), (3, 3), check_invariants=True
    )
    with pytest.raises(TypeError, match="to_edge_index"):
        connect(selection, adjacency)


@pytest.mark.parametrize("kind", ["one_to_one", "hard"])
@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_equals_eager(kind: str, weighted: bool) -> None:
    def run(
        edges: Tensor, attr: Tensor, cluster: Tensor, weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        nodes = torch.arange(cluster.size(0))
        size = cluster.size(0) if kind == "one_to_one" else 4
        selection = Selection(nodes, cluster.size(0), cluster, size, weight, kind=kind)
        out = connect(selection, edges, attr, weighted=weighted)
        return out.edge_index, out.edge_attr

    fast = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (5, 8):
        one = torch.randperm(n) if kind == "one_to_one" else torch.randint(0, 4, (n,))
        edges = torch.randint(0, n, (2, 3 * n))
        case = edges, torch.rand(3 * n), one, torch.rand(n)
        torch.testing.assert_close(fast(*case), run(*case))
