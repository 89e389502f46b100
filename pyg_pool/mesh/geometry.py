"""Triangle meshes as arrays, and what can be measured on their faces and edges.

All measures are taken in float64 and stay finite on degenerate faces: a face without
area has a zero normal, and ratios are capped at :data:`MAX_RATIO`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

__all__ = [
    "MAX_RATIO",
    "FaceGeometry",
    "Mesh",
    "boundary_edges",
    "face_geometry",
    "half_edges",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Cap of edge / height and edge / edge, reached only by slivers a million times
# longer than high.
MAX_RATIO = 1e6


@dataclass(eq=False)
class Mesh:
    """A triangle mesh, with a label per face and the way back to the input faces.

    Args:
        vertices: Corner positions, in any unit.
        faces: Vertex ids of each triangle, counter-clockwise seen from outside.
        labels: Class of each face, or ``None``.
        face_index: For a cleaned mesh, the face of the input that each face was;
            ``None`` where the faces are the input.

    Shapes:
        vertices: [V, 3] float, faces: [T, 3] int, labels: [T] int, face_index: [T]
        int; arrays, tensors or nested lists, kept as float64 and int64 arrays.

    Raises:
        ValueError: For polygons, vertex ids out of range and counts that do not fit.

    Example:
        >>> from pyg_pool.mesh import Mesh
        >>> Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
        Mesh(num_vertices=3, num_faces=1)
    """

    vertices: Any
    faces: Any
    labels: Any = None
    face_index: Any = field(default=None)

    def __post_init__(self) -> None:
        self.vertices = _rows(self.vertices, np.float64, "vertices")
        self.faces = _rows(self.faces, np.int64, "faces")
        if self.faces.size and not (
            self.faces.min() >= 0 and self.faces.max() < len(self.vertices)
        ):
            raise ValueError(
                f"Mesh got faces with vertex ids {self.faces.min()} to "
                f"{self.faces.max()} for {len(self.vertices)} vertices, expected ids "
                f"in 0..{len(self.vertices) - 1}; pass all vertices, and ids that "
                f"count from 0."
            )
        self.labels = self._per_face(self.labels, "labels")
        self.face_index = self._per_face(self.face_index, "face_index")

    @property
    def num_vertices(self) -> int:
        """Number of vertices."""
        return len(self.vertices)

    @property
    def num_faces(self) -> int:
        """Number of faces."""
        return len(self.faces)

    def with_labels(self, labels: ArrayLike | Tensor | None) -> Mesh:
        """Returns the mesh with other labels, given for the input faces.

        Args:
            labels: A class per face of the input: the mesh's own faces where it was
                not cleaned, else those that ``face_index`` counts.

        Raises:
            ValueError: If there are not as many labels as input faces.
        """
        values = None if labels is None else _integers(labels, "labels")
        if values is not None and self.face_index is not None:
            top = int(self.face_index.max(initial=-1)) + 1
            if values.ndim != 1 or len(values) < top:
                raise ValueError(
                    f"Mesh.with_labels got labels of shape {list(values.shape)} for "
                    f"an input of at least {top} faces, expected one label per input "
                    f"face; pass the labels of the file as they are."
                )
            values = values[self.face_index]
        return Mesh(self.vertices, self.faces, values, self.face_index)

    def _per_face(self, values: Any, name: str) -> Ints | None:
        """Checks an array of one integer per face."""
        if values is None:
            return None
        array = _integers(values, name)
        if array.shape != (self.num_faces,):
            raise ValueError(
                f"Mesh got {name} of shape {list(array.shape)} for {self.num_faces} "
                f"faces, expected [{self.num_faces}]; pass one per face, or use "
                f"with_labels to bring the labels of an input to its cleaned mesh."
            )
        return array

    def __repr__(self) -> str:
        parts = [f"num_vertices={self.num_vertices}", f"num_faces={self.num_faces}"]
        if self.labels is not None:
            parts.append(f"num_labels={len(np.unique(self.labels))}")
        return f"Mesh({', '.join(parts)})"


@dataclass(frozen=True, eq=False)
class FaceGeometry:
    """Measures of every face; side ``s`` runs from corner ``s`` to corner ``s + 1``.

    Shapes:
        sides: [T, 3, 3], from each corner to the next, in the mesh's unit;
        lengths: [T, 3], of the sides; areas: [T], in the unit's square;
        normals: [T, 3], unit vectors, zero for faces without area.
    """

    sides: Floats
    lengths: Floats
    areas: Floats
    normals: Floats


def face_geometry(mesh: Mesh) -> FaceGeometry:
    """Measures the faces of a mesh.

    Example:
        >>> from pyg_pool.mesh import Mesh
        >>> from pyg_pool.mesh.geometry import face_geometry
        >>> right = Mesh([[0, 0, 0], [3, 0, 0], [0, 4, 0]], [[0, 1, 2]])
        >>> face_geometry(right).lengths.tolist(), face_geometry(right).areas.tolist()
        ([[3.0, 5.0, 4.0]], [6.0])
    """
    corners = mesh.vertices[mesh.faces]
    sides = corners[:, [1, 2, 0]] - corners
    cross = cross_product(sides[:, 0], sides[:, 1])
    double = norms(cross)
    normals = cross / np.where(double > 0, double, 1.0)[:, None]
    return FaceGeometry(sides, norms(sides), double / 2, normals)


def half_edges(faces: Ints) -> tuple[Ints, Ints]:
    """Start and end of the half-edges; number ``3 t + s`` is side ``s`` of face ``t``.

    Shapes:
        faces: [T, 3] int64; returns [3 T] and [3 T] int64.
    """
    return faces.reshape(-1), faces[:, [1, 2, 0]].reshape(-1)


def boundary_edges(mesh: Mesh) -> Ints:
    """Edges that belong to one face only, lower vertex first.

    Shapes:
        returns [E, 2] int64, sorted.
    """
    keys, counts = np.unique(edge_keys(mesh), return_counts=True)
    found = keys[counts == 1]
    return np.stack(np.divmod(found, max(mesh.num_vertices, 1)), axis=1)


def edge_keys(mesh: Mesh) -> Ints:
    """One number per half-edge, equal where two have the same two ends."""
    start, end = half_edges(mesh.faces)
    low, high = np.minimum(start, end), np.maximum(start, end)
    return low * mesh.num_vertices + high


def norms(vectors: Floats) -> Floats:
    """Lengths of the vectors in the last dimension."""
    lengths: Floats = np.sqrt(np.einsum("...i,...i->...", vectors, vectors))
    return lengths


def cross_product(a: Floats, b: Floats) -> Floats:
    """Cross products of the rows; NumPy's own costs more on small arrays."""
    out = np.empty_like(a)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        out[:, i] = a[:, j] * b[:, k] - a[:, k] * b[:, j]
    return out


def capped_ratio(top: Floats, bottom: Floats) -> Floats:
    """Quotients up to :data:`MAX_RATIO`; zero by zero is zero."""
    limit = np.maximum(bottom, top / MAX_RATIO)
    result: Floats = top / np.where(limit > 0, limit, 1.0)
    return result


def plain(values: Any) -> NDArray[Any]:
    """An array of anything array-like, tensors on a device included."""
    if isinstance(values, Tensor):
        values = values.detach().to(device="cpu")
        values = values.double() if values.dtype == torch.bfloat16 else values
        return np.asarray(values.numpy())
    return np.asarray(values)


def _integers(values: Any, name: str) -> Ints:
    """An array of whole numbers."""
    array = plain(values)
    if array.size and array.dtype.kind not in "iub":
        raise ValueError(
            f"Mesh got {name} of dtype {array.dtype}, expected whole numbers; number "
            f"the classes from 0 and convert to int64."
        )
    return array.astype(np.int64)


def _rows(values: Any, dtype: Any, name: str) -> NDArray[Any]:
    """A matrix of three columns; an empty one where nothing is given."""
    try:
        array = plain(values)
    except ValueError as error:  # ragged rows
        sizes = {len(row) for row in values}
        raise ValueError(
            f"Mesh got {name} with rows of {sorted(sizes)} numbers, expected 3 in "
            f"each; cut polygons into triangles with fan_triangles first."
        ) from error
    if array.size == 0:
        array = array.reshape(-1, 3)
    if array.ndim != 2 or array.shape[1] != 3:
        wanted = "triangles of shape [num_faces, 3]"
        hint = "cut polygons into triangles with fan_triangles first."
        if name == "vertices":
            wanted = "positions of shape [num_vertices, 3]"
            hint = "add a third coordinate of zeros to points of a plane."
        raise ValueError(
            f"Mesh got {name} of shape {list(array.shape)}, expected {wanted}; {hint}"
        )
    if dtype is np.int64:
        return _integers(array, name)
    return array.astype(dtype)
