"""Which faces of a mesh are neighbours, by one sort of their half-edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyg_pool.mesh.geometry import Ints, Mesh, edge_keys, half_edges

__all__ = ["Adjacency", "check_finite", "face_adjacency", "pairs_in_runs"]


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Adjacent faces, each pair once, and the half-edge of each that they share.

    Shapes:
        low, high: [P] int64, faces with low < high, sorted; side_low, side_high: [P]
        int64, half-edges ``3 t + s`` of these faces; is_clash: [P] bool, whether both
        run the same way, which faces of one winding never do.
    """

    low: Ints
    high: Ints
    side_low: Ints
    side_high: Ints
    is_clash: NDArray[np.bool_]


def face_adjacency(mesh: Mesh) -> Adjacency:
    """Finds the pairs of faces that share exactly two vertices.

    Note:
        Two copies of a triangle, whatever their winding, share three and are not
        adjacent. A face that repeats a vertex has one edge, or none.
    """
    keys = edge_keys(mesh)
    start, end = half_edges(mesh.faces)
    rank = np.arange(len(keys))
    usable = start != end
    if not usable.all():
        # A face (a, a, b) runs along the edge a b twice: the first counts.
        side = rank % 3
        for back in (1, 2):
            earlier = np.where(side >= back, rank - back, rank)
            usable &= (side < back) | (keys[earlier] != keys) | ~(start != end)[earlier]
        keys, rank = keys[usable], rank[usable]
    order = np.argsort(keys, kind="stable")
    keys, rank = keys[order], rank[order]
    first, second = pairs_in_runs(keys)
    a, b = rank[first], rank[second]
    pair = (a // 3) * max(mesh.num_faces, 1) + b // 3
    order = np.argsort(pair, kind="stable")
    pair, a, b = pair[order], a[order], b[order]
    # Pairs that share one edge; those that share more are copies of a triangle.
    differs = np.concatenate([[True], pair[1:] != pair[:-1], [True]])
    once = differs[:-1] & differs[1:] if len(pair) else np.empty(0, dtype=bool)
    a, b = a[once], b[once]
    return Adjacency(a // 3, b // 3, a, b, start[a] == start[b])


def check_finite(owner: str, mesh: Mesh) -> None:
    """Raises ``ValueError`` if a vertex that a face uses is not finite."""
    used = mesh.vertices[mesh.faces.reshape(-1)]
    bad = ~np.isfinite(used).all(axis=1)
    if bad.any():
        faces = np.flatnonzero(bad.reshape(-1, 3).any(axis=1))
        raise ValueError(
            f"{owner} got a mesh with NaN or infinite coordinates in {len(faces)} "
            f"faces (first: {faces[0]}), expected finite numbers; drop these faces or "
            f"mend the file."
        )


def pairs_in_runs(keys: Ints) -> tuple[Ints, Ints]:
    """All pairs of places, the earlier first, that hold the same sorted key."""
    if len(keys) == 0:
        return keys, keys
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    sizes = np.diff(np.append(starts, len(keys)))
    place = np.arange(len(keys))
    after = np.repeat(starts + sizes, sizes) - place - 1
    first = np.repeat(place, after)
    offset = np.arange(len(first)) - np.repeat(np.cumsum(after) - after, after)
    return first, first + 1 + offset
