"""Mesh networks against stored values, and the rules that they document."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch

from pyg_pool.mesh import Mesh, PrimalDualData, primal_dual_graph
from pyg_pool.models import MeshClassifier, MeshSegmenter, MeshUNet
from tests.golden_files import FOLDER

NAMES = sorted(path.stem for path in (FOLDER / "mesh").glob("model_*.npz"))


def stored(name: str) -> dict[str, Any]:
    """One stored model with its meshes and values."""
    with np.load(FOLDER / "mesh" / f"{name}.npz", allow_pickle=False) as file:
        values = {key: file[key] for key in file.files}
    return {**values, "meta": json.loads(str(values["meta"]))}


def meshes_of(golden: dict[str, Any]) -> Batch:
    """The meshes of a golden as one batch, standardised."""
    data = []
    while f"mesh{len(data)}.faces" in golden:
        name = f"mesh{len(data)}"
        mesh = Mesh(golden[f"{name}.vertices"], golden[f"{name}.faces"])
        graph = primal_dual_graph(mesh, golden["meta"]["config"], dtype=torch.double)
        for part, word in (("x", "primal"), ("x_dual", "dual")):
            mean, std = (
                torch.from_numpy(golden[f"stat.{word}_{k}"]) for k in ("mean", "std")
            )
            graph[part] = (graph[part] - mean) / std
        data.append(graph)
    return Batch.from_data_list(data)


def model_of(golden: dict[str, Any]) -> torch.nn.Module:
    """The model of a golden, with its first weights."""
    options, meta = golden["meta"]["options"], golden["meta"]
    common = {
        "channels": options["conv_primal_out_res"],
        "channels_dual": options["conv_dual_out_res"],
        "fraction_to_keep": options["fractions_primal_edges_to_keep"],
        "num_skips": options["num_res_blocks"],
        "heads": options.get("heads", options.get("heads_encoder")),
        "norm_groups": options.get("num_groups_norm_layer", 16),
        "config": meta["config"],
        "norm_scope": "batch",
    }
    sizes = tuple(
        options[key]
        for key in ("in_channels_primal", "in_channels_dual", "num_classes")
    )
    model: torch.nn.Module
    if "num_output_units_fc" in options:
        model = MeshClassifier(
            *sizes, head_channels=options["num_output_units_fc"], **common
        )
    elif "heads_decoder" in options:
        is_res = options["use_dual_primal_res_down_conv_blocks"]
        model = MeshUNet(*sizes, block="res" if is_res else "down", **common)
    else:
        model = MeshSegmenter(*sizes, block="down", **common)
    weights = {
        key.removeprefix("w."): torch.from_numpy(value)
        for key, value in golden.items()
        if key.startswith("w.")
    }
    model.double().load_state_dict(weights)
    count = sum(weight.numel() for weight in model.parameters())
    assert count == meta["num_parameters"]
    return model


def near(got: Tensor, expected: Any) -> None:
    expected = torch.as_tensor(expected, dtype=torch.double)
    torch.testing.assert_close(got.detach(), expected, atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_golden(name: str, backend: str) -> None:
    golden = stored(name)
    data, target = meshes_of(golden), torch.from_numpy(golden["target"])
    for mode in ("train", "eval"):
        model = model_of(golden).train(mode == "train")
        result = model.run(data)
        near(result.out, golden[f"out.{mode}.logits"])
        loss = torch.nn.functional.cross_entropy(result.out, target)
        near(loss, golden[f"out.{mode}.loss"])
        first = torch.from_numpy(golden[f"out.{mode}.cluster0"])
        assert torch.equal(result.face_clusters[0], first)
        counts = [pool.x.size(0) for pool in result.pools]
        assert counts == [int(golden[f"out.{mode}.cluster_count{k}"]) for k in (0, 1)]
        if mode == "train":
            loss.backward()
            grads = {key for key in golden if key.startswith("out.grad.")}
            for key, weight in model.named_parameters():
                if f"out.grad.{key}" in grads:
                    # The last faces of a classifier have no way to its scores.
                    unused = torch.zeros_like(weight)
                    grad = unused if weight.grad is None else weight.grad
                    near(grad, golden[f"out.grad.{key}"])
                    grads.remove(f"out.grad.{key}")
            assert grads == set()


def test_names_are_there() -> None:
    assert len(NAMES) == 4
    assert PrimalDualData is not None
