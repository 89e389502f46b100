"""A data set of any mesh files."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyg_pool.mesh import (
    GraphRecipe,
    MeshAugmentation,
    MeshDataset,
    MeshSample,
    generate_shape,
    write_mesh,
)


def test_versions_follow_the_meshes(tmp_path: Path) -> None:
    samples = []
    for i, kind in enumerate(("cup", "box")):
        write_mesh(tmp_path / f"{kind}.obj", generate_shape(kind))
        samples.append(MeshSample(tmp_path / f"{kind}.obj", target=i))
    recipe = GraphRecipe(augmentation=MeshAugmentation())
    data = MeshDataset(samples, ["cup", "box"], recipe=recipe, versions=3)
    assert repr(data) == "MeshDataset(2 meshes x 3, 2 classes)"
    assert [graph.y.item() for graph in data] == [0, 1] * 3
    assert data.num_classes == 2
    assert data.mesh(5).num_faces == data[5].num_nodes == data[1].num_nodes
    with pytest.raises(ValueError, match="versions=2 without augmentation"):
        MeshDataset(samples, ["cup", "box"], versions=2)
