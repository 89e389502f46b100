"""Faults P09 to P16: which nodes are kept, and in which order."""

from __future__ import annotations

import inspect
from fractions import Fraction

import pytest
import torch
from torch import Tensor
from torch.nn import Module

from pyg_pool import GPool, as_pyg_tuple
from pyg_pool.kernels import topk
from pyg_pool.testing import PoolingSpec, pooling, random_batch
from pyg_pool.testing.dense import dense_adjacency
from pyg_pool.testing.registry import two_hops
from tests.faults.inputs import (
    build_model,
    every_model,
    every_pooling,
    no_edges,
    path,
    undirected,
)


def by_feature(**options) -> GPool:
    """gPool whose score is the single feature."""
    operator = GPool(1, nonlinearity="identity", **options)
    torch.nn.init.ones_(operator.weight)
    return operator


def test_fault_p09_rows_and_edges_use_one_order() -> None:
    x = torch.tensor([[1.0], [5.0], [3.0], [4.0]])
    out = by_feature(ratio=3)(x, path(3))
    rows = out.selection.node_index.tolist()
    wanted = {(1, 3, 2): [[0, 2], [2, 0]], (1, 2, 3): [[0, 1], [1, 0]]}
    assert out.edge_index.tolist() == wanted[tuple(rows)]


@every_pooling
def test_fault_p09_pooled_edges_are_those_of_the_assignment(spec: PoolingSpec) -> None:
    pooling.check_adjacency(spec)


@pytest.mark.parametrize("seed", range(20))
def test_fault_p09_no_random_graph_gets_wrong_edges(seed: int) -> None:
    given = random_batch([9 + seed, 4, 0, 7], 1)
    out = by_feature(ratio=0.6).double()(
        given.x, given.edge_index, batch=given.batch, batch_size=4
    )
    kept = out.selection.node_index
    fine = dense_adjacency(given.edge_index, None, given.num_nodes)
    coarse = dense_adjacency(out.edge_index, None, out.x.size(0))
    assert torch.equal(coarse, fine[kept][:, kept])
    assert torch.equal(out.x, given.x[kept] * given.x[kept])


@every_model
def test_fault_p09_every_level_of_a_model(model_name: str) -> None:
    given = random_batch([12, 9], 4)
    model = build_model(model_name)
    found = model.run(given.x, given.edge_index, batch=given.batch, batch_size=2)
    augment = [getattr(pool, "augment", "none") for pool in model.pools]
    for i, selection in enumerate(found.hierarchy.selections):
        fine, coarse = found.hierarchy.levels[i : i + 2]
        adjacency = dense_adjacency(fine.edge_index, None, fine.num_nodes)[..., 0]
        if augment[i] != "none":
            adjacency = two_hops(augment[i], adjacency)
        assignment = selection.to_dense().double()
        wanted = assignment.t() @ adjacency @ assignment
        edges = dense_adjacency(coarse.edge_index, None, coarse.num_nodes)[..., 0]
        assert torch.equal(edges != 0, wanted != 0)


def test_fault_p10_no_padding_competes_with_a_score() -> None:
    score = torch.tensor([-7.0, -9.0, -3.0, 0.0, 1.0, 2.0, 3.0])
    batch = torch.tensor([0, 0, 1, 1, 1, 1, 1])
    for k in (1, 2, 3, 5):
        kept = topk(score, k=k, batch=batch, batch_size=2)
        assert kept.tolist() == [0, 1][:k] + [6, 5, 4, 3, 2][:k]
    out = by_feature(ratio=0.5)(score.view(-1, 1), no_edges(), batch=batch)
    assert out.selection.node_index.tolist() == [0, 6, 5, 4]
    assert out.batch.tolist() == [0, 1, 1, 1]


def test_fault_p11_more_wanted_than_there_are() -> None:
    batch = torch.tensor([0] * 3 + [1] * 6)
    kept = topk(torch.randn(9), k=5, batch=batch, batch_size=2)
    assert torch.bincount(batch[kept]).tolist() == [3, 5]
    assert len(set(kept.tolist())) == 8
    x = torch.randn(9, 1)
    assert by_feature(ratio=5)(x, no_edges(), batch=batch).x.size(0) == 8


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_fault_p12_share_is_rounded_the_same_in_every_dtype(dtype) -> None:
    out = by_feature(ratio=0.3).to(dtype)(torch.randn(50, 1, dtype=dtype), no_edges())
    assert out.x.size(0) == 15


# 0.55 * 100 is not 55 in float64 either, 0.29 * 100 not 29.
CLOSE = ("0.55", "0.07", "0.29", "0.57")


def test_fault_p12_every_share_is_exact() -> None:
    sizes = torch.arange(1, 600)
    batch = torch.repeat_interleave(sizes - 1, sizes)
    score = torch.zeros(batch.numel(), dtype=torch.bfloat16)
    for word in ("0.1", "0.2", "0.3", "0.4", "0.6", "0.7", "0.8", "0.9", *CLOSE):
        wanted = [-(-Fraction(word) * n // 1) for n in sizes.tolist()]
        kept = topk(score, float(word), batch=batch, batch_size=599)
        assert torch.bincount(batch[kept]).tolist() == wanted
        alone = [len(topk(score[:n], float(word))) for n in sizes.tolist()]
        assert alone == wanted


@every_pooling
def test_fault_p13_node_index_is_the_input_row(spec: PoolingSpec) -> None:
    given = spec.random(12, 7)
    operator = spec.build()
    out = spec.call(operator, given)
    pos, y = torch.randn(19, 3), torch.arange(19)
    mask = torch.arange(19) % 2 == 0
    carried = operator.carry(out, pos=pos, y=y, mask=mask)
    assert {len(each) for each in carried.values()} == {out.x.size(0)}
    if out.selection.is_one_to_one:
        perm = as_pyg_tuple(out).perm
        assert torch.equal(carried["pos"], pos[perm])
        assert torch.equal(carried["y"], y[perm])
        assert torch.equal(carried["mask"], mask[perm])
    else:
        assert out.selection.cluster.shape == (19,)


def test_fault_p13_two_levels_chain() -> None:
    x = torch.randn(20, 1)
    first = by_feature(ratio=0.5)(x, path(20))
    second = by_feature(ratio=0.5)(first.x, first.edge_index)
    perm = first.selection.node_index[second.selection.node_index]
    both = first.selection.compose(second.selection)
    assert torch.equal(both.node_index, perm)
    torch.testing.assert_close(second.x, x[perm] ** 4)


def with_ratio(spec: PoolingSpec, operator: Module, ratio: float) -> Module:
    """The operator with another ratio and the same parameters."""
    names = inspect.signature(type(operator)).parameters
    text = repr(operator)
    options = {n: getattr(operator, n) for n in names if f"{n}=" in text}
    options = {n: isinstance(v, Tensor) or v for n, v in options.items()}
    width = {"in_channels": spec.in_channels} if "in_channels" in names else {}
    other = type(operator)(**{**options, **width, "ratio": ratio}).double().eval()
    other.load_state_dict(operator.state_dict())
    return other


@every_pooling
def test_fault_p14_the_highest_scores_stay(spec: PoolingSpec) -> None:
    operator = spec.build()
    if "ratio" not in inspect.signature(type(operator)).parameters:
        pytest.skip("selects without a ratio")
    for sign in (1, -1):
        given = spec.random(31)
        for parameter in operator.parameters():
            parameter.data.mul_(sign)
        with torch.no_grad():
            out = spec.call(operator, given)
        kept = set(out.selection.node_index.tolist())
        whole = spec.call(with_ratio(spec, operator, 1.0), given)
        if len(whole.selection.node_index) < 31:
            continue  # chosen by a threshold
        score = whole.lift(whole.score).detach()
        dropped = [i for i in range(31) if i not in kept]
        lowest = min(float(score[i]) for i in kept)
        assert all(float(score[i]) <= lowest for i in dropped)


def test_fault_p14_larger_projections_win() -> None:
    x = torch.tensor([[0.1], [0.9], [0.4], [0.8], [0.2]])
    assert by_feature(ratio=2)(x, path(5)).selection.node_index.tolist() == [1, 3]


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16]
)
def test_fault_p15_ties_go_to_the_lowest_nodes(
    dtype: torch.dtype, device: torch.device
) -> None:
    score = torch.ones(50, dtype=dtype, device=device)
    for _ in range(3):
        assert topk(score, k=5).tolist() == [0, 1, 2, 3, 4]
    two = torch.arange(100, device=device) // 50
    twice = torch.cat([score, score])
    kept = topk(twice, k=2, batch=two, batch_size=2)
    assert kept.tolist() == [0, 1, 50, 51]
    assert topk(torch.tensor([0.0, -0.0, 0.0], dtype=dtype), k=2).tolist() == [0, 1]


@every_pooling
def test_fault_p15_ties_of_every_operator(spec: PoolingSpec) -> None:
    pooling.check_ties(spec)


@every_pooling
def test_fault_p16_threshold_leaves_a_node_of_every_graph(spec: PoolingSpec) -> None:
    cls = type(spec.build())
    if "min_score" not in inspect.signature(cls).parameters:
        pytest.skip("has no threshold")
    operator = cls(1, min_score=0.6)
    torch.nn.init.ones_(operator.weight)
    x = torch.tensor([[9.0], [0.0], [1.0], [2.0], [1.5], [1.0]])
    batch = torch.tensor([0, 0, 1, 1, 1, 1])
    out = operator(x, undirected((0, 1), (2, 3)), batch=batch, batch_size=2)
    assert out.selection.node_index.tolist() == [0, 3]


def kept_at(threshold: float, x: Tensor) -> list[int]:
    operator = GPool(1, min_score=threshold)
    torch.nn.init.ones_(operator.weight)
    return operator(x, no_edges()).selection.node_index.tolist()


def test_fault_p16_threshold_itself_does_not_pass() -> None:
    x = torch.tensor([[0.0], [0.0], [-1.0]]).double() * torch.log(torch.tensor(2.0))
    # softmax scores 0.4, 0.4, 0.2
    assert kept_at(0.3, x) == [0, 1]
    assert kept_at(0.1, x) == [0, 1, 2]
    assert kept_at(0.5, x)[0] == 0
