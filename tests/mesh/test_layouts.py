"""Folders of data sets: what is found, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyg_pool.mesh import MeshSample, generate_shape, write_labels, write_mesh
from pyg_pool.mesh.layouts import class_folders, draw_split, part_folder


def lay_out_classes(root: Path) -> None:
    for kind in ("vase", "cup"):
        for part, number in (("train", 3), ("test", 1)):
            folder = root / kind / part
            folder.mkdir(parents=True)
            for i in range(number):
                write_mesh(folder / f"{kind}{part}{i}.obj", generate_shape(kind))
            (folder / "notes.txt").write_text("not a mesh")


def lay_out_parts(root: Path, labels: str = "{}/{}.seg", ending: str = "off") -> None:
    for part, number in (("train", 2), ("test", 1)):
        (root / part).mkdir(parents=True)
        for i in range(number):
            mesh = generate_shape("cup")
            name = f"{part}{i}"
            write_mesh(root / part / f"{name}.{ending}", mesh)
            file = root / labels.format(part, name)
            file.parent.mkdir(exist_ok=True)
            write_labels(file, 2 * mesh.labels + 1)


def test_classes_are_the_folders(tmp_path: Path) -> None:
    lay_out_classes(tmp_path)
    (tmp_path / "stray").mkdir()
    samples, names = class_folders(tmp_path)
    assert names == ["cup", "vase"]
    assert [(s.path.name, s.target) for s in samples[2:4]] == [
        ("cuptrain2.obj", 0),
        ("vasetrain0.obj", 1),
    ]
    assert len(class_folders(tmp_path, "test")[0]) == 2
    assert len(class_folders(tmp_path, "all")[0]) == 8


@pytest.mark.parametrize("labels", ["{}/{}.seg", "seg/{1}.eseg", "{}/{}.npy"])
def test_labels_lie_beside_the_mesh_or_in_a_folder(tmp_path: Path, labels: str) -> None:
    lay_out_parts(tmp_path, labels.replace("{1}", "{1:}"))
    samples, names, values = part_folder(tmp_path, "test")
    assert [s.path.name for s in samples] == ["test0.off"]
    assert samples[0].labels.suffix == Path(labels).suffix
    assert values == [1, 3, 7]
    assert names == ["1", "3", "7"]


def test_names_of_parts_fix_their_numbers(tmp_path: Path) -> None:
    lay_out_parts(tmp_path)
    (tmp_path / "labels.json").write_text(json.dumps([f"part {i}" for i in range(8)]))
    _, names, values = part_folder(tmp_path)
    assert len(names) == 8
    assert values == list(range(8))
    (tmp_path / "labels.json").write_text('["a", "b"]')
    with pytest.raises(ValueError, match="names 2 parts, but its labels run from 1 to"):
        part_folder(tmp_path)


def test_missing_folders_and_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="holds no folder <class>/train"):
        class_folders(tmp_path)
    with pytest.raises(FileNotFoundError, match="is no folder"):
        class_folders(tmp_path / "none")
    lay_out_parts(tmp_path / "Cup")
    with pytest.raises(FileNotFoundError, match=r"no folder train.*pass one of \['Cup"):
        part_folder(tmp_path)
    (tmp_path / "Cup/test/test0.seg").unlink()
    with pytest.raises(FileNotFoundError, match=r"test0.off has no label file"):
        part_folder(tmp_path / "Cup")
    (tmp_path / "empty" / "train").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="no meshes of split 'train'"):
        part_folder(tmp_path / "empty")
    with pytest.raises(ValueError, match="split='val', expected one of"):
        class_folders(tmp_path, "val")


def test_random_splits_are_even_repeatable_and_disjoint() -> None:
    samples = [MeshSample(Path(f"{i}.obj"), target=i % 3) for i in range(60)]
    train = draw_split(samples, "train", 10, 4)
    test = draw_split(samples, "test", 10, 4)
    assert len(train) == len(test) == 30
    assert not set(train) & set(test)
    assert sorted(s.target for s in train) == sorted([0, 1, 2] * 10)
    assert draw_split(samples[::-1], "train", 10, 4) == train
    assert draw_split(samples, "train", 10, 5) != train
    with pytest.raises(ValueError, match="got 20 meshes of class 0, expected at least"):
        draw_split(samples, "train", 11, 0)
