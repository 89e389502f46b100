"""Small meshes for the tests of mesh training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from pyg_pool.mesh import (
    PART_NAMES,
    MeshAugmentation,
    generate_shape,
    primal_dual_graph,
    simplify_mesh,
    write_labels,
    write_mesh,
)
from pyg_pool.train import MeshSet

SMALL: dict[str, Any] = {
    "data": "generated",
    "channels": (8,),
    "heads": 1,
    "norm_groups": 2,
    "epochs": 4,
    "batch_size": 2,
    "lr": 0.01,
    "dropout": 0.2,
    "device": "cpu",
    "threads": 1,
}
PARTS = {**SMALL, "task": "segmentation", "channels": (8, 8)}


def vessel(kind: str, seed: int) -> Any:
    return generate_shape(kind, generator=torch.Generator().manual_seed(seed))


def make_parts() -> MeshSet:
    """Vessels with a label for each face."""
    graphs = [primal_dual_graph(vessel("vase", seed)) for seed in range(6)]
    return MeshSet("vases", list(PART_NAMES), graphs[:4], graphs[4:])


def make_classes() -> MeshSet:
    """Vessels of two kinds, as coarse meshes in two versions."""
    chance = torch.Generator().manual_seed(0)
    rounds: list[list[Any]] = [[], []]
    for seed in range(4):
        for label, kind in enumerate(("vase", "box")):
            mesh = simplify_mesh(vessel(kind, seed), 100)
            changed = MeshAugmentation(scale=0.02)(mesh, chance)
            for graphs, each in zip(rounds, (mesh, changed), strict=True):
                graph = primal_dual_graph(each)
                graph.y = torch.tensor([label])
                graphs.append(graph)
    (plain, other), names = rounds, ["vase", "box"]
    return MeshSet("vessels", names, plain[:6], plain[6:], augmented=[other[:6]])


def write_parts(root: Path, category: str, beside: bool = True) -> None:
    """A folder of labelled meshes."""
    for part, seeds in (("train", (0, 1)), ("test", (2,))):
        folder = root / category / part
        folder.mkdir(parents=True)
        labels = folder if beside else root / category / "seg"
        labels.mkdir(exist_ok=True)
        for seed in seeds:
            mesh = vessel("vase", seed)
            write_mesh(folder / f"{seed}.off", mesh)
            write_labels(labels / f"{seed}.seg", mesh.labels)
