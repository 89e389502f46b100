"""Weights of layers: formulas, small sums, scaled rows, bounds."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from pyg_pool.kernels.layer_weights import layer_weights

LOGITS = torch.tensor([[3.0, -1.0, 2.0], [0.5, 0.5, -0.25]])
ONE = torch.ones(2)


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ("signed", [0.75, -0.25, 0.5]),
        ("signed_abs", [0.5, -1 / 6, 1 / 3]),
        ("mean", [1 / 3, 1 / 3, 1 / 3]),
        ("last", [0.0, 0.0, 1.0]),
    ],
)
def test_formulas(how: str, wanted: list[float]) -> None:
    found = layer_weights(LOGITS, ONE, how, 1e-6, None)
    assert_close(found[0], torch.tensor(wanted))


def test_softmax() -> None:
    found = layer_weights(LOGITS, ONE, "softmax", 1e-6, None)
    assert_close(found, LOGITS.softmax(-1))


@pytest.mark.parametrize("how", ["signed", "signed_abs", "softmax"])
def test_scale_of_rows_does_not_matter(how: str) -> None:
    wanted = layer_weights(LOGITS, ONE, how, 1e-6, None)
    square = torch.tensor([2.0**-10, 2.0**-20])
    found = layer_weights(LOGITS * square[:, None], square, how, 1e-6, None)
    assert_close(found, wanted)


def test_small_sums_give_equal_weights_without_gradient() -> None:
    logits = torch.tensor([[1e-7, 2e-7], [1e6, -1e6], [0.0, 0.0], [3.0, 1.0]])
    logits.requires_grad_()
    weights = layer_weights(logits, torch.ones(4), "signed", 1e-6, None)
    assert weights[:3].tolist() == [[0.5, 0.5]] * 3
    assert weights[3].tolist() == [0.75, 0.25]
    weights[:, 0].sum().backward()
    assert logits.grad is not None
    assert (logits.grad[:3] == 0).all()
    assert (logits.grad[3] != 0).all()


def test_sum_of_rounding_errors_counts_as_zero() -> None:
    logits = torch.tensor([[1e8, -1e8 + 8, 1.0]])  # 8 is the rounding error of 1e8
    weights = layer_weights(logits, ONE[:1], "signed", 1e-6, None)
    assert weights.tolist()[0] == pytest.approx([1 / 3] * 3)
    exact = layer_weights(logits.double(), ONE[:1].double(), "signed", 1e-6, None)
    assert exact.abs().max() > 1e7


def test_bound() -> None:
    found = layer_weights(LOGITS, ONE, "signed", 1e-6, 0.5)
    assert_close(found[0], torch.tensor([0.5, -1 / 6, 1 / 3]))
    loose = layer_weights(LOGITS, ONE, "signed", 1e-6, 5.0)
    assert torch.equal(loose, layer_weights(LOGITS, ONE, "signed", 1e-6, None))


@pytest.mark.parametrize("how", ["signed", "signed_abs", "softmax"])
@pytest.mark.parametrize("bound", [None, 0.6])
def test_derivatives(how: str, bound: float | None) -> None:
    logits = LOGITS.double().requires_grad_()
    one = ONE.double()
    assert gradcheck(lambda c: layer_weights(c, one, how, 1e-6, bound), logits)


def test_unknown_word() -> None:
    with pytest.raises(ValueError, match="how='sign', expected one of"):
        layer_weights(LOGITS, ONE, "sign", 1e-6, None)
