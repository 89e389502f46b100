"""Primal-dual convolution against stored values, and the rules that it documents."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyg_pool.mesh import PrimalDualConv
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


ROW = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
DUAL, LINKS = torch.tensor([0, 0, 1, 1]), torch.tensor([[0, 1], [1, 0]])


def test_attention_is_that_before_dropout() -> None:
    torch.manual_seed(1)
    conv = PrimalDualConv(2, 3, 4, heads=2, dropout=0.5).train()
    graphs = (torch.randn(3, 2), torch.randn(2, 3), ROW, LINKS, DUAL)
    seen = conv(*graphs)
    sums = torch.zeros(3, 2).index_add(0, ROW[1], seen.attention)
    torch.testing.assert_close(sums, torch.ones(3, 2))
    outs = [conv(*graphs).x for _ in range(4)]
    assert any(not torch.equal(outs[0], out) for out in outs[1:])
    conv.dual.dropout = 0.0
    assert torch.equal(conv(*graphs).attention, conv(*graphs).attention)


def test_face_without_neighbours_gets_its_bias() -> None:
    conv = PrimalDualConv(2, 3, 4)
    torch.nn.init.normal_(conv.primal.bias)
    none = torch.empty(2, 0, dtype=torch.long)
    out = conv(torch.ones(2, 2), torch.ones(0, 3), none, none, none[0])
    torch.testing.assert_close(out.x, conv.primal.bias.relu().expand(2, -1))
    assert out.x_dual.shape == (0, 4)
    assert out.attention.shape == (0, 1)


def test_given_loops_do_not_count() -> None:
    torch.manual_seed(3)
    conv = PrimalDualConv(2, 3, 8, dual_self_loops=True)
    loops = torch.cat([LINKS, torch.tensor([[0, 0], [0, 0]])], 1)
    x, x_dual = torch.randn(3, 2), torch.randn(2, 3)
    bare = conv(x, x_dual, ROW, LINKS, DUAL)
    assert torch.equal(conv(x, x_dual, ROW, loops, DUAL).x_dual, bare.x_dual)
    conv.dual_self_loops = False
    assert not torch.equal(conv(x, x_dual, ROW, loops, DUAL).x_dual, bare.x_dual)


def test_heads_are_averaged() -> None:
    conv = PrimalDualConv(2, 3, 4, heads=2, concat=False)
    out = conv(torch.randn(3, 2), torch.randn(2, 3), ROW, LINKS, DUAL)
    assert out.x.shape == (3, 4) == (3, conv.out_channels)
    assert out.x_dual.shape == (2, 8) == (2, conv.out_channels_dual)
    with pytest.raises(ValueError, match="pass heads=1"):
        PrimalDualConv(2, 3, 4, heads=2, concat_dual=False)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype: torch.dtype) -> None:
    conv = PrimalDualConv(2, 3, 4)
    x, x_dual = torch.randn(3, 2), torch.randn(2, 3)
    wide = conv(x, x_dual, ROW, LINKS, DUAL)
    half = conv.to(dtype)(x.to(dtype), x_dual.to(dtype), ROW, LINKS, DUAL)
    assert half.x.dtype == half.attention.dtype == dtype
    torch.testing.assert_close(half.x.float(), wide.x, atol=0.05, rtol=0.05)


def test_wrong_widths() -> None:
    conv = PrimalDualConv(2, 3, 4)
    with pytest.raises(ValueError, match="in_channels=3"):
        conv(torch.ones(3, 3), torch.ones(2, 3), ROW, LINKS, DUAL)
    with pytest.raises(ValueError, match="for 4 edges"):
        conv(torch.ones(3, 2), torch.ones(2, 3), ROW, LINKS, DUAL[:2])
    assert repr(conv).startswith("PrimalDualConv(\n  2, 3, 4, 4, heads=1")
