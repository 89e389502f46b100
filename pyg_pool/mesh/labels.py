"""Labels of faces, edges and vertices: files, and the way from one to another.

MeshCNN labels edges, most benchmarks label faces, some label vertices. Networks here
label faces; these functions lead there and back.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from pyg_pool.errors import check_choice
from pyg_pool.mesh.adjacency import face_adjacency
from pyg_pool.mesh.geometry import Floats, Ints, Mesh, edge_keys, face_geometry, plain

__all__ = [
    "MeshEdges",
    "edge_labels_to_faces",
    "face_labels_to_edges",
    "mesh_edges",
    "read_labels",
    "vertex_labels_to_faces",
    "write_labels",
]

LabelKind = Literal["auto", "face", "edge", "vertex"]
EdgeOrder = Literal["appearance", "sorted"]


@dataclass(frozen=True, eq=False)
class MeshEdges:
    """The edges of a mesh, boundary included, and those of each face.

    Shapes:
        ends: [E, 2] int64, lower vertex first; of_side: [T, 3] int64, the edge of
        each side; areas: [E] float, a third of the areas of its faces over the area
        of the mesh.
    """

    ends: Ints
    of_side: Ints
    areas: Floats


def mesh_edges(mesh: Mesh, order: EdgeOrder = "appearance") -> MeshEdges:
    """Lists the edges of a mesh.

    Args:
        mesh: The mesh.
        order: ``"appearance"``: as a walk over the faces and their sides meets them,
            which is MeshCNN's order. ``"sorted"``: by vertices.

    Example:
        >>> from pyg_pool.mesh import Mesh, mesh_edges
        >>> flap = Mesh(
        ...     [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]]
        ... )
        >>> mesh_edges(flap).ends.tolist()
        [[0, 1], [1, 2], [0, 2], [1, 3], [2, 3]]
    """
    check_choice("mesh_edges", "order", order, ("appearance", "sorted"))
    keys, first, side = np.unique(
        edge_keys(mesh), return_index=True, return_inverse=True
    )
    side = side.reshape(-1)
    if order == "appearance":
        by_place = np.argsort(first)
        number = np.empty_like(by_place)
        number[by_place] = np.arange(len(keys))
        keys, side = keys[by_place], number[side]
    ends = np.stack(np.divmod(keys, max(mesh.num_vertices, 1)), axis=1)
    areas = face_geometry(mesh).areas
    total = areas.sum()
    shares = np.repeat(areas / (3 * total if total > 0 else 1.0), 3)
    weight = np.bincount(side, shares, minlength=len(keys)).astype(np.float64)
    return MeshEdges(ends, side.reshape(-1, 3), weight)


def face_labels_to_edges(
    mesh: Mesh,
    labels: ArrayLike | Tensor | None = None,
    *,
    num_classes: int | None = None,
    order: EdgeOrder = "appearance",
) -> Floats:
    """Soft labels of the edges: the mean over the faces of each.

    Args:
        mesh: The mesh.
        labels: Class of each face; by default those of the mesh.
        num_classes: Number of columns; by default one more than the largest label.
        order: Of the edges, see :func:`mesh_edges`.

    Shapes:
        labels: [T] int; returns [E, C] float64, rows that sum to 1.

    Note:
        An edge of the boundary has its one face's label in full; the published code
        gives it half.
    """
    values = _labels_of("face_labels_to_edges", mesh, labels)
    top = int(values.max(initial=-1)) + 1
    size = top if num_classes is None else num_classes
    if size < top or values.min(initial=0) < 0:
        raise ValueError(
            f"face_labels_to_edges got labels {values.min()} to {values.max()} for "
            f"{size} classes, expected 0 to {size - 1}; raise num_classes or renumber."
        )
    edges = mesh_edges(mesh, order)
    number = len(edges.ends)
    cell = edges.of_side.reshape(-1) * size + np.repeat(values, 3)
    votes = np.bincount(cell, minlength=number * size).reshape(number, size)
    soft: Floats = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1)
    return soft


def edge_labels_to_faces(
    mesh: Mesh, labels: ArrayLike | Tensor, *, order: EdgeOrder = "appearance"
) -> Ints:
    """Labels of the faces from those of their edges.

    A face takes the label of at least two of its edges. One with three different
    labels takes that of its edges which most of its settled neighbours have, the
    first edge's if there is none or several are even.

    Args:
        mesh: The mesh.
        labels: Class of each edge.
        order: Of the edges, see :func:`mesh_edges`.

    Shapes:
        labels: [E] int; returns [T] int64.
    """
    edges = mesh_edges(mesh, order)
    values = _whole("edge_labels_to_faces", labels, len(edges.ends), "edges")
    sides = values[edges.of_side]
    faces, settled = _two_of_three(sides)
    adjacent = face_adjacency(mesh)
    here = np.concatenate([adjacent.low, adjacent.high])
    there = np.concatenate([adjacent.high, adjacent.low])
    useful = ~settled[here] & settled[there]
    here, there = here[useful], there[useful]
    votes = np.zeros(sides.shape, dtype=np.int64)
    np.add.at(votes, here, faces[there][:, None] == sides[here])
    best = np.take_along_axis(sides, votes.argmax(axis=1)[:, None], axis=1)[:, 0]
    return np.where(settled, faces, best)


def vertex_labels_to_faces(mesh: Mesh, labels: ArrayLike | Tensor) -> Ints:
    """The label of most corners of each face, the lowest if all three differ.

    Shapes:
        labels: [V] int; returns [T] int64.
    """
    values = _whole("vertex_labels_to_faces", labels, mesh.num_vertices, "vertices")
    corners = values[mesh.faces]
    faces, settled = _two_of_three(corners)
    lowest: Ints = np.where(settled, faces, np.sort(corners, axis=1)[:, 0])
    return lowest


def read_labels(
    path: str | os.PathLike[str],
    mesh: Mesh,
    *,
    kind: LabelKind = "auto",
    edge_order: EdgeOrder = "appearance",
) -> Ints:
    """Reads a label file of a mesh as one label per face.

    Args:
        path: ``.npy``, or a text with one label a line (``.seg``, ``.eseg``,
            ``.labels``, ``.txt``).
        mesh: The mesh as it stands in its file, not cleaned; labels of polygons that
            were cut go to their triangles.
        kind: What is labelled; ``"auto"`` tells by the number of labels, faces
            before edges before vertices, for ``.eseg`` files too.
        edge_order: Of edge labels, see :func:`mesh_edges`.

    Shapes:
        returns [T] int64.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file cannot be read or the numbers do not fit.
    """
    check_choice("read_labels", "kind", kind, ("auto", "face", "edge", "vertex"))
    values = read_numbers(Path(path))
    input_faces = _input_faces(mesh)
    counts = {"face": input_faces, "edge": None, "vertex": mesh.num_vertices}
    if kind == "edge" or (kind == "auto" and len(values) != input_faces):
        counts["edge"] = len(mesh_edges(mesh).ends)
    fits = [word for word, count in counts.items() if count == len(values)]
    if not fits or (kind != "auto" and kind not in fits):
        plural = {"face": "faces", "edge": "edges", "vertex": "vertices"}
        known = ", ".join(
            f"{n} {plural[w]}" for w, n in counts.items() if n is not None
        )
        raise ValueError(
            f"read_labels got {len(values)} labels in {path} for a mesh of {known}, "
            f"expected one per {'face' if kind == 'auto' else kind}; pass the labels "
            f"of this very file, and the mesh before it was cleaned."
        )
    found = fits[0] if kind == "auto" else kind
    if found == "edge":
        return edge_labels_to_faces(mesh, values, order=edge_order)
    if found == "vertex":
        return vertex_labels_to_faces(mesh, values)
    return values if mesh.face_index is None else values[mesh.face_index]


def write_labels(path: str | os.PathLike[str], labels: ArrayLike | Tensor) -> None:
    """Writes one label a line, or an ``.npy`` file; nothing is left half written.

    Shapes:
        labels: [T] int.
    """
    path = Path(path)
    values = _whole("write_labels", labels, None, "faces")
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        if path.suffix.lower() == ".npy":
            with part.open("wb") as file:
                np.save(file, values)
        else:
            part.write_text("".join(f"{value}\n" for value in values.tolist()))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _input_faces(mesh: Mesh) -> int:
    """Faces of the file that a mesh was read from, as far as they are known."""
    if mesh.face_index is None:
        return mesh.num_faces
    return int(mesh.face_index.max(initial=-1)) + 1


def read_numbers(path: Path) -> Ints:
    """The whole numbers of a label file."""
    if not path.is_file():
        raise FileNotFoundError(
            f"read_labels got {path}, expected an existing label file; check the path."
        )
    try:
        if path.suffix.lower() == ".npy":
            values = np.load(path, allow_pickle=False)
        else:
            values = np.array(path.read_text().split(), dtype=np.float64)
    except (EOFError, UnicodeDecodeError, ValueError) as error:
        raise ValueError(
            f"read_labels got {path} ({error}), expected one whole number a line or "
            f"an .npy array of them; write it with write_labels."
        ) from error
    return _whole("read_labels", values, None, "faces")


def _labels_of(owner: str, mesh: Mesh, labels: Any) -> Ints:
    """Given labels, or those of the mesh."""
    if labels is None and mesh.labels is None:
        raise ValueError(
            f"{owner} got a mesh without labels, expected one per face; pass labels."
        )
    return _whole(
        owner, mesh.labels if labels is None else labels, mesh.num_faces, "faces"
    )


def _whole(owner: str, labels: Any, size: int | None, things: str) -> Ints:
    """A vector of whole numbers of a given length."""
    values = plain(labels)
    whole = values.astype(np.int64) if values.dtype.kind in "iufb" else None
    if values.ndim != 1 or whole is None or not (whole == values).all():
        raise ValueError(
            f"{owner} got labels of shape {list(values.shape)} and dtype "
            f"{values.dtype}, expected a vector of whole numbers; number the classes "
            f"from 0."
        )
    if size is not None and len(whole) != size:
        raise ValueError(
            f"{owner} got {len(whole)} labels for {size} {things}, expected one each; "
            f"pass the labels of this mesh."
        )
    return whole


def _two_of_three(rows: Ints) -> tuple[Ints, Any]:
    """The number that two of three columns hold, else the first, and which do."""
    a, b, c = rows.T
    return np.where(b == c, b, a), (a == b) | (b == c) | (a == c)
