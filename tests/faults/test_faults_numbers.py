"""Faults P27 to P32: NaN, zero degrees, powers, precision."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

import pyg_pool.models
from pyg_pool.kernels import segment_reduce, segment_softmax
from pyg_pool.pool.gpool import unit
from pyg_pool.testing import (
    PoolingSpec,
    ReadoutSpec,
    framework,
    numbers,
    pooling,
    readout,
)
from tests.faults.inputs import (
    build_model,
    every_model,
    every_pooling,
    every_readout,
    no_edges,
    path,
    undirected,
)

REDUCES = ["sum", "mean", "max", "min", "prod", "logsumexp"]


@every_readout
def test_fault_p27_empty_sets_are_neutral(spec: ReadoutSpec) -> None:
    x = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    out = spec.build()(x, torch.tensor([0, 2]), dim_size=4)
    assert torch.equal(out[[1, 3]], torch.full_like(out[[1, 3]], spec.neutral))
    out.sum().backward()
    assert x.grad.isfinite().all()
    readout.check_empty(spec)
    framework.check_inference(spec)


@pytest.mark.parametrize("reduce", REDUCES)
def test_fault_p27_kernels_of_empty_segments(reduce: str, backend: str) -> None:
    x = torch.randn(2, 3, requires_grad=True)
    out = segment_reduce(x, torch.tensor([0, 2]), dim_size=4, reduce=reduce)
    neutral = float(reduce == "prod")
    assert out[[1, 3]].tolist() == [[neutral] * 3] * 2
    with torch.no_grad():
        again = segment_reduce(x, torch.tensor([0, 2]), dim_size=4, reduce=reduce)
    assert torch.equal(again, out)
    (grad,) = torch.autograd.grad(out.sum(), x)
    assert grad.isfinite().all()
    weight = segment_softmax(x, torch.tensor([0, 2]), dim_size=4)
    assert torch.equal(weight, torch.ones_like(x))
    nothing = segment_reduce(x[:0], torch.empty(0).long(), dim_size=2, reduce=reduce)
    assert nothing.tolist() == [[neutral] * 3] * 2


LONELY = undirected((0, 1), (1, 2), (0, 2))  # and the nodes 3 and 4


@every_model
def test_fault_p28_training_on_isolated_nodes_stays_finite(model_name: str) -> None:
    model = build_model(model_name, dtype=torch.float32).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    x = torch.randn(5, 4)
    for _ in range(200):
        optimiser.zero_grad()
        found = model.run(x, LONELY)
        loss = functional.cross_entropy(found.out, torch.tensor([1])) + found.loss
        loss.backward()
        assert torch.isfinite(loss)
        optimiser.step()
    assert all(p.isfinite().all() for p in model.parameters())


# The convolution on two graphs has tests of its own.
CONVS = [
    name
    for name in pyg_pool.models.__all__
    if name.endswith("Conv") and name != "PrimalDualConv"
]


@pytest.mark.parametrize("weight", [None, 1.0, 0.0])
@pytest.mark.parametrize("name", CONVS)
def test_fault_p28_convolutions_take_degree_zero(
    name: str, weight: float | None
) -> None:
    conv = getattr(pyg_pool.models, name)(4, 4)
    x = torch.randn(5, 4, requires_grad=True)
    given = None if weight is None else torch.full((6,), weight, requires_grad=True)
    out = conv(x, LONELY, given)
    assert out.isfinite().all()
    out.sum().backward()
    assert x.grad.isfinite().all()
    assert given is None or given.grad.isfinite().all()


@every_pooling
def test_fault_p28_training_a_pool_on_isolated_nodes(spec: PoolingSpec) -> None:
    operator = spec.build(torch.float32).train()
    head = torch.nn.Linear(spec.in_channels, 1)
    parameters = [*operator.parameters(), *head.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=0.05)
    x = torch.randn(5, spec.in_channels)
    for _ in range(200):
        optimiser.zero_grad()
        out = operator(x, LONELY)
        loss = (head(out.x).mean() - 1) ** 2 + out.loss
        loss.backward()
        optimiser.step()
        assert torch.isfinite(loss)
    assert all(p.isfinite().all() for p in parameters)


@every_pooling
def test_fault_p28_nothing_uninitialised_is_returned(
    spec: PoolingSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = spec.build()
    x = torch.randn(5, 4, dtype=torch.float64)
    wanted = operator(x, LONELY)
    torch.utils.deterministic.fill_uninitialized_memory = True
    torch.use_deterministic_algorithms(True)  # fills fresh memory with NaN
    try:
        found = operator(x, LONELY)
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(found.x, wanted.x)
    assert torch.equal(found.edge_index, wanted.edge_index)


@pytest.mark.parametrize("value", [0.0, 2.5])
@every_readout
def test_fault_p29_equal_rows_have_a_finite_gradient(
    spec: ReadoutSpec, value: float
) -> None:
    x = torch.full((4, 4), value, requires_grad=True)
    out = spec.build(torch.float32)(x, torch.tensor([0, 0, 0, 1]), dim_size=2)
    assert out.isfinite().all()
    out.sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("value", [0.0, 2.5])
@every_pooling
def test_fault_p29_pooling_of_equal_rows(spec: PoolingSpec, value: float) -> None:
    operator = spec.build(torch.float32)
    x = torch.full((6, 4), value, requires_grad=True)
    out = operator(x, path(6))
    out.x.sum().backward()
    assert x.grad.isfinite().all()
    for parameter in operator.parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all()


def test_fault_p29_length_of_a_zero_vector_has_gradient_zero() -> None:
    vector = torch.zeros(3, requires_grad=True)
    unit(vector).sum().backward()
    assert torch.isfinite(vector.grad).all()


POWERS = {
    "pair": [[1.0], [5.0]],
    "negative": [[-1.0], [-3.0], [-0.5]],
    "with zeros": [[0.0], [2.0], [0.0]],
    "large": [[1e4], [1e4], [3e4]],
}


@pytest.mark.parametrize("rows", list(POWERS.values()), ids=list(POWERS))
@every_readout
def test_fault_p30_readouts_at_the_edge(spec: ReadoutSpec, rows) -> None:
    x = torch.tensor(rows).repeat(1, 4).requires_grad_()
    operator = spec.build(torch.float32)
    for power in (None, 0.0, 1e-6, 1.0, -1.0, 50.0, -50.0):
        named = dict(operator.named_parameters())
        if power is not None and "p" not in named:
            continue  # no power to set
        if power is not None:
            named["p"].data.fill_(power)
        operator.zero_grad()
        out = operator(x, torch.zeros(len(rows), dtype=torch.long), dim_size=1)
        assert out.isfinite().all()
        out.sum().backward()
        for each in (x, *operator.parameters()):
            assert each.grad is None or each.grad.isfinite().all()


@pytest.mark.parametrize("reduce", REDUCES)
@pytest.mark.parametrize("rows", list(POWERS.values()), ids=list(POWERS))
def test_fault_p30_kernels_at_the_edge(rows, reduce: str) -> None:
    x = torch.tensor(rows, requires_grad=True)
    out = segment_reduce(x, torch.zeros(len(rows)).long(), dim_size=1, reduce=reduce)
    assert out.isfinite().all()
    (grad,) = torch.autograd.grad(out.sum(), x)
    assert grad.isfinite().all()


def test_fault_p30_exponentials_of_large_numbers() -> None:
    x = torch.tensor([1e4, 1e4, -1e4, 3e4], requires_grad=True)
    index = torch.tensor([0, 0, 1, 2])
    out = segment_reduce(x, index, dim_size=3, reduce="logsumexp")
    wanted = torch.tensor([1e4 + 0.6931, -1e4, 3e4])
    torch.testing.assert_close(out, wanted)
    out.sum().backward()
    assert x.grad.tolist() == [0.5, 0.5, 1.0, 1.0]
    assert segment_softmax(x, index, dim_size=3).tolist() == [0.5, 0.5, 1.0, 1.0]


def test_fault_p30_half_precision_sums_of_300_rows() -> None:
    x = torch.full((300, 1), 300.0, dtype=torch.float16, requires_grad=True)
    out = segment_reduce(x, torch.zeros(300).long(), dim_size=1, reduce="mean")
    assert out.item() == 300.0
    out.sum().backward()
    torch.testing.assert_close(x.grad.float(), torch.full((300, 1), 1 / 300), rtol=1e-2,
                               atol=0.0)  # fmt: skip


@every_pooling
def test_fault_p31_nan_stays_in_its_graph(spec: PoolingSpec) -> None:
    pooling.check_nan(spec)


@every_readout
def test_fault_p31_nan_stays_in_its_group(spec: ReadoutSpec) -> None:
    readout.check_nan(spec)


@every_model
def test_fault_p31_nan_stays_in_its_prediction(model_name: str) -> None:
    x = torch.randn(9, 4, dtype=torch.float64)
    batch = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 2])
    edges = undirected((0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (6, 7), (7, 8))
    model = build_model(model_name)
    clean = model(x, edges, batch=batch, batch_size=3)
    x[0, 1] = torch.nan
    found = model(x, edges, batch=batch, batch_size=3)
    assert found[0].isnan().any()
    torch.testing.assert_close(found[1:], clean[1:])


@every_pooling
def test_fault_p32_every_dtype(spec: PoolingSpec) -> None:
    numbers.check_dtypes(spec)
    numbers.check_autocast(spec)


@every_readout
def test_fault_p32_readouts_in_every_dtype(spec: ReadoutSpec) -> None:
    numbers.check_dtypes(spec)
    numbers.check_autocast(spec)
    readout.check_counts(spec)


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16]
)
@every_model
def test_fault_p32_models_in_every_dtype(model_name: str, dtype: torch.dtype) -> None:
    model = build_model(model_name, dtype=dtype).train()
    x = torch.randn(7, 4, dtype=dtype, requires_grad=True)
    out = model(x, path(6))
    assert out.dtype == dtype
    out.sum().backward()
    assert x.grad.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@every_model
def test_fault_p32_models_under_autocast(model_name: str) -> None:
    model = build_model(model_name, dtype=torch.float32).train()
    with torch.autocast("cpu", torch.bfloat16):
        out = model(torch.randn(7, 4), path(6))
    assert out.is_floating_point()
    out.float().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_fault_p32_sums_are_held_in_float32() -> None:
    ones = torch.ones(1000, 1, dtype=torch.bfloat16)
    index = torch.zeros(1000, dtype=torch.long)
    assert segment_reduce(ones, index, dim_size=1).item() == 1000.0
    assert segment_reduce(ones, index, dim_size=1, reduce="mean").item() == 1.0
    assert no_edges().dtype == torch.long
