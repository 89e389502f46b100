"""Fewer faces for dense meshes, and the way back to the dense faces."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pyg_pool.errors import require
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
        About a second for 20,000 faces.

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
    igl = require("igl", "mesh")
    found = igl.qslim(
        np.ascontiguousarray(mesh.vertices, dtype=np.float64),
        np.ascontiguousarray(mesh.faces, dtype=np.int64),
        num_faces,
    )
    arrays = [part for part in found if isinstance(part, np.ndarray) and part.ndim == 2]
    return Mesh(arrays[0], arrays[1].astype(np.int64))


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
