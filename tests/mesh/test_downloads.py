"""Archives: fetched whole, unpacked safely, or nothing at all."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from pyg_pool.mesh.downloads import fetch_archive


def pack(path: Path, files: dict[str, str]) -> str:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as packed:
            for name, text in files.items():
                packed.writestr(name, text)
    else:
        with tarfile.open(path, "w:gz") as packed_tar:
            for name, text in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(text)
                packed_tar.addfile(member, io.BytesIO(text.encode()))
    return path.as_uri()


@pytest.mark.parametrize("name", ["a.tar.gz", "a.zip"])
@pytest.mark.parametrize("top", ["", "shrec_16/"])
def test_archive_becomes_the_folder(tmp_path: Path, name: str, top: str) -> None:
    url = pack(tmp_path / name, {f"{top}cup/x.obj": "v", f"{top}vase/y.obj": "w"})
    fetch_archive(url, tmp_path / "deep" / "root")
    found = sorted(p.name for p in (tmp_path / "deep" / "root").iterdir())
    assert found == ["cup", "vase"]
    assert (tmp_path / "deep/root/cup/x.obj").read_text() == "v"
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["root"]


def test_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    fetch_archive("file:///nowhere", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_damage_and_absence_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError, match=r"cannot be read .* lay it out"):
        fetch_archive((tmp_path / "none.zip").as_uri(), tmp_path / "root")
    url = pack(tmp_path / "a.tar.gz", {"x": "y" * 5000})
    whole = (tmp_path / "a.tar.gz").read_bytes()
    (tmp_path / "a.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="cannot be unpacked"):
        fetch_archive(url, tmp_path / "root")
    assert [p.name for p in tmp_path.iterdir()] == ["a.tar.gz"]


@pytest.mark.parametrize("ending", ["tar.gz", "zip"])
@pytest.mark.parametrize("member", ["../x", "/x", "a/../../x"])
def test_names_that_lead_outside_are_refused(
    tmp_path: Path, ending: str, member: str
) -> None:
    url = pack(tmp_path / f"a.{ending}", {member: "y"})
    with pytest.raises(ValueError, match="expected only names inside it"):
        fetch_archive(url, tmp_path / "root" / "x")
    assert not list((tmp_path / "root").iterdir())


def test_links_are_not_unpacked(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as packed:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(link)
        member = tarfile.TarInfo("x.obj")
        packed.addfile(member, io.BytesIO())
    fetch_archive((tmp_path / "a.tar.gz").as_uri(), tmp_path / "root")
    assert [p.name for p in (tmp_path / "root").iterdir()] == ["x.obj"]
