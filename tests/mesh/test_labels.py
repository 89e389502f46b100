"""Labels of faces, edges and vertices, in files and from one to another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from pyg_pool.mesh import (
    Mesh,
    edge_labels_to_faces,
    face_labels_to_edges,
    mesh_edges,
    read_labels,
    vertex_labels_to_faces,
    write_labels,
)
from tests.golden_files import load, names

# A strip of five triangles over seven vertices, eleven edges.
STRIP = Mesh(
    [[i / 2, i % 2, 0] for i in range(7)],
    [[0, 1, 2], [2, 1, 3], [2, 3, 4], [4, 3, 5], [4, 5, 6]],
)


@pytest.mark.parametrize("name", names("mesh", "face_to_edge_labels"))
def test_golden_face_to_edge(name: str) -> None:
    golden = load("mesh", name)
    inputs, outputs = golden["inputs"], golden["outputs"]
    mesh = Mesh(inputs["vertices"], inputs["faces"], inputs["face_labels"])
    edges = mesh_edges(mesh, "sorted")
    soft = face_labels_to_edges(mesh, num_classes=inputs["num_classes"], order="sorted")
    assert edges.ends.tolist() == outputs["edges"].tolist()
    limits = {"atol": golden["tolerance"], "rtol": 0}
    np.testing.assert_allclose(soft, outputs["soft_labels"], **limits)
    np.testing.assert_allclose(edges.areas, outputs["edge_areas"], **limits)


def test_edges_appear_as_a_walk_over_the_sides_meets_them() -> None:
    seen: list[tuple[int, int]] = []
    for face in STRIP.faces.tolist():
        for a, b in zip(face, face[1:] + face[:1], strict=True):
            if (edge := (min(a, b), max(a, b))) not in seen:
                seen.append(edge)
    edges = mesh_edges(STRIP)
    assert [tuple(row) for row in edges.ends.tolist()] == seen
    assert edges.of_side[1].tolist() == [1, 3, 4]
    assert edges.areas.sum() == pytest.approx(1)


@pytest.mark.parametrize("order", ["appearance", "sorted"])
def test_edge_labels_of_uniform_parts_come_back(order: str) -> None:
    labels = [0, 0, 2, 2, 2]
    soft = face_labels_to_edges(STRIP, labels, order=order)
    assert soft.shape == (11, 3)
    assert soft.sum(axis=1).tolist() == [1.0] * 11
    back = edge_labels_to_faces(STRIP, soft.argmax(axis=1), order=order)
    assert back.tolist() == labels


def test_three_different_labels_follow_the_neighbours() -> None:
    edges = mesh_edges(STRIP)
    labels = np.zeros(11, dtype=int)
    labels[edges.of_side[2]] = [3, 1, 2]  # the middle face; side 1 belongs to it alone
    labels[edges.of_side[1][:2]] = 2  # the face before it turns to 2
    assert edge_labels_to_faces(STRIP, labels).tolist() == [0, 2, 2, 0, 0]
    alone = Mesh(STRIP.vertices, STRIP.faces[:1])
    assert edge_labels_to_faces(alone, [5, 4, 3]).tolist() == [5]


def test_vertices_vote_and_the_lowest_wins_a_tie() -> None:
    labels = torch.tensor([4, 1, 4, 0, 2, 2, 2])
    assert vertex_labels_to_faces(STRIP, labels).tolist() == [4, 0, 0, 2, 2]


@pytest.mark.parametrize("ending", ["seg", "eseg", "labels", "npy"])
def test_files_come_back(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    write_labels(path, [3, 0, 1, 1, 2])
    assert read_labels(path, STRIP).tolist() == [3, 0, 1, 1, 2]
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_what_is_labelled_shows_in_the_number(tmp_path: Path) -> None:
    path = tmp_path / "a.eseg"
    soft = face_labels_to_edges(STRIP, [0, 0, 1, 1, 1])
    write_labels(path, soft.argmax(axis=1))
    assert read_labels(path, STRIP).tolist() == [0, 0, 1, 1, 1]
    write_labels(path, [0, 0, 0, 1, 1, 1, 1])
    assert read_labels(path, STRIP, kind="vertex").tolist() == [0, 0, 1, 1, 1]
    path.write_text("1.0\n2.0\n1.0\n1.0\n1.0\n")
    assert read_labels(path, STRIP).tolist() == [1, 2, 1, 1, 1]


def test_labels_of_polygons_go_to_their_triangles(tmp_path: Path) -> None:
    cut = Mesh(STRIP.vertices, STRIP.faces, face_index=[0, 0, 1, 1, 2])
    path = tmp_path / "a.seg"
    write_labels(path, [5, 6, 7])
    assert read_labels(path, cut).tolist() == [5, 5, 6, 6, 7]


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("1\n2\n", "auto", r"2 labels .* 5 faces, 11 edges, 7 vertexs|7 vertices"),
        ("1\n2\n3\n4\n5\n", "edge", r"5 labels .* expected one per edge"),
        ("head\ntorso\n", "auto", r"expected one whole number a line"),
        ("1\n2\n3\n4\n0.5\n", "auto", r"dtype float64, expected a vector of whole"),
    ],
)
def test_labels_that_do_not_fit_are_refused(
    tmp_path: Path, text: str, kind: str, message: str
) -> None:
    path = tmp_path / "a.seg"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_labels(path, STRIP, kind=kind)


def test_missing_and_wrong_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="expected an existing label file"):
        read_labels(tmp_path / "b.seg", STRIP)
    with pytest.raises(ValueError, match="mesh without labels"):
        face_labels_to_edges(STRIP)
    with pytest.raises(ValueError, match="labels 0 to 2 for 2 classes"):
        face_labels_to_edges(STRIP, [0, 1, 2, 0, 0], num_classes=2)
    with pytest.raises(ValueError, match="got 3 labels for 7 vertices"):
        vertex_labels_to_faces(STRIP, [0, 1, 2])
    np.save(tmp_path / "c.npy", np.array(["a"], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="expected one whole number a line"):
        read_labels(tmp_path / "c.npy", STRIP)
