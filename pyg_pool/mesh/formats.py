"""Mesh files: reading any that trimesh reads, writing, polygons cut into triangles.

OBJ and OFF are read here, because label files count the faces as they stand in the
file and general readers reorder or cut them; all other formats go through trimesh.
"""

from __future__ import annotations

import os
import struct
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pyg_pool.errors import PygPoolWarning, check_choice, require
from pyg_pool.mesh.cleaning import NonManifold, clean_mesh
from pyg_pool.mesh.geometry import Ints, Mesh
from pyg_pool.mesh.labels import read_labels

__all__ = ["Polygons", "fan_triangles", "read_mesh", "write_mesh"]

Polygons = Literal["error", "fan"]

# What the parsers may raise on a damaged file.
_DAMAGES = (
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    NotImplementedError,
    TypeError,
    ValueError,
    struct.error,
)


def read_mesh(
    path: str | os.PathLike[str],
    *,
    clean: bool = True,
    nonmanifold: NonManifold = "drop",
    fix_winding: bool = True,
    merge_tolerance: float = 0.0,
    polygons: Polygons = "error",
    labels: str | os.PathLike[str] | None = None,
) -> Mesh:
    """Reads a mesh file, and cleans it.

    Args:
        path: ``.obj`` or ``.off``, or with the extra ``mesh`` whatever trimesh
            reads: ``.ply``, ``.stl``, ``.glb``, ….
        clean: Whether :func:`clean_mesh` runs.
        nonmanifold: See :func:`clean_mesh`.
        fix_winding: See :func:`clean_mesh`.
        merge_tolerance: See :func:`clean_mesh`.
        polygons: Faces of more than three corners are an ``"error"``, or are cut
            into a ``"fan"`` of triangles.
        labels: A label file of this mesh, see :func:`read_labels`.

    Returns:
        The mesh. ``face_index`` leads to the faces of the file where some were
        dropped or cut, and always after cleaning.

    Raises:
        FileNotFoundError: If there is no such file.
        ImportError: If the format needs trimesh and that is not installed.
        ValueError: If the file cannot be read or holds polygons.

    Example:
        >>> from pyg_pool.mesh import Mesh, read_mesh, write_mesh
        >>> folder = getfixture("tmp_path")
        >>> write_mesh(folder / "a.off", Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]],
        ...                                   [[0, 1, 2]]))
        >>> read_mesh(folder / "a.off").face_index
        array([0])
    """
    check_choice("read_mesh", "polygons", polygons, ("error", "fan"))
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"read_mesh got {path}, expected an existing mesh file; check the path."
        )
    mesh = _read(path, polygons)
    if labels is not None:
        values = read_labels(labels, mesh)
        mesh = Mesh(mesh.vertices, mesh.faces, values, mesh.face_index)
    if not clean:
        return mesh
    return clean_mesh(
        mesh,
        nonmanifold=nonmanifold,
        fix_winding=fix_winding,
        merge_tolerance=merge_tolerance,
    )


def write_mesh(path: str | os.PathLike[str], mesh: Mesh) -> None:
    """Writes vertices and faces; nothing is left half written.

    Args:
        path: ``.obj`` or ``.off``, or with the extra ``mesh`` what trimesh writes.
        mesh: The mesh; labels go to a file of their own, see :func:`write_labels`.

    Raises:
        ImportError: If the format needs trimesh and that is not installed.
        ValueError: If the format is unknown.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind == ".off":
        head = f"OFF\n{mesh.num_vertices} {mesh.num_faces} 0\n"
        data = (head + _lines("", mesh.vertices) + _lines("3 ", mesh.faces)).encode()
    elif kind == ".obj":
        faces = _lines("f ", mesh.faces + 1)
        data = (_lines("v ", mesh.vertices) + faces).encode()
    else:
        trimesh = require("trimesh", "mesh")
        solid = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
        try:
            exported = solid.export(file_type=kind.removeprefix("."))
        except _DAMAGES as error:
            raise ValueError(
                f"write_mesh got the file name {path.name} ({error}), expected an "
                f"ending of a mesh format; use .off, .obj, .ply or .stl."
            ) from error
        data = exported.encode() if isinstance(exported, str) else exported
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def fan_triangles(polygons: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Cuts polygons into triangles around their first corner.

    Args:
        polygons: The corners of each polygon.

    Returns:
        The triangles, and the polygon of each. Polygons of fewer than three corners
        have none.

    Shapes:
        returns [T, 3] int64 and [T] int64.

    Example:
        >>> from pyg_pool.mesh import fan_triangles
        >>> fan_triangles([[0, 1, 2, 3], [4, 5, 6]])[0].tolist()
        [[0, 1, 2], [0, 2, 3], [4, 5, 6]]
    """
    sizes = np.array([len(row) for row in polygons], dtype=np.int64)
    flat = np.array([i for row in polygons for i in row], dtype=np.int64)
    begin = np.cumsum(sizes) - sizes
    count = np.maximum(sizes - 2, 0)
    source = np.repeat(np.arange(len(sizes)), count)
    step = np.arange(len(source)) - np.repeat(np.cumsum(count) - count, count)
    first = begin[source]
    corners = np.stack([first, first + step + 1, first + step + 2], axis=1)
    return flat[corners].reshape(-1, 3), source


def _read(path: Path, polygons: Polygons) -> Mesh:
    """The mesh of a file as it stands there."""
    reader = {".obj": _read_obj, ".off": _read_off}.get(path.suffix.lower())
    try:
        rows = None if reader is None else reader(path.read_text(errors="replace"))
    except _DAMAGES as error:
        raise _unreadable(path, error) from error
    if rows is None:
        return _read_by_trimesh(path, polygons)
    try:
        return _triangulated(path, *rows, polygons)
    except ValueError as error:
        raise _unreadable(path, error) from error


def _triangulated(path: Path, vertices: Any, faces: Any, polygons: Polygons) -> Mesh:
    """A mesh of faces with any number of corners."""
    if isinstance(faces, np.ndarray):
        return Mesh(vertices, faces)
    large = sum(len(row) > 3 for row in faces)
    if large and polygons == "error":
        raise ValueError(_polygon_fault(large, len(faces)))
    small = sum(len(row) < 3 for row in faces)
    if small:
        warnings.warn(
            f"{path} holds {small} of {len(faces)} faces with fewer than three "
            f"corners, expected triangles; they are left out, face_index counts on.",
            PygPoolWarning,
            stacklevel=4,
        )
    triangles, source = fan_triangles(faces)
    same = large == 0 and small == 0
    return Mesh(vertices, triangles, None, None if same else source)


def _read_obj(text: str) -> tuple[Any, Any]:
    """Vertices and faces of a Wavefront file; texture and normals are skipped."""
    vertices: list[list[str]] = []
    faces: list[list[int]] = []
    for line in text.replace("\\\n", " ").splitlines():
        parts = line.split("#", 1)[0].split()
        if not parts:
            continue
        if parts[0] == "v":
            vertices.append(parts[1:4])
        elif parts[0] == "f":
            ids = [int(part.split("/", 1)[0]) for part in parts[1:]]
            # Ids count from 1, negative ones back from the last vertex so far.
            if 0 in ids or min(ids, default=0) < -len(vertices):
                raise ValueError(f"a face has the vertex ids {ids}")
            faces.append([i - 1 if i > 0 else len(vertices) + i for i in ids])
    return np.array(vertices, dtype=np.float64).reshape(-1, 3), faces


def _read_off(text: str) -> tuple[Any, Any] | None:
    """Vertices and faces of a plain OFF file, or nothing for its other forms."""
    lines = [line.split("#", 1)[0] for line in text.splitlines()]
    lines = [line for line in lines if line.strip()]
    if not lines or lines[0].split()[0] != "OFF":
        return None
    lines[0] = lines[0].split("OFF", 1)[1]  # some write the counts right behind
    lines = lines if lines[0].strip() else lines[1:]
    num_vertices, num_faces = (int(word) for word in lines[0].split()[:2])
    if len(lines) < 1 + num_vertices + num_faces:
        raise ValueError(
            f"it holds {len(lines) - 1} lines for {num_vertices} vertices and "
            f"{num_faces} faces"
        )
    rows = [line.split()[:3] for line in lines[1 : 1 + num_vertices]]
    vertices = np.array(rows, dtype=np.float64).reshape(-1, 3)
    words = [
        line.split() for line in lines[1 + num_vertices : 1 + num_vertices + num_faces]
    ]
    faces = [[int(word) for word in row[1 : 1 + int(row[0])]] for row in words]
    if any(len(row) != int(word[0]) for row, word in zip(faces, words, strict=True)):
        raise ValueError("a face has fewer corners than it says")
    return vertices, faces


def _read_by_trimesh(path: Path, polygons: Polygons) -> Mesh:
    """The mesh of any other file."""
    trimesh = require("trimesh", "mesh")
    try:
        loaded = trimesh.load(path, process=False)
        if hasattr(loaded, "geometry"):  # a scene: its parts, put in their places
            joined = getattr(loaded, "to_mesh", None)
            loaded = joined() if joined else loaded.dump(concatenate=True)
        faces = getattr(loaded, "faces", np.empty((0, 3), dtype=np.int64))
        mesh = Mesh(np.asarray(loaded.vertices), np.asarray(faces))
        if mesh.num_vertices == 0:
            raise ValueError("trimesh finds nothing in it")
    except _DAMAGES as error:
        raise _unreadable(path, error) from error
    stated = _stated_faces(path) if path.suffix.lower() == ".ply" else None
    if stated is not None and stated < mesh.num_faces and polygons == "error":
        raise _unreadable(path, ValueError(_polygon_fault(None, stated)))
    return mesh


def _stated_faces(path: Path) -> int | None:
    """Number of faces that the head of a PLY file states."""
    head = path.read_bytes()[:65536].split(b"end_header", 1)[0]
    for line in head.splitlines():
        words = line.split()
        if words[:2] == [b"element", b"face"] and len(words) == 3:
            return int(words[2])
    return None


def _polygon_fault(number: int | None, total: int) -> str:
    """What is wrong with a file of polygons."""
    some = "some" if number is None else str(number)
    return (
        f"{some} of its {total} faces have more than three corners; pass "
        f"polygons='fan' to cut them into triangles"
    )


def _unreadable(path: Path, error: Exception) -> ValueError:
    """The error for a file that is no triangle mesh."""
    return ValueError(
        f"read_mesh got {path} ({error}), expected a complete file of triangles in "
        f"the format of its ending; export it again, for instance as .off or .ply."
    )


def _lines(head: str, rows: Any) -> str:
    """Rows of numbers as text, floats in the shortest form that reads back."""
    return "".join(f"{head}{' '.join(map(repr, row))}\n" for row in rows.tolist())
