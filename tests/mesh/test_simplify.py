"""Simplification, and the way back to the dense faces."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("igl")

from pyg_pool.errors import PygPoolWarning
from pyg_pool.mesh import (
    Mesh,
    clean_mesh,
    closest_faces,
    generate_shape,
    simplify_mesh,
)
from pyg_pool.mesh.simplify import _merged


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


def test_surfaces_that_meet_in_a_vertex_are_simplified() -> None:
    # Two vases that share one vertex, each with a hole there.
    vase = generate_shape("vase")
    corner = int(vase.faces[0, 0])
    open_one = vase.faces[1:]
    second = open_one + vase.num_vertices
    second[second == corner + vase.num_vertices] = corner
    shift = np.add(vase.vertices, [10.0, 0.0, 0.0])
    both = clean_mesh(
        Mesh(np.concatenate([vase.vertices, shift]), np.concatenate([open_one, second]))
    )
    assert both.num_faces == 2 * len(open_one)
    # As it is, libigl does not take it.
    assert _merged(both, 200).num_faces == 0
    small = simplify_mesh(both, 200)
    assert 50 < small.num_faces <= 200
    assert small.vertices.max(0)[0] > 5.0


def test_surface_that_cannot_be_simplified_is_kept() -> None:
    angle = np.arange(30) * 2 * np.pi / 30
    rim = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    points = np.concatenate([[[0, 0, -1], [0, 0, 1]], rim])
    book = Mesh(points, [[0, 1, 2 + i] for i in range(30)])
    with pytest.warns(PygPoolWarning, match="libigl merges no edge"):
        assert simplify_mesh(book, 5) is book


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
