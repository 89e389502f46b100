"""Folders of meshes as problems to learn."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch

from pyg_pool.mesh import SHREC16, clean_mesh, primal_dual_graph, read_mesh, write_mesh
from pyg_pool.train import MeshConfig, OptionError, load_meshes
from tests.train.mesh_runs import vessel, write_parts


def parts(root: Path, **options: Any) -> MeshConfig:
    return MeshConfig(data=str(root), task="segmentation", **options)


def write_classes(root: Path) -> None:
    for kind in ("vase", "box"):
        for part in ("train", "test"):
            folder = root / kind / part
            folder.mkdir(parents=True)
            write_mesh(folder / "1.obj", vessel(kind, 1))


def test_classes_are_folders(tmp_path: Path) -> None:
    write_classes(tmp_path)
    (found,) = load_meshes(MeshConfig(data=str(tmp_path)))
    assert found.class_names == ["box", "vase"]
    assert [int(data.y) for data in found.train] == [0, 1]
    assert found.files["test"][1].parts[-3:] == ("vase", "test", "1.obj")
    assert found.train[1].x.size(0) == vessel("vase", 1).num_faces
    assert found.augmented == []


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


@pytest.mark.parametrize(
    ("folders", "layout", "names"),
    [
        (("coseg_vases", "coseg_aliens"), "auto", ["coseg_aliens", "coseg_vases"]),
        (("chairs", "lamps"), "coseg", ["chairs"]),
        (("chairs", "lamps"), "auto", ["chairs", "lamps"]),
        (("chairs", "lamps"), "princeton", ["chairs", "lamps"]),
        (("",), "auto", ["data"]),
        (("",), "human", ["data"]),
    ],
)
def test_layouts_of_parts(
    tmp_path: Path, folders: tuple[str, ...], layout: str, names: list[str]
) -> None:
    root = tmp_path / "data"
    for folder in folders:
        write_parts(root, folder, beside=False)
    found = load_meshes(parts(root, layout=layout))
    assert [each.name for each in found] == names
    assert all(each.class_names == ["0", "1"] for each in found)
    if folders[0] == "coseg_vases":
        (one,) = load_meshes(parts(root, categories=("vases",)))
        assert one.name == "coseg_vases"


def test_graphs_are_those_of_the_files_and_kept(tmp_path: Path) -> None:
    write_parts(tmp_path / "data", "urns")
    cache = tmp_path / "cache"
    config = parts(tmp_path / "data", cache=str(cache))
    (first,), (again,) = load_meshes(config), load_meshes(config)
    assert len(list(cache.iterdir())) == 3
    assert not (tmp_path / "data" / "urns" / ".graphs").exists()
    mesh = read_mesh(first.files["train"][0], clean=False)
    graph = primal_dual_graph(clean_mesh(mesh))
    for name in ("x", "x_dual", "edge_index", "edge_index_dual", "edge_to_dual"):
        assert torch.equal(first.train[0][name], graph[name])
        assert torch.equal(again.train[0][name], graph[name])
    load_meshes(parts(tmp_path / "data", cache="none"))
    assert not (tmp_path / "data" / "urns" / ".graphs").exists()
    load_meshes(parts(tmp_path / "data"))
    assert len(list((tmp_path / "data" / "urns" / ".graphs").iterdir())) == 3


def test_folder_that_cannot_be_written_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_parts(tmp_path / "data", "urns")
    # Not even the superuser makes a folder where a file is.
    (tmp_path / "data" / "urns" / ".graphs").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    (found,) = load_meshes(parts(tmp_path / "data"))
    assert len(found.train) == 2
    assert len(list((tmp_path / "own" / "pyg_pool" / "meshes").iterdir())) == 3


def test_only_training_meshes_come_in_versions(tmp_path: Path) -> None:
    write_parts(tmp_path, "urns")
    config = parts(tmp_path, slide=0.2, flip=0.1, versions=3)
    (found,), (again,) = load_meshes(config), load_meshes(config)
    assert repr(found) == "MeshSet('urns', 2 x 3 train, 1 test, 2 classes)"
    (plain,) = load_meshes(parts(tmp_path))
    assert torch.equal(found.train[0].x_dual, plain.train[0].x_dual)
    assert torch.equal(found.test[0].x_dual, plain.test[0].x_dual)
    for k in range(2):
        changed = found.augmented[k][1]
        assert torch.equal(changed.y, plain.train[1].y)
        assert not torch.equal(changed.x, plain.train[1].x)
        assert torch.equal(changed.x_dual, again.augmented[k][1].x_dual)
    assert not torch.equal(found.augmented[0][1].x, found.augmented[1][1].x)


def test_missing_set_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_classes(tmp_path / "source")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as packed:
        packed.add(tmp_path / "source", "top")
    monkeypatch.setattr(SHREC16, "url", (tmp_path / "a.tar.gz").as_uri())
    config = MeshConfig(data=str(tmp_path / "new"), layout="shrec", download=True)
    assert len(load_meshes(config)[0].train) == 2
    config = MeshConfig(data=str(tmp_path / "other"), download=True)
    with pytest.raises(OptionError, match="layout='auto', expected a set with a pub"):
        load_meshes(config)


def test_polygons_are_cut_on_request(tmp_path: Path) -> None:
    text = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n"
    for part in ("train", "test"):
        (tmp_path / "tile" / part).mkdir(parents=True)
        (tmp_path / "tile" / part / "1.obj").write_text(text)
    with pytest.raises(ValueError, match="1 of its 1 faces have more than three"):
        load_meshes(MeshConfig(data=str(tmp_path)))
    (found,) = load_meshes(MeshConfig(data=str(tmp_path), polygons="fan"))
    assert found.train[0].x.size(0) == 2


def test_what_can_be_wrong(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="existing folder"):
        load_meshes(parts(tmp_path / "no"))
    with pytest.raises(OptionError, match=r"no folder 'train'.*princeton: <category>"):
        load_meshes(parts(tmp_path))
    with pytest.raises(OptionError, match=r"no folder <class>/train.*shrec: <class>"):
        load_meshes(MeshConfig(data=str(tmp_path)))
    write_parts(tmp_path, "urns")
    with pytest.raises(OptionError, match="did you mean 'urns'"):
        load_meshes(parts(tmp_path, categories=("urn",)))
    with pytest.raises(OptionError, match="is one set with its own folder"):
        load_meshes(parts(tmp_path / "urns", categories=("urns",)))
    with pytest.raises(OptionError, match=r"of its own.*choose task='segmentation'"):
        load_meshes(MeshConfig(data=str(tmp_path / "urns")))
    with pytest.raises(OptionError, match=r"other folders, expected .* coseg: coseg_"):
        load_meshes(parts(tmp_path, layout="coseg"))
    with pytest.raises(OptionError, match=r"no folder 'train', expected .* human: "):
        load_meshes(parts(tmp_path, layout="human"))
    (tmp_path / "urns" / "train" / "0.seg").unlink()
    with pytest.raises(OptionError, match=r"0.off has no label file"):
        load_meshes(parts(tmp_path))
    for file in (tmp_path / "urns" / "train").iterdir():
        file.unlink()
    with pytest.raises(OptionError, match="no meshes of split 'train'"):
        load_meshes(parts(tmp_path))
