"""Folders of meshes as problems to learn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyg_pool.mesh import write_mesh
from pyg_pool.train import MeshConfig, OptionError, load_meshes
from tests.train.mesh_runs import vessel, write_parts


def parts(root: Path, **options: object) -> MeshConfig:
    return MeshConfig(data=str(root), task="segmentation", **options)  # type: ignore


def test_classes_are_folders(tmp_path: Path) -> None:
    for kind in ("vase", "box"):
        for part in ("train", "test"):
            folder = tmp_path / kind / part
            folder.mkdir(parents=True)
            write_mesh(folder / "1.obj", vessel(kind, 1))
    (found,) = load_meshes(MeshConfig(data=str(tmp_path)))
    assert found.class_names == ["box", "vase"]
    assert [int(data.y) for data in found.train] == [0, 1]
    assert found.files["test"][1].parts[-3:] == ("vase", "test", "1.obj")
    assert found.train[1].x.size(0) == vessel("vase", 1).num_faces


def test_a_problem_for_each_category(tmp_path: Path) -> None:
    write_parts(tmp_path, "urns")
    write_parts(tmp_path, "jars", beside=False)
    (tmp_path / "urns" / "labels.json").write_text(json.dumps(["body", "foot"]))
    both = load_meshes(parts(tmp_path))
    assert [each.name for each in both] == ["jars", "urns"]
    assert both[1].class_names == ["body", "foot"]
    assert both[0].class_names == ["0", "1"]
    assert (len(both[0].train), len(both[0].test)) == (2, 1)
    assert both[0].train[1].y.tolist() == vessel("vase", 1).labels.tolist()
    (one,) = load_meshes(parts(tmp_path, categories=("urns",)))
    assert one.name == "urns"
    (single,) = load_meshes(parts(tmp_path / "urns"))
    assert repr(single) == "MeshSet('urns', 2 train, 1 test, 2 classes)"


def test_what_can_be_wrong(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="existing folder"):
        load_meshes(parts(tmp_path / "no"))
    with pytest.raises(OptionError, match="<name>/train"):
        load_meshes(parts(tmp_path))
    write_parts(tmp_path, "urns")
    with pytest.raises(OptionError, match="did you mean 'urns'"):
        load_meshes(parts(tmp_path, categories=("urn",)))
    (tmp_path / "urns" / "train" / "0.seg").unlink()
    with pytest.raises(OptionError, match="no file of labels"):
        load_meshes(parts(tmp_path))
    for file in (tmp_path / "urns" / "train").iterdir():
        file.unlink()
    with pytest.raises(OptionError, match="0 meshes to train on"):
        load_meshes(parts(tmp_path))
