"""Random changes of a mesh that keep its shape and labels: scale, slide, flip.

After MeshCNN. Its slides and flips stop with an error on open meshes and may turn
faces over; these work on any mesh without repeated half-edges, keep the boundary,
and never turn a face by more than a right angle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from pyg_pool.mesh.adjacency import face_adjacency
from pyg_pool.mesh.geometry import (
    Floats,
    Ints,
    Mesh,
    boundary_edges,
    cross_product,
    edge_keys,
    face_geometry,
    norms,
)

__all__ = ["MeshAugmentation", "flip_edges", "scale_vertices", "slide_vertices"]

# Radians: how far from flat a slide and a flip may be, and the narrowest angle of a
# new face.
_SLIDE_ANGLE, _FLIP_ANGLE, _NARROW = 2.65, 2.7, 0.02


@dataclass(frozen=True)
class MeshAugmentation:
    """Scale, slide and flip with fixed strengths; callable on a mesh.

    Args:
        scale: Standard deviation of the factor of each vertex; 0 leaves them.
        slide: Share of the vertices that slide at most.
        flip: Share of the edges that flip at most.

    Example:
        >>> import torch
        >>> from pyg_pool.mesh import MeshAugmentation, generate_shape
        >>> seed = torch.Generator().manual_seed(0)
        >>> MeshAugmentation()(generate_shape("cup", generator=seed), seed)
        Mesh(num_vertices=266, num_faces=532, num_labels=3)
    """

    scale: float = 0.0
    slide: float = 0.2
    flip: float = 0.2

    def __call__(self, mesh: Mesh, generator: torch.Generator | None = None) -> Mesh:
        """Returns a changed copy."""
        mesh = flip_edges(mesh, self.flip, generator=generator)
        mesh = slide_vertices(mesh, self.slide, generator=generator)
        return scale_vertices(mesh, self.scale, generator=generator)


def scale_vertices(
    mesh: Mesh,
    std: float = 0.1,
    *,
    mean: float = 1.0,
    generator: torch.Generator | None = None,
) -> Mesh:
    """Moves every vertex along its ray from the origin, by a normal random factor.

    Args:
        mesh: The mesh.
        std: Standard deviation of the factors.
        mean: Their mean.
        generator: Source of the factors.
    """
    shape = (mesh.num_vertices, 1)
    factor = mean + std * torch.randn(shape, generator=generator, dtype=torch.float64)
    return _moved(mesh, mesh.vertices * factor.numpy())


def slide_vertices(
    mesh: Mesh, fraction: float = 0.2, *, generator: torch.Generator | None = None
) -> Mesh:
    """Moves vertices of nearly flat places towards a neighbour, 0.2 to 0.5 of the way.

    Args:
        mesh: The mesh.
        fraction: Share of all vertices that move at most.
        generator: Source of vertices, neighbours and ways.

    Raises:
        ValueError: If the fraction is not in 0 to 1.

    Note:
        A vertex may move if the dihedral angles of all its edges lie within 0.49
        radians of flat; one on the boundary never does. Moves that would turn a face
        over are taken back.
    """
    _check_fraction("slide_vertices", fraction)
    start, end = _edge_ends(mesh)
    movable = _flat_vertices(mesh)
    count = min(int(fraction * mesh.num_vertices), int(movable.sum()))
    if count == 0:
        return mesh
    chosen = np.flatnonzero(movable)
    chosen = np.sort(chosen[_order(len(chosen), generator)[:count]])
    # One random half-edge out of each chosen vertex.
    source, target = np.concatenate([start, end]), np.concatenate([end, start])
    order = np.lexsort((_order(len(source), generator), source))
    source, target = source[order], target[order]
    goal = target[np.searchsorted(source, chosen)]
    way = 0.2 + 0.3 * torch.rand(count, 1, generator=generator, dtype=torch.float64)
    step = np.zeros_like(mesh.vertices)
    step[chosen] = way.numpy() * (mesh.vertices[goal] - mesh.vertices[chosen])
    before = face_geometry(mesh).normals
    while True:
        moved = _moved(mesh, mesh.vertices + step)
        after = face_geometry(moved).normals
        turned = (before * after).sum(axis=1) <= 0
        # Faces that had no area cannot be turned over.
        turned &= (before != 0).any(axis=1) & step[mesh.faces].any(axis=(1, 2))
        if not turned.any():
            return moved
        step[mesh.faces[turned]] = 0.0


def flip_edges(
    mesh: Mesh, fraction: float = 0.2, *, generator: torch.Generator | None = None
) -> Mesh:
    """Turns edges of nearly flat places to the other diagonal of their two faces.

    Args:
        mesh: The mesh.
        fraction: Share of all edges that flip at most.
        generator: Source of the choice.

    Returns:
        A mesh with the same numbers of vertices, edges and faces, the same winding
        and boundary. Face ``i`` keeps its label and ``face_index``.

    Raises:
        ValueError: If the fraction is not in 0 to 1.

    Note:
        An edge may flip if its dihedral angle lies within 0.44 radians of flat, its
        faces have one label and one winding, the new edge is not in the mesh yet,
        no new angle is narrower than 0.02 radians, and no normal turns by more than
        a right angle, from the mesh that was given either. Flips go in rounds of
        edges that share no face.
    """
    _check_fraction("flip_edges", fraction)
    faces = mesh.faces.copy()
    left = int(fraction * len(np.unique(edge_keys(mesh))))
    done = np.empty(0, dtype=np.int64)
    start = face_geometry(mesh).normals
    while left > 0:
        current = Mesh(mesh.vertices, faces, mesh.labels)
        i, j, new, ends = _flippable(current, start)
        keys = _keys(ends, mesh.num_vertices)
        fresh = ~np.isin(keys, done)
        i, j, new, keys = i[fresh], j[fresh], new[fresh], keys[fresh]
        winners = _apart(i, j, new, mesh.num_faces, generator)[:left]
        if len(winners) == 0:
            break
        faces[i[winners]], faces[j[winners]] = new[winners, 0], new[winners, 1]
        # What has been turned stays.
        flipped = _keys(new[winners, 0, 1:], mesh.num_vertices)
        done = np.concatenate([done, flipped])
        left -= len(winners)
    return Mesh(mesh.vertices, faces, mesh.labels, mesh.face_index)


def _flippable(mesh: Mesh, start: Floats) -> tuple[Ints, Ints, Ints, Ints]:
    """Faces of the edges that may flip, the faces instead, and the edges' ends."""
    pairs = face_adjacency(mesh)
    i, j = pairs.low, pairs.high
    a, b = pairs.side_low, pairs.side_high
    keys, counts = np.unique(edge_keys(mesh), return_counts=True)
    shared = edge_keys(mesh)[a]
    fits = (counts[np.searchsorted(keys, shared)] == 2) & ~pairs.is_clash
    if mesh.labels is not None:
        fits &= mesh.labels[i] == mesh.labels[j]
    i, j, a, b = i[fits], j[fits], a[fits], b[fits]
    u = mesh.faces[i, a % 3]
    v = mesh.faces[i, (a + 1) % 3]
    c, d = mesh.faces[i, (a + 2) % 3], mesh.faces[j, (b + 2) % 3]
    new = np.stack([np.stack([u, d, c], 1), np.stack([v, c, d], 1)], 1)
    normals, sharp = _normals_and_sharpness(mesh.vertices, new)
    old = face_geometry(mesh).normals
    flat = _dihedral(mesh, i, j, u, v)
    fits = (flat > _FLIP_ANGLE) & (flat < 2 * math.pi - _FLIP_ANGLE)
    fits &= ~np.isin(_keys(np.stack([c, d], 1), mesh.num_vertices), keys) & ~sharp
    for normal in (old[i], old[j], start[i], start[j]):
        fits &= (np.einsum("fki,fi->fk", normals, normal) > 0).all(axis=1)
    return i[fits], j[fits], new[fits], np.stack([u, v], 1)[fits]


def _normals_and_sharpness(
    points: Floats, faces: Ints
) -> tuple[Floats, NDArray[np.bool_]]:
    """Normals of pairs of faces [P, 2, 3], and whether one has a narrow angle."""
    corners = points[faces]
    sides = corners[:, :, [1, 2, 0]] - corners
    flat = sides.reshape(-1, 3, 3)
    cross = cross_product(flat[:, 0], flat[:, 1])
    double = norms(cross)
    length = norms(flat)
    # Twice the area over two sides is the sine of the angle between them.
    product = length * length[:, [1, 2, 0]]
    sine = double[:, None] / np.where(product > 0, product, np.inf)
    narrow = sine < math.sin(_NARROW)
    sharp: NDArray[np.bool_] = np.asarray(narrow.reshape(-1, 6).any(axis=1))
    normals = cross / np.where(double > 0, double, 1.0)[:, None]
    return normals.reshape(-1, 2, 3), sharp


def _dihedral(mesh: Mesh, i: Ints, j: Ints, u: Ints, v: Ints) -> Floats:
    """Dihedral angles between faces with the edge from u to v of face i."""
    normals = face_geometry(mesh).normals
    edge = mesh.vertices[v] - mesh.vertices[u]
    length = norms(edge)
    edge = edge / np.where(length > 0, length, 1.0)[:, None]
    y = (cross_product(normals[i], edge) * normals[j]).sum(axis=1)
    alpha = np.arctan2(y, -(normals[i] * normals[j]).sum(axis=1))
    angles: Floats = np.where(alpha < 0, alpha + 2 * math.pi, alpha)
    return angles


def _apart(
    i: Ints, j: Ints, new: Ints, num_faces: int, generator: torch.Generator | None
) -> Ints:
    """A random choice of flips that share no face and make no edge twice."""
    rank = _order(len(i), generator)
    best = np.full(num_faces, len(i))
    np.minimum.at(best, i, rank)
    np.minimum.at(best, j, rank)
    winners = np.flatnonzero((best[i] == rank) & (best[j] == rank))
    winners = winners[np.argsort(rank[winners])]
    ends = np.sort(new[winners, 0, 1:], axis=1)
    first = np.unique(ends, axis=0, return_index=True)[1]
    kept: Ints = winners[np.sort(first)]
    return kept


def _flat_vertices(mesh: Mesh) -> NDArray[np.bool_]:
    """Inner vertices whose edges are all nearly flat."""
    pairs = face_adjacency(mesh)
    u = mesh.faces[pairs.low, pairs.side_low % 3]
    v = mesh.faces[pairs.low, (pairs.side_low + 1) % 3]
    alpha = _dihedral(mesh, pairs.low, pairs.high, u, v)
    steep = (alpha <= _SLIDE_ANGLE) | (alpha >= 2 * math.pi - _SLIDE_ANGLE)
    flat = np.zeros(mesh.num_vertices, dtype=bool)
    flat[u] = flat[v] = True
    flat[u[steep]] = flat[v[steep]] = False
    flat[boundary_edges(mesh).reshape(-1)] = False
    return flat


def _edge_ends(mesh: Mesh) -> tuple[Ints, Ints]:
    """Both ends of every edge."""
    low, high = np.divmod(np.unique(edge_keys(mesh)), max(mesh.num_vertices, 1))
    return low, high


def _keys(ends: Ints, num_vertices: int) -> Ints:
    """One number per pair of vertices in any order."""
    result: Ints = ends.min(axis=1) * num_vertices + ends.max(axis=1)
    return result


def _order(size: int, generator: torch.Generator | None) -> Ints:
    """A random order."""
    return np.asarray(torch.randperm(size, generator=generator).numpy())


def _moved(mesh: Mesh, vertices: Floats) -> Mesh:
    """The mesh with its vertices elsewhere."""
    return Mesh(vertices, mesh.faces, mesh.labels, mesh.face_index)


def _check_fraction(owner: str, fraction: float) -> None:
    """Raises ``ValueError`` for a share that is none."""
    if not 0 <= fraction <= 1:
        raise ValueError(
            f"{owner} got fraction={fraction}, expected a share from 0 to 1; pass "
            f"0.2 to change a fifth."
        )
