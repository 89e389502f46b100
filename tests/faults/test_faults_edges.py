"""Faults P20 to P26: weights, attributes, loops, duplicates, two hops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from pyg_pool import GPool, Selection
from pyg_pool.core import connect
from pyg_pool.kernels import coalesce, use_backend
from pyg_pool.testing import PoolingSpec, Watch, numbers, random_batch
from tests.faults.inputs import (
    POOLINGS,
    build_model,
    every_model,
    every_pooling,
    path,
    pools_pattern_only,
    undirected,
)

TRIANGLE = undirected((0, 1), (1, 2), (0, 2))
WEIGHTS = torch.tensor([1.0, 2.0, 4.0, 1.0, 2.0, 4.0], dtype=torch.float64)


@every_pooling
def test_fault_p20_weights_are_used_and_returned(spec: PoolingSpec) -> None:
    x = torch.randn(3, 4, dtype=torch.float64)
    operator = spec.build()
    flat = operator(x, TRIANGLE, WEIGHTS)
    column = operator(x, TRIANGLE, WEIGHTS.view(-1, 1))
    assert flat.edge_attr.shape == (flat.edge_index.size(1),)
    assert torch.equal(column.edge_attr, flat.edge_attr.view(-1, 1))
    assert torch.equal(column.edge_index, flat.edge_index)
    binary = pools_pattern_only(operator)
    other = operator(x, TRIANGLE, 3 * WEIGHTS)
    if flat.edge_attr.numel() > 0:
        assert torch.equal(other.edge_attr, flat.edge_attr) == binary
        assert other.edge_attr.dtype == WEIGHTS.dtype


@pytest.mark.parametrize("shape", [[6], [6, 1]])
@every_model
def test_fault_p20_models_use_weights(model_name: str, shape: list[int]) -> None:
    x = torch.randn(3, 4, dtype=torch.float64)
    model = build_model(model_name)
    if model_name == "hierarchical":  # its own convolution is a plain mean
        from pyg_pool.models import HierarchicalClassifier

        model = HierarchicalClassifier(4, 8, 3, preset=None).double().eval()
    out = model(x, TRIANGLE, WEIGHTS.view(shape))
    other = model(x, TRIANGLE, WEIGHTS.flip(0).view(shape) + 1)
    assert out.isfinite().all()
    if model_name != "unet-authors":  # the authors' two hops are a pattern
        assert not torch.allclose(out, other)


@every_pooling
def test_fault_p21_pooled_weights_have_gradients(spec: PoolingSpec) -> None:
    cycle = undirected((0, 1), (1, 2), (2, 3), (0, 3))
    if pools_pattern_only(spec.build()):
        pytest.skip("pools the pattern only")
    weight = torch.rand(8, dtype=torch.float64, requires_grad=True)
    x = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    out = spec.build()(x, cycle, weight)
    out.edge_attr.sum().backward()
    assert weight.grad.isfinite().all()
    assert (weight.grad != 0).any() == (out.edge_index.numel() > 0)
    numbers.check_gradcheck(spec)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "mul", "none"])
def test_fault_p21_gradcheck_of_connect(reduce: str) -> None:
    pairs = Selection.from_clusters(torch.tensor([0, 0, 1, 1]))
    cycle = undirected((0, 1), (1, 2), (2, 3), (0, 3))
    attr = torch.rand(8, 2, dtype=torch.float64, requires_grad=True)

    def pooled(attr):
        return connect(pairs, cycle, attr, reduce=reduce, keep_loops=True).edge_attr

    assert torch.autograd.gradcheck(pooled, (attr,))


def test_fault_p21_gradcheck_of_soft_weights() -> None:
    weight = torch.rand(5, dtype=torch.float64, requires_grad=True)
    attr = torch.rand(8, dtype=torch.float64, requires_grad=True)
    cycle = undirected((0, 1), (1, 2), (2, 3), (0, 3))

    def pooled(weight, attr):
        soft = Selection(
            torch.tensor([0, 1, 1, 2, 3]), 4, torch.tensor([0, 0, 1, 1, 1]), 2, weight
        )
        return connect(soft, cycle, attr, weighted=True).edge_attr

    assert torch.autograd.gradcheck(pooled, (weight, attr))


@every_pooling
def test_fault_p22_attributes_are_pooled_or_refused(spec: PoolingSpec) -> None:
    x = torch.randn(3, 4, dtype=torch.float64)
    attr = torch.randn(4, 3, dtype=torch.float64)
    operator = spec.build()
    if not spec.takes_attributes:
        with pytest.raises(ValueError, match=r"\[E\] or \[E, 1\]"):
            operator(x, path(3), attr)
        return
    out = operator(x, path(3), attr)
    assert out.edge_attr.shape == (out.edge_index.size(1), 3)
    if out.selection.is_one_to_one:
        known = {tuple(row) for row in attr.tolist()}
        assert {tuple(row) for row in out.edge_attr.tolist()} <= known


@pytest.mark.parametrize(
    ("reduce", "wanted"),
    [
        ("sum", [6.0]),
        ("mean", [3.0]),
        ("max", [5.0]),
        ("min", [1.0]),
        ("mul", [5.0]),
        ("none", [1.0, 5.0]),
    ],
)
def test_fault_p23_parallel_edges(reduce: str, wanted: list[float]) -> None:
    edges = torch.tensor([[0, 1, 2, 0], [1, 2, 3, 3]])
    pairs = Selection.from_clusters(torch.tensor([0, 0, 1, 1]))
    weight = torch.tensor([9.0, 1.0, 9.0, 5.0])
    out = connect(pairs, edges, weight, reduce=reduce)
    assert out.edge_attr.tolist() == wanted
    assert out.edge_index.tolist() == [[0] * len(wanted), [1] * len(wanted)]
    two = connect(pairs, edges, torch.stack([weight, -weight], 1), reduce="sum")
    assert two.edge_attr.tolist() == [[6.0, -6.0]]


@pytest.mark.parametrize("shape", [None, [], [2]])
@pytest.mark.parametrize("kind", ["one_to_one", "clusters"])
def test_fault_p24_loops_with_and_without_attributes(kind: str, shape) -> None:
    edges = torch.cat([path(3), torch.tensor([[1], [1]])], dim=1)
    attr = None if shape is None else torch.rand([5, *shape])
    chosen = {
        "one_to_one": Selection.from_nodes(torch.tensor([2, 1]), 3),
        "clusters": Selection.from_clusters(torch.tensor([0, 1, 1])),
    }[kind]
    for keep in (False, True):
        out = connect(chosen, edges, attr, keep_loops=keep)
        row, col = out.edge_index
        assert bool((row == col).any()) == keep
        assert attr is None or out.edge_attr.shape == (row.numel(), *shape)


@pytest.mark.parametrize("fill", [1, 0.5, torch.tensor(2.0)])
@pytest.mark.parametrize("shape", [None, [], [2]])
def test_fault_p24_graphs_with_added_loops(fill, shape) -> None:
    from torch_geometric.utils import add_self_loops

    attr = None if shape is None else torch.rand([4, *shape])
    edges, attr = add_self_loops(path(3), attr, fill_value=fill, num_nodes=3)
    for spec in POOLINGS:
        if shape == [2] and not spec.takes_attributes:
            continue
        operator = spec.build(torch.float32)
        out = operator(torch.randn(3, 4), edges, attr)
        assert attr is None or len(out.edge_attr) == out.edge_index.size(1)


@every_model
def test_fault_p24_models_take_loops(model_name: str) -> None:
    edges = torch.cat([path(3), torch.arange(3).expand(2, 3)], dim=1)
    x = torch.randn(3, 4, dtype=torch.float64)
    weight = torch.rand(7, dtype=torch.float64)
    for attr in (None, weight, weight.view(-1, 1)):
        assert build_model(model_name)(x, edges, attr).isfinite().all()


MESSY = torch.tensor([[0, 0, 0, 1, 1, 0, 1, 2], [1, 1, 1, 0, 0, 0, 2, 1]])


@every_pooling
def test_fault_p25_duplicates_change_no_choice(spec: PoolingSpec) -> None:
    x = torch.randn(3, 4, dtype=torch.float64)
    operator = spec.build()
    messy = operator(x, MESSY)
    clean = operator(x, coalesce(MESSY, num_nodes=3)[0])
    assert torch.equal(messy.selection.node_index, clean.selection.node_index)
    assert torch.equal(messy.selection.cluster_index, clean.selection.cluster_index)
    assert torch.equal(messy.x, clean.x)
    size = messy.x.size(0)
    keys = [o.edge_index[0] * size + o.edge_index[1] for o in (messy, clean)]
    assert set(keys[0].tolist()) == set(keys[1].tolist())


@every_pooling
def test_fault_p25_loops_remove_no_node(spec: PoolingSpec) -> None:
    loops = torch.arange(2).expand(2, 2)
    out = spec.build()(torch.randn(2, 4, dtype=torch.float64), loops)
    assert out.x.size(0) >= 1
    with_one = spec.build()(torch.randn(1, 4).double(), torch.zeros(2, 1).long())
    assert with_one.x.size(0) == 1


def large() -> tuple[torch.Tensor, torch.Tensor]:
    """20,000 nodes, 200,000 columns: half local, half anywhere."""
    chance = torch.Generator().manual_seed(0)
    size, half = 20_000, 50_000
    start = torch.randint(size, (half,), generator=chance)
    step = torch.randint(1, 50, (half,), generator=chance)
    near = torch.stack([start, (start + step) % size])
    far = torch.randint(size, (2, half), generator=chance)
    edges = torch.cat([near, far], dim=1)
    return torch.randn(size, 8, generator=chance), torch.cat([edges, edges.flip(0)], 1)


def num_two_hops(edges: torch.Tensor, num_nodes: int) -> int:
    """Entries of the full square."""
    ones = np.ones(edges.size(1), dtype=np.float32)
    matrix = sparse.coo_array((ones, edges.numpy()), shape=(num_nodes, num_nodes))
    with_loops = matrix.tocsr() + sparse.identity(num_nodes, format="csr")
    return (with_loops @ with_loops).nnz


def test_fault_p26_square_is_restricted_to_kept_nodes() -> None:
    x, edges = large()
    operator = GPool(8, ratio=0.5, augment="weighted")
    full = num_two_hops(edges, 20_000)
    with use_backend("native"), Watch() as watch, torch.no_grad():
        out = operator(x, edges)
    assert 0 < out.edge_index.size(1) < 0.35 * full
    # two int64 ids and a weight for each entry of the full square
    assert watch.largest < full * 20


def test_fault_p26_square_can_be_bounded() -> None:
    given = random_batch([300], 4)
    for backend in ("native", "numba"):
        operator = GPool(4, ratio=0.5, augment="weighted", max_edges=50).double()
        with use_backend(backend), pytest.raises(ValueError, match="max_edges=50"):
            operator(given.x, given.edge_index)


def test_fault_p26_square_can_be_left_out() -> None:
    given = random_batch([300], 4)
    out = GPool(4, ratio=0.5).double()(given.x, given.edge_index)
    assert out.edge_index.size(1) < given.num_edges
