"""Selections: kinds, views, composition, files."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.nn.pool.connect import FilterEdges
from torch_geometric.nn.pool.select import SelectOutput

from pyg_pool import Selection

few = settings(derandomize=True, max_examples=60, deadline=None)


@st.composite
def selections(draw: st.DrawFn, num_nodes: int | None = None) -> Selection:
    """Selections of every kind, with and without weights, entries in any order."""
    n = draw(st.integers(1, 5)) if num_nodes is None else num_nodes
    k = draw(st.integers(1, 4))
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, k - 1))
    unique = draw(st.sampled_from([lambda p: p[0], lambda p: p]))
    pairs = draw(st.lists(pair, max_size=8, unique_by=unique)) if n else []
    index = torch.tensor(pairs, dtype=torch.long).view(-1, 2)
    weight = torch.rand(len(pairs)).double() if draw(st.booleans()) else None
    return Selection(index[:, 0], n, index[:, 1], k, weight)


@st.composite
def two_levels(draw: st.DrawFn) -> tuple[Selection, Selection]:
    first = draw(selections())
    return first, draw(selections(first.num_clusters))


def soft() -> Selection:
    """Node 1 in two clusters, node 2 in none."""
    index = torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1])
    return Selection(index[0], 3, index[1], 2, torch.tensor([1.0, 0.25, 0.75]))


@few
@given(selections())
def test_dense_and_sparse_views(selection: Selection) -> None:
    for weighted in (False, True):
        wanted = torch.zeros(selection.num_nodes, selection.num_clusters).double()
        for m in range(selection.node_index.numel()):
            plain = not weighted or selection.weight is None
            strength = 1.0 if plain else float(selection.weight[m])
            wanted[selection.node_index[m], selection.cluster_index[m]] += strength
        dense, sparse = selection.to_dense(weighted), selection.to_sparse(weighted)
        torch.testing.assert_close(dense.double(), wanted)
        assert sparse.shape == dense.shape
        torch.testing.assert_close(sparse.to_dense(), dense)


@few
@given(selections())
def test_kind_says_what_the_matrix_shows(selection: Selection) -> None:
    dense = selection.to_dense()
    hard = bool((dense.sum(1) <= 1).all())
    single = hard and bool((dense.sum(0) == 1).all())
    assert selection.is_hard == hard
    assert selection.is_one_to_one == single
    assert selection.kind == ("one_to_one" if single else "hard" if hard else "soft")


@few
@given(two_levels())
def test_composition_is_the_product(levels: tuple[Selection, Selection]) -> None:
    first, second = levels
    both = first.compose(second)
    for weighted in (False, True):
        wanted = first.to_dense(weighted).double() @ second.to_dense(weighted).double()
        torch.testing.assert_close(both.to_dense(weighted).double(), wanted)
    assert (both.weight is None) == (first.weight is None and second.weight is None)


@few
@given(two_levels())
def test_known_kinds_compose(levels: tuple[Selection, Selection]) -> None:
    first, second = levels
    unknown = first.compose(second).kind
    known = first.kind, second.kind
    both = first.compose(second)
    if "soft" in known:
        assert both._kind is None
    else:
        assert both._kind == ("one_to_one" if set(known) == {"one_to_one"} else "hard")
        assert unknown in ("one_to_one", "hard")


def test_kept_nodes_compose_in_cluster_order() -> None:
    first = Selection.from_nodes(torch.tensor([5, 3, 1, 0]), 6)
    second = Selection.from_nodes(torch.tensor([3, 0, 1]), 4)
    both = first.compose(second)
    assert both == Selection.from_nodes(torch.tensor([0, 5, 3]), 6)
    assert both.is_one_to_one


def test_wrong_level_is_explained() -> None:
    with pytest.raises(ValueError, match=r"got a selection of 3 nodes, expected 2 \("):
        soft().compose(soft())


def test_from_nodes() -> None:
    selection = Selection.from_nodes(torch.tensor([2, 0]), 4, torch.tensor([0.5, 0.1]))
    assert selection.is_one_to_one
    assert selection.is_hard
    assert selection.cluster.tolist() == [1, -1, 0, -1]
    assert selection.to_dense(weighted=True)[2].tolist() == [0.5, 0.0]
    none = Selection.from_nodes(torch.empty(0).long(), 3)
    assert none.cluster.tolist() == [-1, -1, -1]
    assert none.to_dense().shape == (3, 0)


def test_from_clusters() -> None:
    cluster = torch.tensor([1, -1, 0, 1])
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0])
    selection = Selection.from_clusters(cluster, weight=weight)
    assert selection.kind == "hard"
    assert selection.num_clusters == 2
    assert selection.cluster.equal(cluster)
    assert selection.weight is not None
    assert selection.weight.tolist() == [1.0, 3.0, 4.0]
    assert Selection.from_clusters(cluster, 5).to_dense().shape == (4, 5)
    dropped = Selection.from_clusters(torch.tensor([-1, -1]))
    assert (dropped.num_clusters, dropped.node_index.numel()) == (0, 0)


def test_fault_p03_clusters_of_two_graphs_are_not_merged() -> None:
    cluster = torch.tensor([0, 0, 1, 0, 1, 1])
    batch = torch.tensor([0, 0, 0, 1, 1, 1])
    with pytest.raises(ValueError, match="cluster 0 with nodes of graphs 0 and 1"):
        Selection.from_clusters(cluster, batch=batch)
    selection = Selection.from_clusters(cluster, batch=batch, per_graph=True)
    assert selection.num_clusters == 4
    assert selection.cluster.tolist() == [0, 0, 1, 2, 3, 3]
    pooled = torch.zeros(4).long()
    pooled[selection.cluster_index] = batch[selection.node_index]
    assert pooled.tolist() == [0, 0, 1, 1]
    apart = torch.tensor([0, 0, 1, 2, 3, 3])
    assert Selection.from_clusters(apart, batch=batch) == selection


ONE = torch.tensor([0, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Selection.from_clusters(ONE.view(2, 1)), r"cluster of shape \[2, 1\]"),
        (lambda: Selection.from_clusters(ONE.float()), "dtype torch.float32"),
        (
            lambda: Selection.from_clusters(ONE, 1),
            "cluster id 1, expected ids below num_clusters=1",
        ),
        (
            lambda: Selection.from_clusters(ONE, batch=torch.zeros(3).long()),
            r"from_clusters got batch of shape \[3\]",
        ),
        (
            lambda: Selection.from_clusters(ONE, weight=torch.ones(1)),
            r"weight of shape \[1\], expected \[2\]",
        ),
        (
            lambda: Selection.from_clusters(ONE, per_graph=True),
            "per_graph=True with num_clusters=None and batch=None",
        ),
        (
            lambda: Selection.from_clusters(ONE, 2, batch=ONE, per_graph=True),
            "per_graph=True with num_clusters=2 and batch=a tensor",
        ),
        (lambda: soft().cluster, "got a soft selection with 3 entries for 3 nodes"),
        (lambda: Selection(ONE, 2, ONE[:1], 1), "same number of values"),
        (lambda: Selection(ONE.view(2, 1), 2, ONE, 1), "one-dimensional"),
        (lambda: Selection(ONE, 2, ONE, 2, torch.ones(3)), "to hold 2 values"),
    ],
)
def test_wrong_input_is_explained(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_equality() -> None:
    one = Selection.from_clusters(torch.tensor([0, 0, 1]))
    assert one == Selection.from_clusters(torch.tensor([0, 0, 1]))
    assert one == SelectOutput(one.node_index, 3, one.cluster_index, 2)
    assert one != Selection.from_clusters(torch.tensor([0, 1, 1]))
    assert one != Selection.from_clusters(torch.tensor([0, 0, 1]), 3)
    assert one != Selection(one.node_index, 4, one.cluster_index, 2)
    weighted = Selection.from_clusters(torch.tensor([0, 0, 1]), weight=torch.ones(3))
    assert one != weighted
    assert weighted != one
    assert weighted == weighted.detach()
    assert one != "Selection"
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_pyg_takes_it_for_its_own() -> None:
    selection = Selection.from_nodes(torch.tensor([2, 0]), 3)
    assert isinstance(selection, SelectOutput)
    edges = torch.tensor([[0, 1, 2], [2, 2, 0]])
    out = FilterEdges()(selection, edges, batch=torch.zeros(3).long())
    assert out.edge_index.tolist() == [[1, 0], [0, 1]]


@few
@given(selections())
def test_files_and_copies(selection: Selection) -> None:
    for again in (
        pickle.loads(pickle.dumps(selection)),
        copy.deepcopy(selection),
        copy.copy(selection),
        selection.to("cpu"),
        selection.detach(),
    ):
        assert type(again) is Selection
        assert again == selection
        assert again.kind == selection.kind


@pytest.mark.parametrize("dtype", [torch.float, torch.double, torch.bfloat16])
def test_save_and_load(dtype: torch.dtype, tmp_path: Path) -> None:
    for kind, selection in {
        "soft": soft(),
        "hard": Selection.from_clusters(torch.tensor([0, -1, 0])),
        "one_to_one": Selection.from_nodes(torch.tensor([1]), 2, torch.ones(1)),
    }.items():
        if selection.weight is not None:
            selection.weight = selection.weight.to(dtype)
        selection.save(tmp_path / "s.npz")
        again = Selection.load(tmp_path / "s.npz")
        assert again == selection
        assert again._kind == selection._kind
        assert again.kind == kind


def test_damaged_and_foreign_files_are_explained(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="expected a Selection written by its save"):
        Selection.load(tmp_path / "a.npz")


def test_kind_is_found_once_and_kept() -> None:
    selection = soft()
    assert selection._kind is None
    assert "soft" not in repr(selection)
    assert selection.kind == "soft"
    assert repr(selection) == (
        "Selection(num_nodes=3, num_clusters=2, soft, entries=3, weighted)"
    )


def test_gradients_reach_the_weight() -> None:
    selection = soft()
    assert selection.weight is not None
    weight = selection.weight.requires_grad_()
    selection.to_dense(weighted=True).sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [1.0, 1.0, 1.0]
    assert not selection.to_dense().requires_grad
    assert not selection.detach().weight.requires_grad  # type: ignore[union-attr]


def test_devices() -> None:
    there = soft().to("meta")
    assert {t.device.type for t in (there.node_index, there.cluster_index)} == {"meta"}
    assert there.weight is not None
    assert there.weight.device.type == "meta"
    assert "meta" not in str(soft().node_index.device)


@pytest.mark.gpu
def test_pinned_memory() -> None:
    pinned = soft().pin_memory()
    assert pinned.node_index.is_pinned()
    assert pinned == soft()


def test_views_keep_the_type_of_the_weight() -> None:
    weight = torch.tensor([1.0, 2.0], dtype=torch.half)
    selection = Selection.from_nodes(torch.tensor([1, 0]), 2, weight)
    assert selection.to_dense().dtype == torch.half
    assert selection.to_sparse(weighted=True).dtype == torch.half
    assert Selection.from_nodes(torch.tensor([1]), 2).to_dense().dtype == torch.float


def test_compiled_equals_eager() -> None:
    def run(x: Tensor, nodes: Tensor) -> tuple[Selection, Tensor]:
        selection = Selection.from_nodes(nodes, x.size(0), x[nodes])
        return selection, selection.to_dense(weighted=True)

    fast = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (4, 7):
        x, nodes = torch.randn(n), torch.randperm(n)[:2]
        got, dense = fast(x, nodes)
        wanted, right = run(x, nodes)
        assert isinstance(got, Selection)
        assert got == wanted
        assert got.is_one_to_one
        assert dense.equal(right)


def test_constructor_is_that_of_pyg() -> None:
    names = list(inspect.signature(Selection).parameters)
    assert names == [
        "node_index",
        "num_nodes",
        "cluster_index",
        "num_clusters",
        "weight",
        "kind",
    ]
