"""Meshes as arrays: checks, labels, measures."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pyg_pool.mesh import Mesh
from pyg_pool.mesh.geometry import (
    MAX_RATIO,
    boundary_edges,
    capped_ratio,
    face_geometry,
)

SQUARE = [[0, 0, 0], [2, 0, 0], [2, 2, 0], [0, 2, 0]]
HALVES = [[0, 1, 2], [0, 2, 3]]


def test_takes_tensors_and_lists() -> None:
    mesh = Mesh(torch.tensor(SQUARE, dtype=torch.bfloat16), torch.tensor(HALVES))
    assert mesh.vertices.dtype == np.float64
    assert mesh.faces.dtype == np.int64
    assert repr(mesh) == "Mesh(num_vertices=4, num_faces=2)"
    assert repr(Mesh(SQUARE, HALVES, [0, 3])).endswith("num_labels=2)")


def test_measures_of_a_square() -> None:
    geometry = face_geometry(Mesh(SQUARE, HALVES))
    assert geometry.areas.tolist() == [2.0, 2.0]
    assert geometry.normals.tolist() == [[0, 0, 1]] * 2
    assert geometry.lengths[0].tolist() == [2.0, 2.0, 8**0.5]


def test_face_without_area_has_no_normal() -> None:
    geometry = face_geometry(Mesh([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 2]]))
    assert geometry.areas.tolist() == [0.0]
    assert geometry.normals.tolist() == [[0.0, 0.0, 0.0]]


def test_ratios_stay_finite() -> None:
    top, bottom = np.array([1.0, 0.0, 3.0]), np.array([0.0, 0.0, 2.0])
    assert capped_ratio(top, bottom).tolist() == [MAX_RATIO, 0.0, 1.5]


def test_boundary_of_a_square() -> None:
    mesh = Mesh(SQUARE, HALVES)
    assert boundary_edges(mesh).tolist() == [[0, 1], [0, 3], [1, 2], [2, 3]]


@pytest.mark.parametrize(
    ("vertices", "faces", "labels", "message"),
    [
        (SQUARE, [[0, 1, 2, 3]], None, r"faces of shape \[1, 4\].*fan_triangles"),
        (SQUARE, [[0, 1, 2, 3], [0, 1, 2]], None, r"rows of \[3, 4\] numbers"),
        ([[0, 0], [1, 0]], [], None, r"vertices of shape \[2, 2\].*third coordinate"),
        (SQUARE, [[0, 1, 4]], None, r"ids 0 to 4 for 4 vertices"),
        (SQUARE, [[0, 1, -1]], None, r"ids -1 to 1 for 4 vertices"),
        (SQUARE, [[0.5, 1, 2]], None, r"dtype float64, expected whole numbers"),
        (SQUARE, HALVES, [1], r"labels of shape \[1\] for 2 faces"),
        (SQUARE, HALVES, [0.5, 1.0], r"labels of dtype float64"),
    ],
)
def test_what_does_not_fit_is_refused(
    vertices: list, faces: list, labels: list | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Mesh(vertices, faces, labels)


def test_labels_of_the_input_follow_the_faces() -> None:
    mesh = Mesh(SQUARE, HALVES, face_index=[4, 1])
    assert mesh.with_labels([9, 8, 7, 6, 5, 4]).labels.tolist() == [5, 8]
    assert mesh.with_labels(None).labels is None
    assert Mesh(SQUARE, HALVES).with_labels([1, 2]).labels.tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"shape \[3\] for an input of at least 5"):
        mesh.with_labels([1, 2, 3])
