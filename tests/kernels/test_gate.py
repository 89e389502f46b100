"""Gated rows against the formula, with first and second derivatives."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from pyg_pool.kernels.dispatch import runs_numba
from pyg_pool.kernels.gate import GATES, gated_rows, project, unit

FUNCTIONS = {"sigmoid": torch.sigmoid, "tanh": torch.tanh, "identity": lambda y: y}
INDEX = torch.tensor([3, 0, 4])


def inputs(bias: bool = True) -> tuple[Tensor, Tensor, Tensor | None]:
    x = torch.randn(5, 3, dtype=torch.double, requires_grad=True)
    vector = torch.randn(3, dtype=torch.double, requires_grad=True)
    shift = torch.randn(1, dtype=torch.double, requires_grad=True)
    return x, vector, shift if bias else None


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("bias", [True, False])
def test_equals_the_formula(gate: str, bias: bool, backend: str) -> None:
    x, vector, shift = inputs(bias)
    assert runs_numba("gated_rows", 0, x) == (backend == "numba")
    pooled, score = gated_rows(x, INDEX, vector, shift, gate)
    raw = x[INDEX] @ vector + (0.0 if shift is None else shift)
    expected = FUNCTIONS[gate](raw)
    torch.testing.assert_close(score, expected)
    torch.testing.assert_close(pooled, x[INDEX] * expected[:, None])


@pytest.mark.parametrize("gate", GATES)
def test_derivatives(gate: str, backend: str) -> None:
    x, vector, shift = inputs()

    def run(x: Tensor, vector: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
        return gated_rows(x, INDEX, vector, shift, gate)

    assert gradcheck(run, (x, vector, shift))
    assert gradgradcheck(run, (x, vector, shift))


def test_rows_that_are_not_picked_get_no_gradient(backend: str) -> None:
    x, vector, shift = inputs()
    gated_rows(x, INDEX, vector, shift, "tanh")[0].sum().backward()
    assert x.grad is not None
    assert (x.grad[[1, 2]] == 0).all()
    assert (x.grad[INDEX] != 0).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_scores_in_float32(dtype: torch.dtype, backend: str) -> None:
    x = torch.randn(5, 3).to(dtype).requires_grad_()
    vector = torch.randn(3, requires_grad=True)
    pooled, score = gated_rows(x, INDEX, vector, None, "sigmoid")
    assert (pooled.dtype, score.dtype) == (dtype, torch.float32)
    torch.testing.assert_close(score, torch.sigmoid(x[INDEX].float() @ vector))
    pooled.sum().backward()
    assert x.grad is not None
    assert x.grad.dtype == dtype


def test_nan_and_infinity_stay_visible(backend: str) -> None:
    x = torch.tensor([[torch.nan, 1.0], [torch.inf, 1.0], [1.0, 1.0]])
    vector = torch.tensor([1.0, 1.0])
    pooled, score = gated_rows(x, torch.arange(3), vector, None, "sigmoid")
    assert score.isnan().tolist() == [True, False, False]
    assert pooled.isinf().tolist() == [[False] * 2, [True, False], [False] * 2]


def test_no_rows(backend: str) -> None:
    x = torch.zeros(0, 3, requires_grad=True)
    none = torch.zeros(0, dtype=torch.long)
    pooled, score = gated_rows(x, none, torch.ones(3), None, "tanh")
    assert (pooled.shape, score.shape) == ((0, 3), (0,))
    pooled.sum().backward()


def test_autocast_leaves_projections_alone() -> None:
    x, vector = torch.randn(4, 3), torch.randn(3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = project(x, vector, torch.ones(1))
    torch.testing.assert_close(out, x @ vector + 1.0)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_unit_has_length_one_at_any_scale(scale: float) -> None:
    out = unit(torch.tensor([3.0, -4.0]) * scale)
    torch.testing.assert_close(out, torch.tensor([0.6, -0.8]))


def test_unit_of_zero_is_zero_with_finite_gradient() -> None:
    vector = torch.zeros(3, requires_grad=True)
    out = unit(vector)
    assert out.tolist() == [0.0, 0.0, 0.0]
    (out * torch.arange(3.0)).sum().backward()
    assert vector.grad is not None
    assert vector.grad.isfinite().all()


def test_unit_derivatives() -> None:
    vector = torch.randn(4, dtype=torch.double, requires_grad=True)
    assert gradcheck(unit, vector)
    assert gradgradcheck(unit, vector)


def test_works_under_functional_gradients(backend: str) -> None:
    x, vector, shift = inputs()

    def run(x: Tensor) -> Tensor:
        return gated_rows(x, INDEX, unit(vector), shift, "tanh")[0].sum()

    expected = torch.autograd.grad(run(x), x)[0]
    torch.testing.assert_close(torch.func.grad(run)(x), expected)
