"""The local counting network against values of the authors' code."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from pyg_pool.models import LocalKLGNN
from pyg_pool.relational import local_stars
from tests.golden_files import FOLDER

CASES = json.loads((FOLDER / "klwl" / "reference.json").read_text())["cases"]
NAMES = {
    "idemb": "ids",
    "mlps": "convs",
    "setmlp1.0": "order_out",
    "setmlp2.0": "copy_out",
    "outmlp": "out",
}


def renamed(name: str) -> str:
    for old, new in NAMES.items():
        if name.startswith(f"{old}."):
            name = new + name.removeprefix(old)
            break
    first, number, *rest = [*name.split("."), ""]
    if first == "convs":
        return ".".join([first, number, "mlp", *rest]).rstrip(".")
    return name


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case["name"].startswith("local")],
    ids=lambda case: case["name"],
)
def test_golden(case: dict[str, Any], dtype: torch.dtype) -> None:
    given = case["inputs"]
    model = LocalKLGNN(given["hidden"], 1, l=given["k"], num_layers=given["layers"])
    stored = {
        renamed(name): torch.tensor(value, dtype=torch.float64)
        for name, value in case["weights"].items()
    }
    model.to(dtype).load_state_dict(stored)
    pairs = torch.tensor(given["undirected_edges"]).t()
    edges = torch.cat([pairs, pairs.flip(0)], dim=1)
    batch = torch.zeros(given["num_nodes"], dtype=torch.long)
    copies = local_stars(edges, batch, given["k"], 1)
    assert copies.tuples.index.tolist() == given["tuples"]
    limit = case["tolerance"]["float64" if dtype == torch.float64 else "float32"]
    want = torch.tensor(case["outputs"]["out"], dtype=dtype)
    out = model(edges, batch=batch).view(-1).detach()
    torch.testing.assert_close(out, want, atol=limit, rtol=limit)


def test_batch_equals_singles() -> None:
    model = LocalKLGNN(4, 2, l=3)
    one = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    both = torch.cat([one, one + 4], dim=1)
    batch = torch.tensor([0] * 4 + [1] * 3)
    out = model(both, batch=batch, batch_size=2)
    torch.testing.assert_close(out[:1], model(one, num_nodes=4))
    torch.testing.assert_close(out[1:], model(one, num_nodes=3))
