"""Simplification, and the way back to the dense faces."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("igl")

from pyg_pool.mesh import (
    Mesh,
    clean_mesh,
    closest_faces,
    generate_shape,
    simplify_mesh,
)


def test_fewer_faces_and_still_clean() -> None:
    mesh = generate_shape("pot")
    small = simplify_mesh(mesh, 200)
    assert small.num_faces <= 200
    assert small.labels is None
    cleaned = clean_mesh(small, nonmanifold="error")
    assert cleaned.num_faces == small.num_faces
    low, high = mesh.vertices.min(0), mesh.vertices.max(0)
    assert np.abs(small.vertices.min(0) - low).max() < 0.2
    assert np.abs(small.vertices.max(0) - high).max() < 0.2


def test_small_meshes_stay() -> None:
    mesh = generate_shape("vase")
    assert simplify_mesh(mesh, mesh.num_faces) is mesh
    with pytest.raises(ValueError, match="num_faces=0"):
        simplify_mesh(mesh, 0)


def test_closest_face_of_a_centre_is_its_face() -> None:
    mesh = generate_shape("box")
    centres = mesh.vertices[mesh.faces].mean(1)
    assert (closest_faces(mesh, centres) == np.arange(mesh.num_faces)).all()
    with pytest.raises(ValueError, match="at least one face"):
        closest_faces(Mesh(np.zeros((0, 3)), np.zeros((0, 3), int)), centres)
