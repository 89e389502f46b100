"""GLOT against stored values; padding, options, graphs and hosts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from pyg_pool import GLOTAggregation
from pyg_pool.readout import token_graph
from tests.golden_files import close, load, names

DTYPES = [torch.float64, torch.float32]


def from_golden(golden: dict[str, Any]) -> GLOTAggregation:
    """The readout of a golden, loaded from the released names of its weights."""
    config = golden["config"]
    readout = GLOTAggregation(
        config["in_dim"],
        config["hidden_dim"],
        num_layers=config["num_layers"],
        conv=config["conv"],
        jk=config["jk"],
        tau=config["tau"],
        heads=config["heads"],
        scorer_channels=config["scorer_hidden"],
    ).to(golden["dtype"])
    buffers = {name: torch.as_tensor(v) for name, v in golden["buffers"].items()}
    readout.load_state_dict({**golden["weights"], **buffers})
    return readout.train(config["training_mode"])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", names("glot"))
def test_golden_rows_and_gradients(name: str, dtype: torch.dtype, backend: str) -> None:
    golden = load("glot", name, dtype)
    readout = from_golden(golden)
    hidden = golden["inputs"]["hidden"].requires_grad_()
    out = readout.from_padded(hidden, golden["inputs"]["attention_mask"])
    close(golden, out, golden["outputs"]["z"])
    (out * torch.tensor(golden["cotangent"], dtype=dtype)).sum().backward()
    grads = {
        "hidden": hidden.grad,
        **{n: p.grad for n, p in readout.named_parameters()},
    }
    assert grads.keys() == golden["gradients"].keys()
    for key, grad in grads.items():
        close(golden, grad, golden["gradients"][key])


def tokens(golden: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Tokens without padding, and the sequence of each."""
    mask = golden["inputs"]["attention_mask"].bool()
    return golden["inputs"]["hidden"][mask], mask.nonzero()[:, 0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", names("glot"))
def test_golden_graphs_and_attention(name: str, dtype: torch.dtype) -> None:
    golden = load("glot", name, dtype)
    if "edges_per_sequence" not in golden["outputs"]:
        pytest.skip("this golden holds neither edges nor scores")
    x, index = tokens(golden)
    found = from_golden(golden).run(x, index)
    edges = token_graph(x, index, golden["config"]["tau"])
    assert found.edge_index.numel() == 0 or torch.equal(found.edge_index, edges)
    start = 0
    for i, part in enumerate(golden["outputs"]["edges_per_sequence"]):
        mine = index == i
        inside = edges[:, mine[edges[1]]] - start
        wanted = sorted((int(t), int(s)) for s, t in torch.as_tensor(part))
        assert [(int(t), int(s)) for s, t in inside.t()] == wanted
        for key, values in (("score", found.score), ("weight", found.weight)):
            reference = golden["outputs"][f"token_{key}s"][i]
            close(golden, values[mine], reference[: int(mine.sum())])
        start += int(mine.sum())
