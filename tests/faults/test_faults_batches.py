"""Faults P01 to P08: batches and sizes."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch, Data

from pyg_pool import GPool, Selection
from pyg_pool.core import connect
from pyg_pool.kernels import segment_reduce
from pyg_pool.testing import PoolingSpec, ReadoutSpec, pooling, readout
from tests.faults.inputs import (
    build_model,
    every_model,
    every_pooling,
    every_readout,
    no_edges,
    path,
    undirected,
)

EMPTY_GRAPHS = [([0, 0], 3, [1, 2]), ([1, 1], 2, [0]), ([0, 2], 4, [1, 3])]


@pytest.mark.parametrize(("batch", "size", "empty"), EMPTY_GRAPHS)
@every_readout
def test_fault_p01_empty_graph_keeps_its_row(
    spec: ReadoutSpec, batch: list[int], size: int, empty: list[int]
) -> None:
    x = torch.tensor([[1.0], [2.0]], dtype=torch.float64).repeat(1, 4).requires_grad_()
    index = torch.tensor(batch)
    out = spec.build()(x, index, dim_size=size)
    assert out.size(0) == size
    assert torch.equal(out[empty], torch.full_like(out[empty], spec.neutral))
    (grad,) = torch.autograd.grad(out[empty].sum(), x, retain_graph=True)
    assert torch.equal(grad, torch.zeros_like(x))
    out.sum().backward()
    assert x.grad.isfinite().all()
    assert spec.build()(x, index).size(0) == max(batch) + 1


@pytest.mark.parametrize(("batch", "size", "empty"), EMPTY_GRAPHS)
@every_model
def test_fault_p01_empty_graph_keeps_its_logits(
    model_name: str, batch: list[int], size: int, empty: list[int]
) -> None:
    x = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    index = torch.tensor(batch)
    out = build_model(model_name)(x, no_edges(), batch=index, batch_size=size)
    assert out.shape == (size, 3)
    assert out.isfinite().all()
    (grad,) = torch.autograd.grad(out[empty].sum(), x)
    assert torch.equal(grad, torch.zeros_like(x))


@pytest.mark.parametrize(("batch", "size", "empty"), EMPTY_GRAPHS)
@every_pooling
def test_fault_p01_pooling_remembers_empty_graphs(
    spec: PoolingSpec, batch: list[int], size: int, empty: list[int]
) -> None:
    x = torch.randn(2, 4, dtype=torch.float64)
    index = torch.tensor(batch)
    out = spec.build()(x, no_edges(), batch=index, batch_size=size)
    assert out.batch_size == size
    assert set(out.batch.tolist()) == set(batch)
    assert spec.build()(x, no_edges(), batch=index).batch_size == max(batch) + 1


def test_fault_p01_ptr_of_a_pyg_batch_sets_the_size() -> None:
    graphs = [Data(x=torch.ones(n, 1), edge_index=no_edges()) for n in (2, 0, 1, 0)]
    batch = Batch.from_data_list(graphs)
    out = segment_reduce(batch.x, ptr=batch.ptr)
    assert out.view(-1).tolist() == [2.0, 0.0, 1.0, 0.0]


INTERLEAVED = torch.tensor([1, 0, 1, 0, 0])
# path(3) on the nodes 1, 3, 4 and path(2) on 0, 2
EDGES = undirected((1, 3), (3, 4), (0, 2))


@every_pooling
def test_fault_p02_unsorted_batch_gives_the_sorted_result(spec: PoolingSpec) -> None:
    x = torch.randn(5, 4, dtype=torch.float64)
    order = torch.tensor([1, 3, 4, 0, 2])
    operator = spec.build()
    mixed = operator(x, EDGES, batch=INTERLEAVED, batch_size=2)
    ascending = operator(
        x[order],
        undirected((0, 1), (1, 2), (3, 4)),
        batch=torch.tensor([0, 0, 0, 1, 1]),
        batch_size=2,
    )
    row, col = mixed.edge_index
    assert torch.equal(mixed.batch[row], mixed.batch[col])
    torch.testing.assert_close(
        mixed.lift(mixed.x, "mean")[order], ascending.lift(ascending.x, "mean")
    )
    pooling.check_groups(spec)


@every_readout
def test_fault_p02_unsorted_groups_give_the_sorted_rows(spec: ReadoutSpec) -> None:
    x = torch.randn(5, 4, dtype=torch.float64)
    index, order = torch.sort(INTERLEAVED, stable=True)
    operator = spec.build()
    torch.testing.assert_close(
        operator(x, INTERLEAVED, dim_size=2), operator(x[order], index, dim_size=2)
    )


@every_model
def test_fault_p02_unsorted_batch_gives_the_sorted_logits(model_name: str) -> None:
    x = torch.randn(5, 4, dtype=torch.float64)
    order = torch.tensor([1, 3, 4, 0, 2])
    model = build_model(model_name)
    found = model(x, EDGES, batch=INTERLEAVED, batch_size=2)
    edges = undirected((0, 1), (1, 2), (3, 4))
    batch = torch.tensor([0, 0, 0, 1, 1])
    wanted = model(x[order], edges, batch=batch, batch_size=2)
    torch.testing.assert_close(found, wanted)


def test_fault_p03_cluster_ids_of_two_graphs_stay_apart() -> None:
    cluster = torch.tensor([0, 0, 1, 0, 1, 1])
    batch = torch.tensor([0, 0, 0, 1, 1, 1])
    found = Selection.from_clusters(cluster, batch=batch, per_graph=True)
    assert found.num_clusters == 4
    edges = undirected((0, 2), (3, 4))
    out = connect(found, edges, batch=batch)
    assert out.batch.tolist() == [0, 0, 1, 1]
    assert out.edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]
    with pytest.raises(ValueError, match="per_graph=True"):
        Selection.from_clusters(cluster, batch=batch)


@pytest.mark.parametrize("training", [False, True])
@every_pooling
def test_fault_p04_single_node_survives_three_levels(
    spec: PoolingSpec, training: bool
) -> None:
    operator = spec.build(torch.float32).train(training)
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0]], requires_grad=True)
    rows, edges, attr = x, no_edges(), None
    for _ in range(3):
        out = operator(rows, edges, attr)
        assert out.x.shape == (1, 4)
        assert out.score is None or out.score.shape == (1,)
        assert out.edge_index.shape == (2, 0)
        rows, edges, attr = out.x, out.edge_index, out.edge_attr
    rows.sum().backward()
    assert x.grad.isfinite().all()


@every_model
def test_fault_p04_model_takes_a_single_node(model_name: str) -> None:
    for training in (False, True):
        model = build_model(model_name, dtype=torch.float32).train(training)
        out = model(torch.randn(1, 4), no_edges())
        assert out.shape == (1, 3)
        out.sum().backward()


@pytest.mark.parametrize("shape", [None, [], [1], [3]])
def test_fault_p05_contraction_to_one_cluster_leaves_no_edges(shape) -> None:
    triangle = undirected((0, 1), (1, 2), (0, 2))
    attr = None if shape is None else torch.rand([6, *shape])
    merged = Selection.from_clusters(torch.zeros(3, dtype=torch.long))
    out = connect(merged, triangle, attr)
    assert out.edge_index.shape == (2, 0)
    assert out.edge_index.dtype == torch.long
    assert attr is None or out.edge_attr.shape == (0, *shape)


@pytest.mark.parametrize("shape", [None, [], [1], [3]])
@every_pooling
def test_fault_p05_graphs_without_edges(spec: PoolingSpec, shape) -> None:
    if shape == [3] and not spec.takes_attributes:
        shape = [1]
    cases = [(path(3), [0, 0, 0, 1, 1, 1]), (no_edges(), [0, 0, 0, 1, 1, 1])]
    for edges, batch in cases:
        attr = None if shape is None else torch.rand([edges.size(1), *shape])
        operator = spec.build(torch.float32)
        ids = torch.tensor(batch)
        out = operator(torch.randn(6, 4), edges, attr, batch=ids, batch_size=2)
        assert set(out.batch.tolist()) == {0, 1}
        assert out.edge_index.dtype == torch.long
        if attr is not None:
            assert out.edge_attr.shape == (out.edge_index.size(1), *shape)
    assert out.edge_index.shape == (2, 0)


@every_pooling
def test_fault_p06_isolated_last_node_counts(spec: PoolingSpec) -> None:
    x = torch.randn(4, 4, dtype=torch.float64)
    operator = spec.build()
    first = operator(x, path(3))
    assert first.selection.num_nodes == 4
    assert first.lift(first.x).size(0) == 4
    second = operator(first.x, first.edge_index, first.edge_attr)
    assert second.selection.num_nodes == first.x.size(0)
    pooling.check_levels(spec)


def test_fault_p06_squaring_keeps_the_isolated_node() -> None:
    operator = GPool(1, ratio=1.0, augment="weighted")
    x = torch.randn(4, 1)
    for _ in range(2):
        out = operator(x, path(3))
        assert out.x.size(0) == 4
        x = out.x


@every_pooling
def test_fault_p07_no_batch_means_one_graph(spec: PoolingSpec) -> None:
    pooling.check_single_graph(spec)


@every_readout
def test_fault_p07_readout_without_batch(spec: ReadoutSpec) -> None:
    x = torch.randn(5, 4, dtype=torch.float64)
    zeros = spec.build()(x, torch.zeros(5, dtype=torch.long), dim_size=1)
    torch.testing.assert_close(spec.build()(x), zeros)


@every_model
def test_fault_p07_model_without_batch(model_name: str) -> None:
    x = torch.randn(6, 4, dtype=torch.float64)
    model, zeros = build_model(model_name), torch.zeros(6, dtype=torch.long)
    wanted = model(x, path(6), batch=zeros, batch_size=1)
    torch.testing.assert_close(model(x, path(6)), wanted)


@every_pooling
def test_fault_p08_pooling_ignores_other_graphs(spec: PoolingSpec) -> None:
    pooling.check_batch_independence(spec)


@every_readout
def test_fault_p08_readout_ignores_other_groups(spec: ReadoutSpec) -> None:
    x = torch.randn(5, 4, dtype=torch.float64)
    batch = torch.tensor([0, 0, 1, 1, 1])
    both = spec.build()(x, batch, dim_size=2)
    torch.testing.assert_close(spec.build()(x[:2], batch[:2], dim_size=1), both[:1])
    readout.check_batch_independence(spec)


@every_model
def test_fault_p08_model_ignores_other_graphs(model_name: str) -> None:
    x = torch.randn(5, 4, dtype=torch.float64)
    edges, batch = undirected((0, 1), (2, 3), (3, 4)), torch.tensor([0, 0, 1, 1, 1])
    model = build_model(model_name)
    both = model(x, edges, batch=batch, batch_size=2)
    torch.testing.assert_close(model(x[:2], undirected((0, 1))), both[:1])
