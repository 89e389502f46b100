"""Fewer faces for dense meshes, and the way back to the dense faces."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from pyg_pool.errors import PygPoolWarning, require
from pyg_pool.mesh.adjacency import face_adjacency
from pyg_pool.mesh.geometry import Floats, Ints, Mesh

__all__ = ["closest_faces", "simplify_mesh"]


def simplify_mesh(mesh: Mesh, num_faces: int) -> Mesh:
    """Merges edges until about so many faces are left.

    Args:
        mesh: A clean mesh; one with fewer faces is returned as it is.
        num_faces: Faces to keep.

    Returns:
        The simplified mesh, without labels.

    Raises:
        ImportError: If libigl is not installed.
        ValueError: If ``num_faces`` is not positive.

    Note:
        Edges are merged where that changes the surface least (quadric error), and not
        where the mesh would stop being manifold, so more faces than asked may stay.
        Surfaces that meet in a single vertex only are parted there where they have to
        be. A mesh that still cannot be simplified comes back with a warning. About a
        second for 20,000 faces.

    Source:
        Garland and Heckbert, "Surface Simplification Using Quadric Error Metrics",
        SIGGRAPH 1997, as libigl implements it.

    Example:
        >>> from pyg_pool.mesh import generate_shape, simplify_mesh
        >>> simplify_mesh(generate_shape("pot"), 100).num_faces <= 100
        True
    """
    if num_faces < 1:
        raise ValueError(
            f"simplify_mesh got num_faces={num_faces}, expected a positive number; "
            f"give the size that the model was trained at."
        )
    if mesh.num_faces <= num_faces:
        return mesh
    small = _merged(mesh, num_faces)
    if small.num_faces == 0:
        small = _merged(_parted(mesh), num_faces)
    if small.num_faces == 0:
        warnings.warn(
            f"simplify_mesh got {mesh!r}, of which libigl merges no edge, expected a "
            f"manifold surface; it keeps its faces: clean it with nonmanifold='drop'.",
            PygPoolWarning,
            stacklevel=2,
        )
        return mesh
    return small


def _merged(mesh: Mesh, num_faces: int) -> Mesh:
    """What libigl leaves; nothing if it does not take the mesh."""
    igl = require("igl", "mesh")
    found = igl.qslim(
        np.ascontiguousarray(mesh.vertices, dtype=np.float64),
        np.ascontiguousarray(mesh.faces, dtype=np.int64),
        num_faces,
    )
    arrays = [part for part in found if isinstance(part, np.ndarray) and part.ndim == 2]
    if arrays[1].size == 0:
        return Mesh(np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64))
    return Mesh(arrays[0], arrays[1].astype(np.int64))


def _parted(mesh: Mesh) -> Mesh:
    """The mesh with a vertex of its own for each fan of faces around a vertex."""
    pairs, faces = face_adjacency(mesh), mesh.faces.reshape(-1)
    starts, ends = [], []
    for step in (0, 1):
        corner = 3 * pairs.low + (pairs.side_low + step) % 3
        for other in (0, 1):
            across = 3 * pairs.high + (pairs.side_high + other) % 3
            same = faces[corner] == faces[across]
            starts.append(corner[same])
            ends.append(across[same])
    start, end = np.concatenate(starts), np.concatenate(ends)
    joined = coo_matrix((np.ones(len(start)), (start, end)), shape=(len(faces),) * 2)
    number, fan = connected_components(joined, directed=False)
    vertices = np.empty((number, 3))
    vertices[fan] = mesh.vertices[faces]
    return Mesh(vertices, fan.reshape(-1, 3).astype(np.int64))


def closest_faces(mesh: Mesh, points: ArrayLike) -> Ints:
    """The face of a mesh that each point is closest to.

    Args:
        mesh: A mesh with at least one face.
        points: Positions.

    Shapes:
        points: [N, 3] float; returns [N] int64.

    Raises:
        ImportError: If libigl is not installed.
        ValueError: If the mesh has no faces.

    Example:
        >>> from pyg_pool.mesh import Mesh, closest_faces
        >>> flap = Mesh(
        ...     [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]]
        ... )
        >>> closest_faces(flap, [[0.9, 0.9, 1.0], [0.1, 0.1, -1.0]])
        array([1, 0])
    """
    if mesh.num_faces == 0:
        raise ValueError(
            f"closest_faces got {mesh!r}, expected at least one face; check what "
            f"cleaning left of the mesh."
        )
    igl = require("igl", "mesh")
    rows: Floats = np.ascontiguousarray(points, dtype=np.float64).reshape(-1, 3)
    found = igl.point_mesh_squared_distance(
        rows,
        np.ascontiguousarray(mesh.vertices, dtype=np.float64),
        np.ascontiguousarray(mesh.faces, dtype=np.int64),
    )
    faces: Ints = np.asarray(found[1]).reshape(-1).astype(np.int64)
    return faces
