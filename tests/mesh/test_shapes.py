"""Generated vessels: closed, clean, labelled and repeatable."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pyg_pool.mesh import (
    PART_NAMES,
    SHAPE_KINDS,
    Mesh,
    clean_mesh,
    generate_shape,
    generate_shapes,
    mesh_edges,
)
from pyg_pool.mesh.geometry import boundary_edges

PARTS = {
    "cup": {"body", "foot", "handle"},
    "pot": {"body", "lid", "handle"},
    "vase": {"body", "foot"},
    "box": {"body", "lid"},
}


def shape(kind: str, seed: int) -> Mesh:
    return generate_shape(kind, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", SHAPE_KINDS)
def test_vessels_are_closed_and_have_their_parts(kind: str, seed: int) -> None:
    mesh = shape(kind, seed)
    cleaned = clean_mesh(mesh, nonmanifold="error", fix_winding=False)
    assert cleaned.faces.tolist() == mesh.faces.tolist()
    assert boundary_edges(mesh).size == 0
    handles = {"cup": 1, "pot": 2}.get(kind, 0)
    edges = len(mesh_edges(mesh).ends)
    assert mesh.num_vertices - edges + mesh.num_faces == 2 - 2 * handles
    assert {PART_NAMES[i] for i in np.unique(mesh.labels)} == PARTS[kind]
    assert 350 < mesh.num_faces < 700
    corners = mesh.vertices[mesh.faces]
    volume = (corners[:, 0] * np.cross(corners[:, 1], corners[:, 2])).sum() / 6
    assert volume > 0


def test_seed_repeats_the_shape() -> None:
    assert np.array_equal(shape("cup", 3).vertices, shape("cup", 3).vertices)
    assert not np.array_equal(shape("cup", 3).vertices, shape("cup", 4).vertices)
    several = generate_shapes(6, generator=torch.Generator().manual_seed(0))
    assert [len(np.unique(mesh.labels)) for mesh in several] == [3, 3, 2, 2, 3, 3]
    with pytest.raises(ValueError, match=r"kind='mug', expected one of"):
        generate_shape("mug")
