"""Primal and dual graphs of a triangle mesh, without a loop over faces or edges.

The primal graph has a node per face and an edge between faces that share exactly two
vertices. The dual graph has a node per primal edge. Half-edges are sorted once; all
else is index arithmetic. Departures from the published code: faces without neighbour
have zero features instead of NaN, near ties in the order of a dual node's features
go to the lower face, and faces of inconsistent winding are measured from the lower
one, whatever the order of visits.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from pyg_pool.errors import check_choice
from pyg_pool.mesh.adjacency import Adjacency, check_finite, face_adjacency
from pyg_pool.mesh.data import PrimalDualData
from pyg_pool.mesh.face_descriptors import face_descriptors
from pyg_pool.mesh.geometry import (
    FaceGeometry,
    Floats,
    Ints,
    Mesh,
    capped_ratio,
    cross_product,
    face_geometry,
)

__all__ = ["Config", "PrimalFeatures", "primal_dual_graph"]

Config = Literal["A", "B", "C"]
PrimalFeatures = Literal["area", "dual", "shape"]

# Ratios closer than this, relative to the larger, count as equal.
_TIE = 1e-9


def primal_dual_graph(
    mesh: Mesh,
    config: Config = "A",
    *,
    primal_features: PrimalFeatures = "area",
    dtype: torch.dtype = torch.float32,
) -> PrimalDualData:
    r"""Builds the primal and the dual graph of a mesh; does not clean it.

    A dual node of the pair of faces :math:`i, j` with common edge of length
    :math:`l` holds the dihedral angle (radians, in :math:`[0, 2\pi)`, on the side to
    which the normals point: flat is :math:`\pi`, a ridge more), edge / height
    :math:`l^2 / 2 A` and edge / edge before and after, of each face.

    Args:
        mesh: The mesh; labels go to ``y``.
        config: ``"A"``: a dual node per pair, 7 features (the face with the smaller
            edge / height first), edges both ways. ``"B"``: a dual node per direction,
            4 features, edges both ways. ``"C"``: as B, with edges that follow the
            direction of their nodes.
        primal_features: ``"area"``: the face's share of the mesh's area. ``"dual"``:
            mean over its neighbours of the four features seen from the face.
            ``"shape"``: the share of the area and 28 descriptors of the face's place
            on the mesh, see :mod:`pyg_pool.mesh.face_descriptors`.
        dtype: Of the features; the geometry is measured in float64.

    Returns:
        The graphs. Areas stay as they are, in the square of the mesh's unit.

    Shapes:
        x: [T, 1], [T, 4] or [T, 29], x_dual: [P, 7] for A, [2P, 4] for B and C.

    Raises:
        ValueError: For an unknown option or coordinates that are not finite.

    Note:
        Boundary edges give no dual node. Where k faces meet at an edge all pairs
        are adjacent. Cost: O(T log T), with a clique per edge of many faces.

    Source:
        F. Milano, A. Loquercio, A. Rosinol, D. Scaramuzza, L. Carlone, "Primal-Dual
        Mesh Convolutional Neural Networks", NeurIPS 2020.

    Example:
        >>> from pyg_pool.mesh import Mesh, primal_dual_graph
        >>> flap = Mesh(
        ...     [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]]
        ... )
        >>> graph = primal_dual_graph(flap)
        >>> graph.x.view(-1), graph.edge_index.tolist()
        (tensor([0.5000, 0.5000]), [[0, 1], [1, 0]])
    """
    check_choice("primal_dual_graph", "config", config, ("A", "B", "C"))
    check_choice(
        "primal_dual_graph",
        "primal_features",
        primal_features,
        get_args(PrimalFeatures),
    )
    check_finite("primal_dual_graph", mesh)
    geometry, adjacency = face_geometry(mesh), face_adjacency(mesh)
    alpha, low, high = _pair_features(geometry, adjacency)
    edges, order, pair = _directed(adjacency, mesh.num_faces)
    seen = _directed_features(alpha, low, high, order)
    if config == "A":
        x_dual = _single_features(alpha, low, high)
        edge_to_dual = pair
    else:
        x_dual, edge_to_dual = seen, np.arange(len(order))
    if primal_features == "dual":
        own = _seen_from_themselves(seen, edges, adjacency.is_clash[pair])
        x = _mean_by_source(own, edges[0], mesh.num_faces)
    else:
        x = _shares(geometry.areas)
    if primal_features == "shape":
        x = np.hstack([x, face_descriptors(mesh, geometry, adjacency)])
    dual = _dual_edges(edges, order, edge_to_dual, mesh.num_faces, config)
    return PrimalDualData(
        x=torch.from_numpy(x).to(dtype),
        x_dual=torch.from_numpy(x_dual).to(dtype),
        edge_index=torch.from_numpy(edges),
        edge_index_dual=torch.from_numpy(dual),
        edge_to_dual=torch.from_numpy(edge_to_dual),
        face_areas=torch.from_numpy(geometry.areas).to(dtype),
        y=None if mesh.labels is None else torch.from_numpy(mesh.labels.copy()),
    )


def _pair_features(
    geometry: FaceGeometry, adjacency: Adjacency
) -> tuple[Floats, Floats, Floats]:
    """Dihedral angle [P], and ratios [P, 3] seen from the low and the high face."""
    a, b = adjacency.side_low, adjacency.side_high
    lengths = geometry.lengths.reshape(-1)
    edge = geometry.sides.reshape(-1, 3)[a]
    length = lengths[a]
    edge = edge / np.where(length > 0, length, 1.0)[:, None]
    n_low, n_high = geometry.normals[adjacency.low], geometry.normals[adjacency.high]
    y = np.einsum("ij,ij->i", cross_product(n_low, edge), n_high)
    x = -np.einsum("ij,ij->i", n_low, n_high)
    alpha = np.arctan2(y, x)
    alpha = np.where(alpha < 0, alpha + 2 * np.pi, alpha)
    # Without a normal there is no angle: neither a ridge nor a valley.
    flat = (x == 0) & (y == 0)
    alpha = np.where(flat, np.pi, np.where(alpha >= 2 * np.pi, 0.0, alpha))
    low, high = _ratios(geometry, a), _ratios(geometry, b)
    # A face of the other winding is walked backwards: before and after change places.
    clash = adjacency.is_clash
    high[clash, 1:] = high[clash, :0:-1]
    return alpha, low, high


def _ratios(geometry: FaceGeometry, side: Ints) -> Floats:
    """Edge / height, edge / edge before and edge / edge after, of half-edges."""
    face, place = side // 3, side % 3
    lengths = geometry.lengths
    length = lengths[face, place]
    return np.stack(
        [
            capped_ratio(length * length, 2 * geometry.areas[face]),
            capped_ratio(length, lengths[face, (place + 2) % 3]),
            capped_ratio(length, lengths[face, (place + 1) % 3]),
        ],
        axis=1,
    )


def _directed(adjacency: Adjacency, num_faces: int) -> tuple[Ints, Ints, Ints]:
    """Edges both ways, sorted; their place in (pairs, reversed pairs); their pair."""
    num_pairs = len(adjacency.low)
    source = np.concatenate([adjacency.low, adjacency.high])
    target = np.concatenate([adjacency.high, adjacency.low])
    order = np.argsort(source * max(num_faces, 1) + target, kind="stable")
    pair = np.where(order >= num_pairs, order - num_pairs, order)
    return np.stack([source[order], target[order]]), order, pair


def _directed_features(alpha: Floats, low: Floats, high: Floats, order: Ints) -> Floats:
    """Angle and ratios of each directed edge, seen from its source."""
    angle = np.concatenate([alpha, alpha])[:, None]
    return np.hstack([angle, np.concatenate([low, high])])[order]


def _seen_from_themselves(
    seen: Floats, edges: Ints, is_clash: NDArray[np.bool_]
) -> Floats:
    """Features of directed edges where a face is never walked backwards."""
    back = is_clash & (edges[0] > edges[1])
    own = seen.copy()
    angle = seen[back, 0]
    own[back, 0] = np.where(angle > 0, 2 * np.pi - angle, angle)
    own[back, 2:] = seen[back, :1:-1]
    return own


def _single_features(alpha: Floats, low: Floats, high: Floats) -> Floats:
    """Angle and the ratios of both faces, the smaller edge / height first."""
    larger = np.maximum(low[:, 0], high[:, 0])
    swap = low[:, 0] - high[:, 0] > _TIE * larger
    first = np.where(swap[:, None], high, low)
    second = np.where(swap[:, None], low, high)
    both = np.stack([first, second], axis=2).reshape(len(alpha), 6)
    return np.hstack([alpha[:, None], both])


def _mean_by_source(values: Floats, source: Ints, size: int) -> Floats:
    """Mean of the rows of each source; zeros where there is none."""
    count = np.bincount(source, minlength=size)
    sums = [np.bincount(source, column, minlength=size) for column in values.T]
    mean: Floats = np.stack(sums, axis=1) / np.maximum(count, 1)[:, None]
    return mean


def _shares(areas: Floats) -> Floats:
    """Each face's share of the whole area; zeros where there is no area."""
    total = areas.sum()
    return (areas / (total if total > 0 else 1.0))[:, None]


def _dual_edges(
    edges: Ints, order: Ints, dual: Ints, num_faces: int, config: Config
) -> Ints:
    """Pairs of dual nodes that belong to one face, sorted by source and target."""
    degree = np.bincount(edges[0], minlength=num_faces)[edges[0]]
    place = np.arange(edges.shape[1])
    begin = np.searchsorted(edges[0], edges[0])
    one = np.repeat(place, degree)
    offset = np.arange(len(one)) - np.repeat(np.cumsum(degree) - degree, degree)
    other = begin[one] + offset
    one, other = one[one != other], other[one != other]
    if config == "A":
        source, target = dual[one], dual[other]
        num_dual = edges.shape[1] // 2
    else:
        # From the edge into the face to the edge out of it.
        place_of = np.empty_like(order)
        place_of[order] = place
        half = len(order) // 2
        back = place_of[np.where(order >= half, order - half, order + half)]
        source, target = back[one], other
        if config == "B":
            source, target = (
                np.concatenate([source, target]),
                np.concatenate([target, source]),
            )
        num_dual = edges.shape[1]
    key = np.sort(source * max(num_dual, 1) + target)
    return np.stack(np.divmod(key, max(num_dual, 1)))
