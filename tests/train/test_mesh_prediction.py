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


def test_nothing_left(model) -> None:
    flat = Mesh(np.zeros((3, 3)), [[0, 1, 2]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PygPoolWarning)
        with pytest.raises(ValueError, match="cleaning left no face"):
            predict_mesh(model, flat)
