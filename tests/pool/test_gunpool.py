"""GUnpool against stored values, and its checks."""

from __future__ import annotations

import pytest
import torch

from pyg_pool import GUnpool, Selection
from tests.golden_files import close, load, names


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", names("gpool", "unpool"))
def test_golden(name: str, dtype: torch.dtype) -> None:
    golden = load("gpool", name, dtype)
    inputs = golden["inputs"]
    kept = Selection.from_nodes(inputs["node_index"], inputs["num_nodes"])
    x = inputs["x"].requires_grad_()
    out = GUnpool()(x, kept)
    close(golden, out, golden["outputs"]["x_out"])
    (out * inputs["cotangent_of_x_out"]).sum().backward()
    close(golden, x.grad, golden["gradients"]["x"])


def test_the_gate_is_not_applied_again() -> None:
    kept = Selection.from_nodes(torch.tensor([1]), 2, torch.tensor([0.5]))
    assert GUnpool()(torch.tensor([[4.0]]), kept).tolist() == [[0.0], [4.0]]


def test_clusters_in_another_order_than_entries() -> None:
    kept = Selection(torch.tensor([2, 0]), 3, torch.tensor([1, 0]), 2)
    out = GUnpool()(torch.tensor([[5.0], [7.0]]), kept)
    assert out.view(-1).tolist() == [5.0, 0.0, 7.0]


def test_refuses_another_level_and_clusters() -> None:
    kept = Selection.from_nodes(torch.tensor([1]), 2)
    with pytest.raises(ValueError, match=r"shape \[2, 1\] .* 1 kept nodes"):
        GUnpool()(torch.zeros(2, 1), kept)
    pairs = Selection.from_clusters(torch.tensor([0, 0]))
    with pytest.raises(ValueError, match=r"expected a one-to-one selection"):
        GUnpool()(torch.zeros(1, 1), pairs)
