"""What is drawn of each level: places, edges, kept nodes, clusters and scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from pyg_pool.view.layout import graph_layout

if TYPE_CHECKING:
    from pyg_pool.core.hierarchy import Hierarchy

__all__ = ["Panel", "make_panels"]


@dataclass
class Panel:
    """What is drawn of one level: node rows count within the graph."""

    points: NDArray[np.float64]
    edges: NDArray[np.int64]
    kept: NDArray[np.bool_]
    cluster: NDArray[np.int64]
    score: NDArray[np.float64] | None
    names: list[str]


def make_panels(
    hierarchy: Hierarchy,
    graph: int,
    positions: ArrayLike | None,
    labels: Sequence[str] | None,
) -> list[Panel]:
    """Cut the graph out of every level."""
    nodes = [_nodes_of(level, graph) for level in hierarchy.levels]
    edges = [
        _pairs(level.edge_index, rows)
        for level, rows in zip(hierarchy.levels, nodes, strict=True)
    ]
    count = nodes[0].size
    if positions is None:
        points = graph_layout(edges[0], count)
    else:
        points = np.asarray(positions, dtype=np.float64)
    if points.shape != (count, 2):
        raise ValueError(
            f"draw_hierarchy got positions of shape {list(points.shape)}, expected "
            f"[{count}, 2]; give one place per node of graph {graph}."
        )
    if labels is not None and len(labels) != count:
        raise ValueError(
            f"draw_hierarchy got {len(labels)} labels, expected {count}; give one per "
            f"node of graph {graph}."
        )
    names = list(labels) if labels is not None else [""] * count
    panels = []
    for i, rows in enumerate(nodes):
        kept = np.ones(rows.size, dtype=bool)
        cluster = np.zeros(rows.size, dtype=np.int64)
        score = None
        members: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        if i + 1 < len(nodes):
            members = _members(hierarchy.selections[i], rows, nodes[i + 1])
            kept[:] = False
            kept[members[0]] = True
            cluster[members[0]] = members[1]
            score = _scores(hierarchy.levels[i + 1], nodes[i + 1], members, rows.size)
        panels.append(Panel(points, edges[i], kept, cluster, score, names))
        if members is not None:
            points, names = _coarse(points, names, members, nodes[i + 1].size)
    return panels


def _nodes_of(level: Any, graph: int) -> NDArray[np.int64]:
    """Return the rows of a level that belong to the graph."""
    if level.batch is None:
        known = 1
        rows = np.arange(level.num_nodes)
    else:
        batch = _array(level.batch)
        known = level.batch_size or int(batch.max(initial=-1)) + 1
        rows = np.flatnonzero(batch == graph)
    if not 0 <= graph < known:
        raise ValueError(
            f"draw_hierarchy got graph={graph}, expected 0 to {known - 1}; choose a "
            "graph of the batch."
        )
    return rows


def _pairs(edge_index: Tensor, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the undirected edges inside the graph, loops left out, renumbered."""
    ends = _array(edge_index)
    place = np.full(max(int(ends.max(initial=-1)), int(rows.max(initial=-1))) + 1, -1)
    place[rows] = np.arange(rows.size)
    ends = place[ends]
    ends = ends[:, (ends >= 0).all(axis=0) & (ends[0] != ends[1])]
    pairs: NDArray[np.int64] = np.unique(np.sort(ends, axis=0), axis=1)
    return pairs.reshape(2, -1)


def _members(
    selection: Any, fine: NDArray[np.int64], coarse: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return fine node and coarse cluster of every assignment in the graph."""
    place = np.full(selection.num_nodes, -1)
    place[fine] = np.arange(fine.size)
    cluster = np.full(selection.num_clusters, -1)
    cluster[coarse] = np.arange(coarse.size)
    node = place[_array(selection.node_index)]
    goal = cluster[_array(selection.cluster_index)]
    inside = (node >= 0) & (goal >= 0)
    return node[inside], goal[inside]


def _scores(
    level: Any,
    rows: NDArray[np.int64],
    members: tuple[NDArray[np.int64], NDArray[np.int64]],
    count: int,
) -> NDArray[np.float64] | None:
    """Return the score of every kept fine node, where the pool gives one per node."""
    node, cluster = members
    if (
        level.score is None
        or level.score.dim() != 1
        or np.unique(cluster).size != node.size
    ):
        return None
    score = np.full(count, np.nan)
    score[node] = _array(level.score.float())[rows][cluster]
    return score


def _coarse(
    points: NDArray[np.float64],
    names: list[str],
    members: tuple[NDArray[np.int64], NDArray[np.int64]],
    count: int,
) -> tuple[NDArray[np.float64], list[str]]:
    """Return places and texts of the coarse nodes."""
    node, cluster = members
    total = np.zeros((count, 2))
    np.add.at(total, cluster, points[node])
    size = np.bincount(cluster, minlength=count)
    coarse_names = [""] * count
    for fine, coarse in zip(node.tolist(), cluster.tolist(), strict=True):
        if size[coarse] == 1:
            coarse_names[coarse] = names[fine]
    return total / np.maximum(size, 1)[:, None], coarse_names


def _array(tensor: Tensor) -> NDArray[Any]:
    """Return a tensor as an array."""
    return tensor.detach().cpu().numpy()
