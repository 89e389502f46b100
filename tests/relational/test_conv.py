"""Networks on labelled copies against stored values, and what they promise."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import Linear, Module, ModuleList, SiLU
from torch_geometric.nn import GINConv

from pyg_pool.relational import RelationalPooling
from tests.golden_files import FOLDER
from tests.relational.families import gather

CASES = json.loads((FOLDER / "klwl" / "forward.json").read_text())["cases"]


class GoldenGIN(Module):
    """GIN with one linear map and SiLU per layer, weights from a golden."""

    def __init__(self, layers: list[dict[str, Any]], dtype: torch.dtype) -> None:
        super().__init__()
        self.convs = ModuleList()
        for layer in layers:
            weight = torch.tensor(layer["W"], dtype=dtype)
            conv = GINConv(Linear(*weight.shape, dtype=dtype))
            conv.nn.load_state_dict(
                {"weight": weight.t(), "bias": torch.tensor(layer["b"], dtype=dtype)}
            )
            self.convs.append(conv)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Layers with SiLU after each."""
        for conv in self.convs:
            x = SiLU()(conv(x, edge_index))
        return x


def options(config: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key != "l"}


@pytest.mark.parametrize("chunk", [None, 2])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_golden(case: dict[str, Any], dtype: torch.dtype, chunk: int | None) -> None:
    word = "float64" if dtype == torch.float64 else "float32"
    limits = {"atol": case["tolerance"][word], "rtol": case["tolerance"][word]}
    config, inputs = case["inputs"]["config"], gather(case["inputs"]["graphs"], dtype)
    x = inputs.pop("x").requires_grad_()
    base = GoldenGIN(case["weights"]["gin_layers"], dtype)
    model = RelationalPooling(
        base, config["l"], chunk_size=chunk, **options(config)
    ).to(dtype)
    size = len(case["inputs"]["graphs"])
    out = model(x, **inputs, batch_size=size)
    want = torch.tensor(case["outputs"]["out"], dtype=dtype)
    torch.testing.assert_close(out, want, **limits)
    grads = case["gradients"]
    if grads is None or "x" not in grads:
        return
    rows = torch.arange(1, out.size(0) + 1, dtype=dtype).view(-1, 1)
    (out * rows * torch.tensor([1.0, -2.0, 0.5], dtype=dtype)).sum().backward()
    first = base.convs[0].nn
    for got, expected in (
        (x.grad, [row for each in grads["x"] for row in each]),
        (first.weight.grad.t(), grads["W_layer0"]),
        (first.bias.grad, grads["b_layer0"]),
    ):
        expected = torch.tensor(expected, dtype=dtype)
        scale = max(float(expected.abs().max()), 1.0)
        limits = {"atol": case["tolerance"][word] * scale, "rtol": 0.0}
        torch.testing.assert_close(got, expected, **limits)


def test_unknown_domains_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="did you mean 'star'"):
        RelationalPooling(GoldenGIN([], torch.float32), 1, domain="stars")
