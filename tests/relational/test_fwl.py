"""2-FWL networks against stored values."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from pyg_pool.relational import FWLNet
from pyg_pool.relational.fwl import multiply_pairs
from pyg_pool.relational.pairs import find_pairs_and_joins
from pyg_pool.relational.tuples import lay_ground
from tests.golden_files import FOLDER
from tests.relational.families import gather

CASES = json.loads((FOLDER / "klwl" / "fwl.json").read_text())["cases"]


def weights(stored: dict[str, Any], layers: int) -> dict[str, torch.Tensor]:
    """The stored weights under our names."""
    table = {"W0": "input.weight", "b0": "input.bias"}
    table |= {"Wd": "diagonal.weight", "Wo": "other.weight"}
    for i in range(layers):
        for letter, name in (("a", "left"), ("b", "right"), ("c", "join")):
            table[f"W{letter}{i}"] = f"convs.{i}.{name}.weight"
            table[f"b{letter}{i}"] = f"convs.{i}.{name}.bias"
    tensors = {name: torch.tensor(value) for name, value in stored.items()}
    return {
        new: tensors[old].t() if tensors[old].dim() == 2 else tensors[old]
        for old, new in table.items()
    }


def limits(case: dict[str, Any], dtype: torch.dtype) -> dict[str, float]:
    size = case["tolerance"].get("float32", 1e-4)
    size = case["tolerance"]["float64"] if dtype == torch.float64 else size
    is_relative = case["tolerance"].get("relative", False)
    return {"rtol": size, "atol": 0.0 if is_relative else size}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_golden(case: dict[str, Any], dtype: torch.dtype) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        stored = weights(case["weights"], case["inputs"]["config"]["layers"])
    finally:
        torch.set_default_dtype(torch.float32)
    config, graphs = case["inputs"]["config"], case["inputs"]["graphs"]
    inputs = gather(graphs, dtype)
    model = FWLNet(
        inputs["x"].size(1),
        len(case["weights"]["b0"]),
        len(case["weights"]["Wd"][0]),
        num_layers=config["layers"],
        l=config["l"],
        domain=config["domain"],
        max_distance=config["pair_max_distance"],
        tuple_pool=config["tuple_pool"],
    ).to(dtype)
    model.load_state_dict(stored)
    out = model(inputs.pop("x"), **inputs, batch_size=len(graphs))
    want = torch.tensor(case["outputs"]["out"], dtype=torch.float64).to(dtype)
    torch.testing.assert_close(out.detach(), want, **limits(case, dtype))
    for number, (pairs, joins) in enumerate(
        zip(
            case["outputs"].get("pairs") or [],
            case["outputs"].get("join_triples") or [],
            strict=True,
        )
    ):
        one = gather(graphs[number : number + 1], dtype)
        ground = lay_ground(one["edge_index"], one["batch"])
        found = find_pairs_and_joins(ground, config["pair_max_distance"])
        assert found.pair.t().tolist() == pairs
        assert found.joins is not None
        assert found.joins.t().tolist() == joins


def test_dense_and_joined_products_agree() -> None:
    ground = lay_ground(
        torch.tensor([[0, 1, 3], [1, 2, 4]]), torch.tensor([0, 0, 0, 1, 1, 2])
    )
    dense = find_pairs_and_joins(ground, None)
    joined = find_pairs_and_joins(ground, None, joined=True)
    size = dense.batch.numel()
    a, b = (torch.randn(size, 3, dtype=torch.float64) for _ in range(2))
    torch.testing.assert_close(
        multiply_pairs(a, b, dense), multiply_pairs(a, b, joined)
    )


def test_too_large_is_refused() -> None:
    model = FWLNet(1, 4, 1, l=1, memory_limit=1000)
    edges = torch.tensor([[0, 1], [1, 2]])
    with pytest.raises(ValueError, match=r"P = 27 pairs.*domain.*chunk_size"):
        model(torch.ones(3, 1), edges)


def test_unknown_domains_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="did you mean 'star'"):
        FWLNet(1, 4, 1, l=1, domain="stars")


def test_odd_graphs() -> None:
    batch = torch.tensor([0, 2, 2])
    edges = torch.tensor([[1], [2]])
    for labels in (0, 2):
        for distance in (None, 1):
            model = FWLNet(1, 4, 2, l=labels, max_distance=distance)
            out = model(torch.ones(3, 1), edges, batch=batch, batch_size=4)
            assert out[[1, 3]].eq(0).all()
            assert out.isfinite().all()
            assert out[0].abs().sum() > 0
