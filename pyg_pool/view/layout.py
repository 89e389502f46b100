"""Positions of nodes in the plane, so that drawn distances resemble graph distances.

Stress majorisation (the SMACOF iteration) from a classical scaling start: nothing is
drawn at random, so the same graph always looks the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

__all__ = ["graph_layout"]


def graph_layout(
    edge_index: NDArray[np.int64], num_nodes: int, *, steps: int = 200
) -> NDArray[np.float64]:
    r"""Return positions whose distances approach those along the edges.

    .. math::
        \min_p \sum_{i<j} d_{ij}^{-2} (\lVert p_i - p_j \rVert - d_{ij})^2

    Args:
        edge_index: Edges; direction, loops and repeats do not matter.
        num_nodes: Number of nodes.
        steps: Iterations at most.

    Returns:
        Centred positions, the longer side of the drawing along the first axis.

    Shapes:
        edge_index: [2, E] int64. Result: [N, 2] float64, about 1 per edge length.

    Note:
        Costs N x N memory: for graphs that one can look at, up to a few thousand
        nodes. Components are set apart as if joined by one more than the longest
        distance.

    Source:
        Gansner, Koren, North, "Graph Drawing by Stress Majorization", GD 2004.

    Example:
        >>> path = np.array([[0, 1], [1, 2]])
        >>> points = graph_layout(path, 3)
        >>> np.linalg.norm(points[1:] - points[:-1], axis=1).round(2).tolist()
        [1.0, 1.0]
    """
    if num_nodes < 2:
        return np.zeros((num_nodes, 2))
    distance = _distances(edge_index, num_nodes)
    weight = 1.0 / np.maximum(distance, 1e-9) ** 2
    np.fill_diagonal(weight, 0.0)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    inverse = np.linalg.pinv(laplacian)
    points = _scaling(distance)
    before = np.inf
    for _ in range(steps):
        gap = _pairwise(points)
        stress = float((weight * (gap - distance) ** 2).sum())
        if before - stress <= 1e-6 * max(stress, 1e-12):
            break
        before = stress
        share = np.where(gap > 1e-12, weight * distance / np.maximum(gap, 1e-12), 0.0)
        points = inverse @ (np.diag(share.sum(axis=1)) - share) @ points
    return _turned(points)


def _distances(edge_index: NDArray[np.int64], num_nodes: int) -> NDArray[np.float64]:
    """Return hop distances, with a finite stand-in between components."""
    row, col = edge_index
    # Older scipy walks graphs with 32-bit indices only.
    ends = (row.astype(np.int32), col.astype(np.int32))
    graph = coo_array((np.ones(row.size), ends), shape=(num_nodes, num_nodes))
    hops = shortest_path(graph.tocsr(), directed=False, unweighted=True)
    finite = hops[np.isfinite(hops)]
    return np.where(np.isfinite(hops), hops, finite.max() + 1.0)


def _scaling(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Classical scaling: the best plane of the squared distances."""
    centred = distance**2
    centred = centred - centred.mean(axis=0) - centred.mean(axis=1)[:, None]
    values, vectors = np.linalg.eigh(-0.5 * (centred + (distance**2).mean()))
    points = vectors[:, -2:][:, ::-1] * np.sqrt(np.maximum(values[-2:][::-1], 0.0))
    # Rings fold onto each other where distances repeat; a fixed spiral parts them.
    angle = np.arange(len(points)) * 2.399963
    return points + 0.01 * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _pairwise(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Euclidean distances between all points."""
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))


def _turned(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Centre the points and lay their longest extent along the first axis."""
    points = points - points.mean(axis=0)
    _, vectors = np.linalg.eigh(points.T @ points)
    axes = vectors[:, ::-1]
    # The sign of an axis is arbitrary: let the first node that is off it decide.
    turned = points @ axes
    for axis in range(2):
        off = np.flatnonzero(np.abs(turned[:, axis]) > 1e-6)
        if off.size and turned[off[0], axis] > 0:
            turned[:, axis] *= -1
    result: NDArray[np.float64] = turned + 0.0
    return result
