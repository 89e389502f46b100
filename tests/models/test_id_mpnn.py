"""The two-stream network against values of the authors' code."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from pyg_pool.models import IDMPNN
from tests.golden_files import FOLDER

CASES = json.loads((FOLDER / "klwl" / "reference.json").read_text())["cases"]
NAMES = {
    "graph_mlps": "features.{}.mlp",
    "id_mlps": "labels.{}.mlp",
    "global_mlps": "joint.{}.mlp",
    "setmlp3": "rest.{}",
}
SINGLE = {
    "idemb.weight": "ids.weight",
    "setmlp1.0": "label_out",
    "setmlp2.0": "copy_out",
    "outmlp.0": "out",
}


def weights(stored: dict[str, Any]) -> dict[str, Tensor]:
    """The authors' weights under our names."""
    out = {}
    for name, value in stored.items():
        tensor = torch.tensor(value, dtype=torch.float64)
        first, *rest = name.split(".")
        if first in NAMES:
            key = ".".join([NAMES[first].format(rest[0]), *rest[1:]])
        elif first == "setmlp4":
            key = ".".join(["mix", *rest])
        elif first in ("inmlp_mod", "edge_emb"):
            key = {"inmlp_mod": "node.weight", "edge_emb": "edge.weight"}[first]
            tensor = tensor.t()
        elif name in SINGLE:
            key = SINGLE[name]
        else:
            key = f"{SINGLE['.'.join([first, rest[0]])]}.{rest[1]}"
        out[key] = tensor
    return out


def inputs(graphs: list[dict[str, Any]], dtype: torch.dtype) -> dict[str, Tensor]:
    start, edges, kinds, atoms, batch = 0, [], [], [], []
    for number, each in enumerate(graphs):
        for a, b, kind in each["undirected_edges_with_type"]:
            edges += [[a + start, b + start], [b + start, a + start]]
            kinds += [kind, kind]
        atoms += each["atom_type"]
        batch += [number] * each["num_nodes"]
        start += each["num_nodes"]
    return {
        "x": one_hot(torch.tensor(atoms), 6).to(dtype),
        "edge_index": torch.tensor(edges).t(),
        "edge_attr": one_hot(torch.tensor(kinds), 4).to(dtype),
        "batch": torch.tensor(batch),
    }


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case["name"].startswith("parallel")],
    ids=lambda case: case["name"],
)
def test_golden(case: dict[str, Any], dtype: torch.dtype) -> None:
    config = case["inputs"]["config"]
    model = IDMPNN(
        6,
        config["hidden"],
        2,
        l=config["k"],
        edge_channels=4,
        num_layers=config["num_layer"],
        num_layers_id=config["num_layer_id"],
        num_layers_global=config["num_layer_global"],
        num_layers_regression=config["num_layer_regression"],
        combine=config["cat"],
        tuple_pool={"add": "sum"}.get(config["global_pool"], config["global_pool"]),
    ).to(dtype)
    model.load_state_dict(weights(case["weights"]))
    data = inputs(case["inputs"]["graphs"], dtype)
    copies = model.lister.make_copies(data["edge_index"], data["batch"], 2)
    stored = [row for each in case["inputs"]["graphs"] for row in each["subsets"]]
    first = torch.tensor([0, case["inputs"]["graphs"][0]["num_nodes"]])
    local = copies.tuples.index - first[copies.tuples.batch].view(-1, 1)
    assert local.tolist() == stored
    out = model(data.pop("x"), **data, batch_size=2)
    limit = case["tolerance"]["float64" if dtype == torch.float64 else "float32"]
    want = torch.tensor(case["outputs"]["out"], dtype=dtype)
    torch.testing.assert_close(out.detach(), want, atol=limit, rtol=limit)


def test_gradients_reach_all_weights_and_permutations_do_not_matter() -> None:
    model = IDMPNN(3, 6, 2, l=2, num_layers=2, num_layers_id=2).double()
    x = torch.randn(5, 3, dtype=torch.float64)
    edges = torch.tensor([[0, 1, 1, 2, 2, 0, 3, 2], [1, 0, 2, 1, 0, 2, 2, 3]])
    out = model(x, edges)
    out.sum().backward()
    missing = [n for n, p in model.named_parameters() if p.grad is None]
    assert not missing
    order = torch.randperm(5)
    place = torch.argsort(order)
    torch.testing.assert_close(model(x[order], place[edges]), out)


def test_wrong_combination_is_refused() -> None:
    with pytest.raises(ValueError, match="did you mean 'cat'"):
        IDMPNN(3, 6, 2, combine="cats")
