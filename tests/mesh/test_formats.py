"""Mesh files: what is written is read, and what is damaged is named."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from pyg_pool.errors import PygPoolWarning
from pyg_pool.mesh import Mesh, fan_triangles, read_mesh, write_labels, write_mesh

HOUSE = Mesh(
    np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1 / 3]]),
    [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]],
)


@pytest.mark.parametrize("ending", ["off", "obj", "OBJ"])
def test_own_formats_are_exact(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    write_mesh(path, HOUSE)
    mesh = read_mesh(path, clean=False)
    assert np.array_equal(mesh.vertices, HOUSE.vertices)
    assert np.array_equal(mesh.faces, HOUSE.faces)
    assert mesh.face_index is None
    assert read_mesh(path).face_index.tolist() == [0, 1, 2, 3]
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", ["ply", "stl", "glb"])
def test_other_formats_go_through_trimesh(tmp_path: Path, ending: str) -> None:
    pytest.importorskip("trimesh")
    path = tmp_path / f"a.{ending}"
    write_mesh(path, HOUSE)
    mesh = read_mesh(path)
    corners = mesh.vertices[mesh.faces]
    np.testing.assert_allclose(corners, HOUSE.vertices[HOUSE.faces], atol=1e-6)


def test_obj_in_its_many_forms(tmp_path: Path) -> None:
    path = tmp_path / "a.obj"
    path.write_text(
        "# a comment\no thing\nv 0 0 0 0.5 0.5 0.5\nv 1 0 0\nvt 0 0\nvn 0 0 1\n"
        "v 0 1 0\nf 1/1/1 2/1/1 \\\n3/1/1\ng other\nv 1 1 0\nf -3//1 -1//1 -2//1\n"
        "usemtl grey\ns off\nl 1 2\n"
    )
    mesh = read_mesh(path, clean=False)
    assert mesh.faces.tolist() == [[0, 1, 2], [1, 3, 2]]
    assert mesh.vertices[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("head", ["OFF\n4 2 0", "OFF 4 2 0", "# c\nOFF\n\n4 2 0 # c"])
def test_off_in_its_many_forms(tmp_path: Path, head: str) -> None:
    path = tmp_path / "a.off"
    path.write_text(
        f"{head}\n0 0 0\n1 0 0\n\n0 1 0\n1 1 0 9\n3 0 1 2 255 0 0\n3 1 3 2\n"
    )
    assert read_mesh(path, clean=False).faces.tolist() == [[0, 1, 2], [1, 3, 2]]


def test_coloured_off_is_left_to_trimesh(tmp_path: Path) -> None:
    pytest.importorskip("trimesh")
    path = tmp_path / "a.off"
    path.write_text(
        "COFF\n3 1 0\n0 0 0 1 1 1 1\n1 0 0 1 1 1 1\n0 1 0 1 1 1 1\n3 0 1 2\n"
    )
    assert read_mesh(path).faces.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("ending", ["off", "obj", "ply"])
def test_polygons_are_counted_or_cut(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    points = "0 0 0\n1 0 0\n1 1 0\n0 1 0\n2 0 0\n"
    faces = {"off": "4 0 1 2 3\n3 1 4 2\n", "obj": "f 1 2 3 4\nf 2 5 3\n"}
    head = {"off": "OFF\n5 2 0\n", "obj": ""}
    if ending == "ply":
        pytest.importorskip("trimesh")
        lines = ["ply", "format ascii 1.0", "element vertex 5"]
        lines += [f"property float {axis}" for axis in "xyz"]
        lines += ["element face 2", "property list uchar int vertex_indices"]
        head["ply"], faces["ply"] = "\n".join([*lines, "end_header\n"]), faces["off"]
    lead = "v " if ending == "obj" else ""
    body = "".join(f"{lead}{line}\n" for line in points.splitlines())
    path.write_text(head[ending] + body + faces[ending])
    with pytest.raises(ValueError, match=r"of its 2 faces have more than three"):
        read_mesh(path)
    mesh = read_mesh(path, polygons="fan")
    assert sorted(map(sorted, mesh.faces.tolist())) == [[0, 1, 2], [0, 2, 3], [1, 2, 4]]
    if ending != "ply":
        assert mesh.face_index.tolist() == [0, 0, 1]
        write_labels(tmp_path / "a.seg", [4, 7])
        mesh = read_mesh(path, polygons="fan", labels=tmp_path / "a.seg")
        assert mesh.labels.tolist() == [4, 4, 7]


def test_faces_with_too_few_corners_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2\nf 1 2 3\n")
    with pytest.warns(PygPoolWarning, match="1 of 2 faces with fewer than three"):
        mesh = read_mesh(path)
    assert mesh.faces.tolist() == [[0, 1, 2]]
    assert mesh.face_index.tolist() == [1]


def test_labels_follow_the_faces_that_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.off"
    write_mesh(path, Mesh(HOUSE.vertices, [[0, 0, 1], *HOUSE.faces.tolist()]))
    write_labels(tmp_path / "a.seg", [9, 1, 2, 3, 4])
    with pytest.warns(PygPoolWarning, match="dropped 1 of 5"):
        mesh = read_mesh(path, labels=tmp_path / "a.seg")
    assert mesh.labels.tolist() == [1, 2, 3, 4]
    write_labels(tmp_path / "a.seg", [1, 2, 3])
    with pytest.raises(ValueError, match=r"got 3 labels .* mesh of 5 faces"):
        read_mesh(path, labels=tmp_path / "a.seg")


def test_file_without_faces_is_an_empty_mesh(tmp_path: Path) -> None:
    (tmp_path / "a.obj").write_text("v 0 0 0\n")
    assert read_mesh(tmp_path / "a.obj").num_faces == 0
    (tmp_path / "a.off").write_text("OFF\n0 0 0\n")
    assert read_mesh(tmp_path / "a.off").num_vertices == 0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.off", b"OFF\n4 2 0\n0 0 0\n"),
        ("a.off", b"OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n4 0 1 2\n"),
        ("a.off", b"OFF\n1 1 0\n0 0 0\n3 0 1 2\n"),
        ("a.off", b"OFF\nmany 1 0\n"),
        ("a.obj", b"v 0 0\nf 1 1 1\n"),
        ("a.obj", b"v 0 0 x\n"),
        ("a.obj", b"v 0 0 0\nf 1 2 3\n"),
        ("a.obj", b"v 0 0 0\nf 0 1 1\n"),
        ("a.obj", b"v 0 0 0\nf -1 -2 -3\n"),
        ("a.obj", b"v 0 0 0\nf a b c\n"),
        ("a.ply", b"ply\nformat ascii 1.0\nelement vertex 3\nend_header\n0 0"),
        ("a.ply", b"no mesh at all"),
        ("a.stl", b"no mesh at all"),
        ("a.glb", b"\x00\x01"),
        ("a.xyzzy", b"no format at all"),
    ],
)
def test_damaged_file_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    if name.endswith((".ply", ".stl", ".glb", ".xyzzy")):
        pytest.importorskip("trimesh")
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"expected a complete file of triangles"):
        read_mesh(path)


def test_missing_file_and_package_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError, match="expected an existing mesh file"):
        read_mesh(tmp_path / "a.off")
    monkeypatch.setitem(sys.modules, "trimesh", None)
    (tmp_path / "a.ply").write_bytes(b"ply\n")
    with pytest.raises(ImportError, match=r"pyg_pool\[mesh\]"):
        read_mesh(tmp_path / "a.ply")
    with pytest.raises(ImportError, match=r"pyg_pool\[mesh\]"):
        write_mesh(tmp_path / "a.ply", HOUSE)


def test_unknown_ending_cannot_be_written(tmp_path: Path) -> None:
    pytest.importorskip("trimesh")
    with pytest.raises(ValueError, match=r"file name a\.xyzzy.*use \.off"):
        write_mesh(tmp_path / "a.xyzzy", HOUSE)
    assert list(tmp_path.iterdir()) == []


def test_fans_of_large_and_small_polygons() -> None:
    triangles, source = fan_triangles([[5, 6, 7, 8, 9], [1, 2], [], [1, 2, 3]])
    assert triangles.tolist() == [[5, 6, 7], [5, 7, 8], [5, 8, 9], [1, 2, 3]]
    assert source.tolist() == [0, 0, 0, 3]
    assert fan_triangles([])[0].shape == (0, 3)
