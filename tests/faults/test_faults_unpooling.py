"""Faults P17 to P19: the way back, and what is remembered."""

from __future__ import annotations

import pytest
import torch

from pyg_pool import GPool, GUnpool, Selection
from pyg_pool.core import lift
from pyg_pool.testing import PoolingSpec, pooling, sample
from tests.faults.inputs import (
    build_model,
    every_model,
    every_pooling,
    path,
    undirected,
)

WAYS = ["transpose", "mean", "pinv"]


@every_pooling
def test_fault_p17_two_levels_down_and_up(spec: PoolingSpec) -> None:
    operator = spec.build()
    x = torch.randn(6, 4, dtype=torch.float64)
    first = operator(x, path(6))
    second = operator(first.x, first.edge_index, first.edge_attr, batch=first.batch)
    fine = first.lift(second.lift(second.x))
    assert fine.shape == (6, 4)
    both = first.selection.compose(second.selection)
    torch.testing.assert_close(fine, lift(second.x, both))
    dropped = both.to_dense().sum(1) == 0
    assert torch.equal(fine[dropped], torch.zeros_like(fine[dropped]))
    pooling.check_lift(spec)


def test_fault_p17_rows_return_to_their_places() -> None:
    operator = GPool(1, ratio=0.5, nonlinearity="identity", multiplier=1.0)
    torch.nn.init.ones_(operator.weight)
    x = torch.tensor([[1.0], [6.0], [3.0], [2.0], [5.0], [4.0]])
    first = operator(x, path(6))
    second = operator(first.x, first.edge_index)
    unpool = GUnpool()
    up = unpool(unpool(second.x, second.selection), first.selection)
    assert up.view(-1).tolist() == [0.0, 6.0**4, 0.0, 0.0, 5.0**4, 0.0]


def test_fault_p17_clusters_share_their_value() -> None:
    pairs = Selection.from_clusters(torch.tensor([0, 0, 1, 1, 2, 2]))
    top = Selection.from_clusters(torch.tensor([0, 0, 1]))
    fine = lift(lift(torch.tensor([[7.0], [9.0]]), top), pairs)
    assert fine.view(-1).tolist() == [7.0, 7.0, 7.0, 7.0, 9.0, 9.0]


@every_pooling
def test_fault_p17_each_level_of_a_batch(spec: PoolingSpec) -> None:
    given = sample("interleaved").to("cpu", torch.float64)
    out = spec.call(spec.build(), given)
    ids = out.lift((out.batch + 1).double().unsqueeze(-1), "mean").view(-1)
    covered = out.selection.to_dense().sum(1) > 0
    assert torch.equal(ids[covered], given.batch[covered].double() + 1)


@pytest.mark.parametrize("how", WAYS)
def test_fault_p17_record_of_another_level_is_refused(how: str) -> None:
    operator = GPool(1, ratio=0.5)
    first = operator(torch.randn(6, 1), path(6))
    second = operator(first.x, first.edge_index)
    with pytest.raises(ValueError, match="expected one row per cluster"):
        first.lift(second.x, how)
    with pytest.raises(ValueError, match="expected one row for each"):
        GUnpool()(second.x, first.selection)


@every_pooling
def test_fault_p18_no_division_by_a_zero_score(spec: PoolingSpec) -> None:
    operator = spec.build()
    for parameter in operator.parameters():
        parameter.data.zero_()
    for how in WAYS:
        leaf = spec.random(6, 5).leaf()
        operator.zero_grad()
        out = spec.call(operator, leaf)
        fine = out.lift(out.x, how)
        assert fine.isfinite().all()
        fine.sum().backward()
        assert leaf.x.grad.isfinite().all()
        for parameter in operator.parameters():
            assert parameter.grad is None or parameter.grad.isfinite().all()


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("cluster", [[0, 1, 2], [0, 0, 1], [0, -1, 1]])
def test_fault_p18_zero_weights_lift_to_finite_rows(
    how: str, cluster: list[int]
) -> None:
    for weighted in (False, True):
        weight = torch.zeros(3, dtype=torch.float64, requires_grad=True)
        selection = Selection.from_clusters(torch.tensor(cluster), weight=weight)
        size = selection.num_clusters
        x = torch.randn(size, 2, dtype=torch.float64, requires_grad=True)
        fine = lift(x, selection, how, weighted=weighted)
        assert fine.isfinite().all()
        grads = torch.autograd.grad(fine.sum() + 0 * weight.sum(), [x, weight])
        assert all(grad.isfinite().all() for grad in grads)


STAR = undirected((0, 1), (0, 2), (0, 3))


@every_pooling
def test_fault_p19_another_graph_gets_its_own_answer(spec: PoolingSpec) -> None:
    used, fresh = spec.build(), spec.build()
    x = torch.randn(4, 4, dtype=torch.float64)
    used(x, path(4))
    for edges, rows in ((STAR, x), (path(6), torch.randn(6, 4, dtype=torch.float64))):
        found, wanted = used(rows, edges), fresh(rows, edges)
        assert torch.equal(found.edge_index, wanted.edge_index)
        assert found.selection == wanted.selection
        assert torch.equal(found.x, wanted.x)


@every_model
def test_fault_p19_models_remember_no_graph(model_name: str) -> None:
    used, fresh = build_model(model_name), build_model(model_name)
    x = torch.randn(4, 4, dtype=torch.float64)
    used(x, path(4))
    assert torch.equal(used(x, STAR), fresh(x, STAR))
    assert not torch.equal(used(x, STAR), used(x, path(4)))
