"""Labels for the faces of a file: dense, broken and ordinary meshes."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lightning")

from pyg_pool.errors import PygPoolWarning
from pyg_pool.mesh import Mesh, write_mesh
from pyg_pool.train import MeshConfig, load_mesh_model, predict_mesh, train_meshes
from tests.train.mesh_runs import PARTS, make_parts, vessel


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory):
    out = tmp_path_factory.mktemp("parts")
    config = MeshConfig.from_dict({**PARTS, "epochs": 6})
    train_meshes(config, out, sets=[make_parts()])
    return load_mesh_model(out / "seed0/last.ckpt")


def refined(mesh: Mesh) -> Mesh:
    """Every face cut into four, in the order of the faces."""
    points, faces, known = mesh.vertices.tolist(), [], {}
    for a, b, c in mesh.faces.tolist():
        middles = []
        for ends in ((a, b), (b, c), (c, a)):
            key = (min(ends), max(ends))
            if key not in known:
                known[key] = len(points)
                points.append((mesh.vertices[list(ends)].mean(0)).tolist())
            middles.append(known[key])
        ab, bc, ca = middles
        faces += [[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]
    return Mesh(points, faces, np.repeat(mesh.labels, 4))


def test_mesh_as_it_is(model, tmp_path: Path) -> None:
    mesh = vessel("vase", 9)
    write_mesh(tmp_path / "a.off", mesh)
    found = predict_mesh(model, tmp_path / "a.off")
    assert found.note == ""
    assert found.labels.shape == (mesh.num_faces,)
    assert (found.labels == found.scores.argmax(1)).all()
    assert sum(found.counts.values()) == mesh.num_faces
    assert [level.shape for level in found.clusters] == [(mesh.num_faces,)]


def test_dense_mesh_is_simplified_and_labels_come_back(model) -> None:
    mesh = vessel("vase", 1)
    dense = refined(refined(mesh))
    found = predict_mesh(model, dense)
    assert "simplified from" in found.note
    assert found.mesh.num_faces <= model.num_faces
    assert found.labels.shape == (dense.num_faces,)
    coarse = predict_mesh(model, mesh)
    same = (found.labels == np.repeat(coarse.labels, 16)).mean()
    assert same > 0.75
    kept = predict_mesh(model, dense, num_faces=0)
    assert kept.mesh.num_faces == dense.num_faces


def test_faces_that_cleaning_drops_get_a_label(model) -> None:
    mesh = vessel("vase", 2)
    faces = np.concatenate([[[3, 3, 4]], mesh.faces, mesh.faces[:1]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PygPoolWarning)
        found = predict_mesh(model, Mesh(mesh.vertices, faces))
    plain = predict_mesh(model, mesh)
    assert "2 faces got the label of the closest one" in found.note
    assert (found.labels[1:-1] == plain.labels).mean() > 0.99
    assert found.labels.shape == (mesh.num_faces + 2,)


def test_polygons_of_a_file_get_one_label_each(model, tmp_path: Path) -> None:
    mesh = vessel("vase", 2)
    # The first two triangles with a common side become one quad.
    a, b = mesh.faces[0].tolist(), None
    for k, face in enumerate(mesh.faces[1:].tolist(), start=1):
        shared = set(a) & set(face)
        if len(shared) == 2:
            b, (tip,) = k, set(face) - shared
            break
    while set(a[:2]) != shared:
        a = a[1:] + a[:1]
    rows = [[a[0], tip, a[1], a[2]]]
    rows += [row for k, row in enumerate(mesh.faces.tolist()) if k not in (0, b)]
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in mesh.vertices.tolist()]
    lines += ["f " + " ".join(str(i + 1) for i in row) for row in rows]
    path = tmp_path / "quad.obj"
    path.write_text("\n".join(lines))
    with pytest.raises(ValueError, match="have more than three corners"):
        predict_mesh(model, path)
    found = predict_mesh(model, path, polygons="fan")
    assert found.labels.shape == (mesh.num_faces,)
    assert found.file_labels.shape == (mesh.num_faces - 1,)
    assert (found.file_labels[1:] == found.labels[2:]).all()
    assert found.file_labels[0] in found.labels[:2]


@pytest.mark.parametrize("faces", [100_000])
def test_very_dense_mesh_is_labelled_by_way_of_a_small_one(model, faces: int) -> None:
    mesh = vessel("vase", 1)
    while mesh.num_faces < faces:
        mesh = refined(mesh)
    found = predict_mesh(model, mesh)
    assert found.mesh.num_faces <= model.num_faces
    assert found.labels.shape == found.file_labels.shape == (mesh.num_faces,)
    assert f"simplified from {mesh.num_faces} to" in found.note
    assert (found.labels == found.scores.argmax(1)[found.face_map]).all()
    # Faces keep their place: those of one coarse face lie near it.
    centres = [m.vertices[m.faces].mean(1) for m in (mesh, found.mesh)]
    way = np.linalg.norm(centres[0] - centres[1][found.face_map], axis=1)
    assert way.max() < 0.3 * np.ptp(mesh.vertices, axis=0).max()


def test_nothing_left(model) -> None:
    flat = Mesh(np.zeros((3, 3)), [[0, 1, 2]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PygPoolWarning)
        with pytest.raises(ValueError, match="cleaning left no face"):
            predict_mesh(model, flat)
