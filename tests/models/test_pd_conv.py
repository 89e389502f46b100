"""Primal-dual convolution against stored values, and the rules that it documents."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyg_pool.models import PrimalDualConv
from tests.golden_files import load, names


def conv_of(golden: dict[str, Any]) -> PrimalDualConv:
    """The layer of a golden, with its weights."""
    options = dict(golden["options"])
    inputs, weights, heads = golden["inputs"], golden["weights"], options["heads"]
    conv = PrimalDualConv(
        inputs["primal_x"].size(1),
        inputs["dual_x"].size(1),
        weights["primal.weight"].size(1) // heads,
        weights["dual.weight"].size(1) // heads,
        **options,
    )
    conv.double().load_state_dict(weights)
    return conv


GRAPHS = ("primal_edge_index", "dual_edge_index", "edge_to_dual")


@pytest.mark.parametrize("name", names("mesh", "conv_*"))
def test_golden(name: str, backend: str) -> None:
    golden = load("mesh", name)
    golden["tolerance"] = {"atol": golden["tolerance"], "rtol": golden["tolerance"]}
    inputs, outputs, grads = golden["inputs"], golden["outputs"], golden["gradients"]
    conv = conv_of(golden)
    x = inputs["primal_x"].requires_grad_()
    x_dual = inputs["dual_x"].requires_grad_()
    out = conv(x, x_dual, *(inputs[key] for key in GRAPHS))
    near(golden, out.x, outputs["primal"])
    near(golden, out.x_dual, outputs["dual"])
    near(golden, out.attention, outputs["attention"])
    loss = (out.x * inputs["loss_weights_primal"]).sum()
    loss = loss + (out.x_dual * inputs["loss_weights_dual"]).sum()
    near(golden, loss, torch.tensor(outputs["loss"], dtype=torch.double))
    loss.backward()
    near(golden, x.grad, grads["primal_x"])
    near(golden, x_dual.grad, grads["dual_x"])
    for key, weight in conv.named_parameters():
        near(golden, weight.grad, grads[key])


def near(golden: dict[str, Any], got: Any, expected: Any) -> None:
    torch.testing.assert_close(
        got.detach(), expected.to(got.dtype), **golden["tolerance"]
    )
