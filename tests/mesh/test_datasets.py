"""Public data sets from a folder, laid out or fetched."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from torch_geometric.loader import DataLoader

from pyg_pool.mesh import (
    COSEG,
    SHREC16,
    CubeEngraving,
    GraphRecipe,
    HumanBody,
    PrincetonSegmentation,
    generate_shape,
    write_labels,
    write_mesh,
)


def classes(root: Path) -> None:
    for kind in ("cup", "vase"):
        for part, number in (("train", 3), ("test", 1)):
            (root / kind / part).mkdir(parents=True)
            for i in range(number):
                path = root / kind / part / f"{part}{i}.obj"
                write_mesh(path, generate_shape(kind))


def parts(root: Path, seg: bool) -> None:
    for part, number in (("train", 2), ("test", 1)):
        (root / part).mkdir(parents=True)
        for i in range(number):
            mesh = generate_shape("cup")
            write_mesh(root / part / f"{part}{i}.off", mesh)
            folder = root / "seg" if seg else root / part
            folder.mkdir(exist_ok=True)
            write_labels(folder / f"{part}{i}.{'eseg' if seg else 'seg'}", mesh.labels)


def test_classification_set(tmp_path: Path) -> None:
    classes(tmp_path)
    data = SHREC16(tmp_path)
    assert repr(data) == "SHREC16(6 meshes, 2 classes)"
    assert data.class_names == ["cup", "vase"]
    batch = next(iter(DataLoader(data, batch_size=6)))
    assert batch.y.tolist() == [0, 0, 0, 1, 1, 1]
    assert batch.ptr_dual.numel() == 7
    assert data.mesh(4).num_faces == data[4].num_nodes
    assert len(SHREC16(tmp_path, "test")) == 2
    assert len(list((tmp_path / ".graphs").iterdir())) == 8
    drawn = SHREC16(tmp_path, "test", draw=3, per_class=2, cache=None)
    assert [g.y.item() for g in drawn] == [0, 0, 1, 1]


def test_segmentation_sets(tmp_path: Path) -> None:
    parts(tmp_path / "psb" / "Cup", seg=False)
    parts(tmp_path / "coseg" / "coseg_vases", seg=True)
    parts(tmp_path / "pd" / "aliens", seg=False)
    parts(tmp_path / "human", seg=True)
    for data in (
        PrincetonSegmentation(tmp_path / "psb", "Cup"),
        PrincetonSegmentation(tmp_path / "psb" / "Cup", None),
        COSEG(tmp_path / "coseg", "vases"),
        COSEG(tmp_path / "pd", "aliens"),
        HumanBody(tmp_path / "human"),
    ):
        assert len(data) == 2
        # The parts of a cup: body, foot and handle.
        assert data.class_names == ["0", "1", "3"]
        assert data[0].y.unique().tolist() == [0, 1, 2]
        assert data[0].y.numel() == data[0].num_nodes
    with pytest.raises(ValueError, match="shapes='cups', expected one of"):
        COSEG(tmp_path / "coseg", "cups")


@pytest.mark.parametrize("kind", [SHREC16, CubeEngraving, HumanBody, COSEG])
def test_archive_is_fetched_once(
    kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, options = tmp_path / "source", {}
    if kind is COSEG:
        parts(source / "coseg_chairs", seg=True)
        options = {"shapes": "chairs"}
    elif kind is HumanBody:
        parts(source, seg=True)
    else:
        classes(source)
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as packed:
        packed.add(source, "top")
    monkeypatch.setattr(kind, "url", (tmp_path / "a.tar.gz").as_uri())
    root = tmp_path / "root"
    with pytest.raises(FileNotFoundError, match="download=True"):
        kind(root, **options)
    first = kind(root, **options, download=True)
    (tmp_path / "a.tar.gz").unlink()
    assert len(kind(root, **options, download=True)) == len(first)


def test_addresses_are_complete() -> None:
    for kind in (SHREC16, CubeEngraving, HumanBody, COSEG):
        assert kind.url.startswith("https://")
        assert kind.url.endswith(".tar.gz?dl=1")
    assert len({k.url for k in (SHREC16, CubeEngraving, HumanBody, COSEG)}) == 4


@pytest.mark.data
def test_real_sets(data_root: Path, tmp_path: Path) -> None:
    for found in data_root.glob("**/shrec16"):
        data = SHREC16(found, "test", cache=tmp_path, recipe=GraphRecipe("B"))
        assert repr(data) == "SHREC16(120 meshes, 30 classes)"
        assert all(g.x_dual.shape == (1500, 4) for g in data)
        return
    pytest.skip(f"no shrec16 under {data_root}")


@pytest.mark.data
def test_real_parts(data_root: Path, tmp_path: Path) -> None:
    for found in data_root.glob("**/psb_labeled"):
        data = PrincetonSegmentation(found, "Human", "test", cache=tmp_path)
        assert repr(data) == "PrincetonSegmentation(5 meshes, 8 classes)"
        assert all(g.y.max() == 7 and g.num_nodes == 1500 for g in data)
        return
    pytest.skip(f"no psb_labeled under {data_root}")
