"""Primal-dual pooling against stored values, and the rules that it documents."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from pyg_pool import PrimalDualPooling, PrimalDualUnpooling
from tests.golden_files import load, names

SPELLING = {
    "primal_att_coeff_threshold": "threshold",
    "fraction_primal_edges_to_keep": "fraction_to_keep",
    "num_primal_edges_to_keep": "num_edges_to_keep",
    "allow_pooling_consecutive_edges": "consecutive",
    "use_decreasing_attention_coefficient": "largest",
    "self_loops": "dual_self_loops",
    "aggr_primal_features": "reduce",
    "aggr_dual_features": "reduce_dual",
}


def options_of(golden: dict[str, Any]) -> dict[str, Any]:
    """The options of a golden under the names of this library."""
    words = {"add": "sum", "mean": "mean"}
    return {
        "config": golden["config"],
        **{
            SPELLING[name]: words.get(value, value) if isinstance(value, str) else value
            for name, value in golden["options"].items()
        },
    }


def near(golden: dict[str, Any], got: Tensor, expected: Any) -> None:
    expected = torch.as_tensor(expected, dtype=got.dtype).view(got.shape)
    limit = golden["tolerance"]
    torch.testing.assert_close(got.detach(), expected, atol=limit, rtol=limit)


@pytest.mark.parametrize("name", names("mesh", "pool_*"))
def test_golden(name: str, backend: str) -> None:
    golden = load("mesh", name)
    inputs, outputs, grads = golden["inputs"], golden["outputs"], golden["gradients"]
    x = inputs["primal_x"].requires_grad_()
    x_dual = inputs["dual_x"].requires_grad_()
    out = PrimalDualPooling(**options_of(golden))(
        x, x_dual, inputs["primal_edge_index"], inputs["dual_edge_index"],
        inputs["edge_to_dual"], inputs["attention"], batch=inputs["batch"],
        batch_dual=inputs["dual_batch"], batch_size=int(inputs["batch"].max()) + 1,
    )  # fmt: skip
    for got, key in (
        (out.selection.cluster, "cluster"),
        (out.selection_dual.cluster, "old_dual_to_new"),
        (out.edge_index, "primal_edge_index"),
        (out.edge_index_dual, "dual_edge_index"),
        (out.batch, "batch"),
        (out.batch_dual, "dual_batch"),
        (out.selected_edges.t(), "selected_edges"),
    ):
        assert torch.equal(got, outputs[key]), key
    ends = outputs["dual_nodes"].t()
    both = torch.cat([ends, ends.flip(0)], 1) if golden["config"] == "A" else ends
    for edge, dual in zip(out.edge_index.t(), out.edge_to_dual, strict=True):
        assert any(torch.equal(edge, both[:, k]) for k in (dual, dual - ends.size(1)))
    near(golden, out.x, outputs["primal_x"])
    near(golden, out.x_dual, outputs["dual_x"])
    # The stored ratios were held in float32.
    torch.testing.assert_close(
        out.ratio_nodes, outputs["ratio_nodes"], atol=1e-7, rtol=0.0
    )
    torch.testing.assert_close(
        out.ratio_edges, outputs["ratio_edges"], atol=1e-7, rtol=0.0
    )
    loss = (out.x * inputs["loss_weights_primal"]).sum()
    (loss + (out.x_dual * inputs["loss_weights_dual"]).sum()).backward()
    near(golden, x.grad, grads["primal_x"])
    near(golden, x_dual.grad, grads["dual_x"])
    unpool = PrimalDualUnpooling(x_dual.size(1)).double()
    stored = golden["unpool"]
    vector = torch.tensor(stored["new_dual_feature"], dtype=torch.float64)
    unpool.load_state_dict({"new_dual_feature": vector})
    back, back_dual = unpool(out.x, out.x_dual, out.selection, out.selection_dual)
    near(golden, back, stored["primal_x"])
    near(golden, back_dual, stored["dual_x"])
