"""Mesh networks against stored values, and the rules that they document."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch

from pyg_pool.mesh import Mesh, PrimalDualData, generate_shape, primal_dual_graph
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


def shapes(*kinds: str) -> list[PrimalDualData]:
    return [primal_dual_graph(generate_shape(kind)) for kind in kinds]


@pytest.mark.parametrize("kind", [MeshClassifier, MeshSegmenter, MeshUNet])
def test_batch_is_its_members_one_by_one(kind: type) -> None:
    model = kind(1, 7, 3, channels=(16, 16)).double().eval()
    data = [
        primal_dual_graph(generate_shape(kind), dtype=torch.double)
        for kind in ("cup", "vase", "box")
    ]
    both = model(Batch.from_data_list(data))
    torch.testing.assert_close(both, torch.cat([model(each) for each in data]))


@pytest.mark.parametrize("kind", [MeshClassifier, MeshSegmenter, MeshUNet])
def test_numbering_of_the_faces_does_not_matter(kind: type) -> None:
    mesh = generate_shape("vase")
    order = np.random.default_rng(0).permutation(mesh.num_faces)
    model = kind(1, 7, 3, channels=(16, 16)).double().eval()
    plain, mixed = (
        model(primal_dual_graph(each, dtype=torch.double))
        for each in (mesh, Mesh(mesh.vertices, mesh.faces[order]))
    )
    rows = plain if kind is MeshClassifier else plain[torch.from_numpy(order)]
    torch.testing.assert_close(mixed, rows)


def test_mesh_without_edges_has_a_row() -> None:
    single = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    nothing = Mesh(np.zeros((0, 3)), np.zeros((0, 3), dtype=int))
    box = generate_shape("box").with_labels(None)
    parts = [primal_dual_graph(m) for m in (box, single, nothing)]
    model = MeshClassifier(1, 7, 3, channels=(16, 16)).eval()
    out = model(Batch.from_data_list(parts))
    zeros = model.fc2(model.fc1(torch.zeros(1, 48)).relu())
    torch.testing.assert_close(out[1:], zeros.expand(2, -1))
    torch.testing.assert_close(model(parts[1]), zeros)


def test_readouts() -> None:
    data, outs = shapes("vase")[0], []
    for word in ("mean", "sum", "max"):
        torch.manual_seed(0)
        outs.append(MeshClassifier(1, 7, 3, channels=(16,), readout=word).eval()(data))
    assert not torch.equal(outs[0], outs[1])
    assert not torch.equal(outs[0], outs[2])
    with pytest.raises(ValueError, match="readout='min'"):
        MeshClassifier(1, 7, 3, readout="min")  # type: ignore[arg-type]


def test_first_weights_are_the_authors() -> None:
    torch.manual_seed(0)
    model = MeshClassifier(1, 7, 30)
    assert float(model.fc1.weight.detach().std()) == pytest.approx(0.02, rel=0.05)
    assert float(model.fc1.bias.detach().abs().sum()) == 0.0
    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm1d)]
    assert float(norms[0].weight.detach().mean()) == pytest.approx(1.0, abs=0.01)
    assert float(norms[0].weight.detach().std()) == pytest.approx(0.02, rel=0.3)


def test_segmenter_gives_one_label_a_cluster() -> None:
    data = shapes("pot")[0]
    model = MeshSegmenter(1, 7, 4, channels=(16, 16), block="res").eval()
    result = model.run(data)
    clusters = result.face_clusters[-1]
    for cluster in range(0, int(clusters.max()) + 1, 7):
        rows = result.out[clusters == cluster]
        assert bool((rows == rows[0]).all())
    assert repr(model).startswith("MeshSegmenter(1, 7, 4, channels=(16, 16)")
