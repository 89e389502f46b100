"""Repair of triangle meshes: one fixed order of steps, and a way back to the input.

Vertices at the same place are merged, copies of faces and faces without area go,
windings are made to agree, faces that would make an edge non-manifold go, unused
vertices go. The published code does the same without saying how many faces it loses;
here ``face_index`` leads from every kept face to its input face, labels follow, and
a warning names the losses.
"""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from pyg_pool.errors import PygPoolWarning, check_choice
from pyg_pool.kernels import connected_components
from pyg_pool.mesh.adjacency import check_finite
from pyg_pool.mesh.geometry import Floats, Ints, Mesh, edge_keys, half_edges, norms

__all__ = ["NonManifold", "clean_mesh", "merge_vertices", "winding_flips"]

NonManifold = Literal["drop", "keep", "error"]


def clean_mesh(
    mesh: Mesh,
    *,
    nonmanifold: NonManifold = "drop",
    fix_winding: bool = True,
    merge_tolerance: float = 0.0,
) -> Mesh:
    """Returns a mesh that the graphs of a primal-dual network can be built from.

    In this order: vertices at the same place become one (the first); faces that
    repeat a vertex go, and of the copies of a face one of the commoner winding stays
    (none if both are equally common: a fin); faces of area 0 go; windings are made to
    agree; non-manifold edges are treated; unused vertices go.

    Args:
        mesh: Any mesh; it is not changed.
        nonmanifold: What happens where a half-edge occurs twice, because more than
            two faces meet there or two windings disagree. ``"drop"``: faces are
            walked in order and one stays only if none of its half-edges belongs to
            a face that stayed. ``"keep"``: nothing. ``"error"``: a ``ValueError``
            names the edge.
        fix_winding: Whether to turn over the faces that disagree with the majority
            of their surface. Surfaces with one side only are left alone.
        merge_tolerance: Distance along each axis, in the mesh's unit, up to which
            vertices are at the same place. 0 merges equal coordinates; 1e-12 also
            closes seams that rounding left open.

    Returns:
        The cleaned mesh; ``face_index`` leads to the faces of the input (of the
        first one, if that was cleaned already), ``labels`` are those of these faces.

    Raises:
        ValueError: For an unknown option, coordinates that are not finite, or a
            non-manifold edge where that is an error.

    Note:
        Warns with the number of faces lost, by reason. Cost: O(T log T).

    Example:
        >>> from pyg_pool.mesh import Mesh, clean_mesh
        >>> vertices = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]]
        >>> welded = clean_mesh(Mesh(vertices, [[0, 1, 2], [2, 3, 4]]))
        >>> welded.num_vertices, welded.faces.tolist()
        (4, [[0, 1, 2], [2, 1, 3]])
    """
    check_choice("clean_mesh", "nonmanifold", nonmanifold, ("drop", "keep", "error"))
    check_finite("clean_mesh", mesh)
    place = merge_vertices(mesh.vertices, merge_tolerance)
    faces = place[mesh.faces]
    kept = _one_of_copies(faces)
    lost = {"repeat a vertex or another face": len(faces) - len(kept)}
    has_area = _heron(mesh.vertices[faces[kept]]) > 0
    lost["have no area"] = int((~has_area).sum())
    kept = kept[has_area]
    faces = faces[kept]
    if fix_winding:
        flips = winding_flips(faces, mesh.num_vertices)
        faces[flips] = faces[flips][:, [0, 2, 1]]
    if nonmanifold == "error":
        _refuse_nonmanifold(mesh, faces, kept)
    if nonmanifold == "drop":
        fits = _manifold_part(faces, mesh.num_vertices)
        lost["share a half-edge with an earlier face"] = int((~fits).sum())
        faces, kept = faces[fits], kept[fits]
    _warn_of_losses(lost, mesh.num_faces)
    used, numbers = np.unique(faces, return_inverse=True)
    return Mesh(
        mesh.vertices[used],
        numbers.reshape(-1, 3),
        None if mesh.labels is None else mesh.labels[kept],
        kept if mesh.face_index is None else mesh.face_index[kept],
    )


def merge_vertices(vertices: Floats, tolerance: float = 0.0) -> Ints:
    """The first vertex at the place of each vertex.

    Args:
        vertices: Positions.
        tolerance: Vertices no further apart than this along every axis, or joined
            by a chain of such, are at one place.

    Shapes:
        vertices: [V, 3]; returns [V] int64.
    """
    group = np.zeros(len(vertices), dtype=np.int64)
    number = 1 if len(vertices) else 0
    while True:
        before = number
        for column in vertices.T:
            order = np.lexsort((column, group))
            sorted_group, value = group[order], column[order]
            gap = np.abs(value[1:] - value[:-1]) > tolerance
            starts = (sorted_group[1:] != sorted_group[:-1]) | gap
            group[order[1:]] = np.cumsum(starts)
            group[order[:1]] = 0
        number = int(group.max(initial=-1)) + 1
        if number in (before, len(vertices)):
            break
    first = np.full(number, len(vertices))
    np.minimum.at(first, group, np.arange(len(vertices)))
    return first[group]


def winding_flips(faces: Ints, num_vertices: int) -> NDArray[np.bool_]:
    """The faces to turn over so that neighbours across two-faced edges agree.

    Shapes:
        faces: [T, 3] int64; returns [T] bool.

    Note:
        Every face has two states, turned and not; joining the states that agree
        gives two components per orientable surface. The one that turns fewer faces
        is chosen, with equal numbers the one that leaves its lowest face alone.
    """
    size = len(faces)
    start, end = half_edges(faces)
    keys = np.minimum(start, end) * num_vertices + np.maximum(start, end)
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    new = np.concatenate([[True], sorted_keys[1:] != sorted_keys[:-1]])[: len(keys)]
    begin = np.flatnonzero(new)
    begin = begin[np.diff(np.append(begin, len(keys))) == 2]
    a, b = order[begin], order[begin + 1]
    clash = start[a] == start[b]
    if not clash.any():
        return np.zeros(size, dtype=bool)
    low, high = a // 3, b // 3
    source = np.concatenate([low, low + size])
    target = np.where(clash, high + size, high)
    target = np.concatenate([target, np.where(clash, high, high + size)])
    edges = torch.from_numpy(np.stack([source, target]))
    state = connected_components(edges, 2 * size).numpy()
    plain, turned = state[:size], state[size:]
    # Components are numbered by their lowest node: the state of the lowest face.
    root = np.minimum(plain, turned)
    flips = (plain != root) & (plain != turned)
    turned_count = np.bincount(root, flips, minlength=2 * size)
    count = np.bincount(root, minlength=2 * size)
    invert = (2 * turned_count > count)[root] & (plain != turned)
    result: NDArray[np.bool_] = flips ^ invert
    return result


def _one_of_copies(faces: Ints) -> Ints:
    """The faces to keep of those with the same corners, by first appearance."""
    corners = np.sort(faces, axis=1)
    order = np.lexsort((corners[:, 2], corners[:, 1], corners[:, 0]))
    ranked = corners[order]
    new = np.concatenate([[True], (ranked[1:] != ranked[:-1]).any(axis=1)])[
        : len(faces)
    ]
    group = np.empty(len(faces), dtype=np.int64)
    group[order] = np.cumsum(new) - 1
    number = int(new.sum())
    # +1 where the corners ascend when the lowest comes first, else -1.
    after = np.take_along_axis(
        faces, (faces.argmin(axis=1)[:, None] + np.array([1, 2])) % 3, axis=1
    )
    winding = np.where(after[:, 0] < after[:, 1], 1, -1)
    balance = np.bincount(group, winding, minlength=number)
    repeats = (corners[:, 1:] == corners[:, :-1]).any(axis=1)
    fits = (winding * balance[group] > 0) & ~repeats
    index = np.arange(len(faces))
    first, last = np.full(number, len(faces)), np.full(number, -1)
    np.minimum.at(first, group, index)
    np.maximum.at(last, group[fits], index[fits])
    alive = last >= 0
    kept: Ints = last[alive][np.argsort(first[alive])]
    return kept


def _heron(corners: Floats) -> Floats:
    """Squared areas from the side lengths, as the published cleaning takes them."""
    a, b, c = norms(corners - corners[:, [1, 2, 0]]).T
    half = (a + b + c) / 2
    squared: Floats = half * (half - a) * (half - b) * (half - c)
    return squared


def _manifold_part(faces: Ints, num_vertices: int) -> NDArray[np.bool_]:
    """Which faces a walk in order keeps so that no half-edge occurs twice."""
    start, end = half_edges(faces)
    _, number, count = np.unique(
        start * num_vertices + end, return_inverse=True, return_counts=True
    )
    sides = number.reshape(-1, 3)
    kept = np.ones(len(faces), dtype=bool)
    taken: set[int] = set()
    # Each choice depends on those before, but only where half-edges repeat.
    doubtful = np.flatnonzero((count[sides] > 1).any(axis=1))
    for face, own in zip(doubtful.tolist(), sides[doubtful].tolist(), strict=True):
        if taken.isdisjoint(own):
            taken.update(own)
        else:
            kept[face] = False
    return kept


def _refuse_nonmanifold(mesh: Mesh, faces: Ints, kept: Ints) -> None:
    """Raises if a half-edge occurs twice or more than two faces meet at an edge."""
    if len(faces) == 0:
        return
    start, end = half_edges(faces)
    _, number, directed = np.unique(
        start * mesh.num_vertices + end, return_inverse=True, return_counts=True
    )
    numbers = (directed[number] > 1).reshape(-1)
    keys = edge_keys(Mesh(mesh.vertices, faces))
    bad = np.unique(keys[numbers])
    if len(bad) == 0:
        return
    low, high = divmod(int(bad[0]), mesh.num_vertices)
    around = kept[np.flatnonzero(keys == bad[0]) // 3].tolist()
    places = [mesh.vertices[v].tolist() for v in (low, high)]
    raise ValueError(
        f"clean_mesh got a mesh with {len(bad)} non-manifold edges, first: vertices "
        f"{low} and {high} at {places[0]} and {places[1]}, where faces {around} meet; "
        f"expected at most two faces at an edge, wound alike; use nonmanifold='drop' "
        f"or 'keep', or mend the file."
    )


def _warn_of_losses(lost: dict[str, int], total: int) -> None:
    """Warns with the number of lost faces and the reasons."""
    number = sum(lost.values())
    if number == 0:
        return
    reasons = ", ".join(f"{count} {why}" for why, count in lost.items() if count)
    warnings.warn(
        f"clean_mesh dropped {number} of {total} faces ({reasons}), expected none to "
        f"go; face_index of the result names those that stayed, and "
        f"nonmanifold='keep' keeps those that share a half-edge.",
        PygPoolWarning,
        stacklevel=3,
    )
