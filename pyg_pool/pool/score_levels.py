"""Parsing a graph by given scores, again and again: no features, no weights."""

from __future__ import annotations

from torch import Tensor

from pyg_pool.core import Hierarchy, Selection
from pyg_pool.core.connect import pooled_batch
from pyg_pool.core.hierarchy import Level
from pyg_pool.core.parse_forms import CoarseEdges, coarse_attr
from pyg_pool.errors import check_batch
from pyg_pool.kernels.coalesce import contract
from pyg_pool.kernels.parse import parse
from pyg_pool.typing import OptTensor

__all__ = ["parse_levels"]


def parse_levels(
    edge_index: Tensor,
    score: Tensor,
    num_nodes: int,
    batch: OptTensor = None,
    *,
    reduce: CoarseEdges = "sum",
    max_levels: int | None = None,
    min_nodes: int = 1,
) -> Hierarchy:
    """Parses by edge scores until nothing merges or the limits are reached.

    Args:
        edge_index: Edges, both directions listed.
        score: Score of each edge, the same for both directions. Only their order
            counts.
        num_nodes: Number of nodes.
        batch: Graph of each node.
        reduce: Score of edges that became one: ``"sum"``, ``"mean"``, ``"max"``,
            ``"count"``, or ``"binary"`` for ones.
        max_levels: Largest number of poolings.
        min_nodes: Pooling ends when there are this many nodes or fewer.

    Returns:
        The levels, whose ``edge_attr`` are the scores.

    Shapes:
        edge_index: ``[2, E]`` int64; score: ``[E]``; batch: ``[N]`` int64.

    Raises:
        ValueError: If shapes or ids do not fit.

    Note:
        Each level takes O(E + N log N) steps and no gradient; there are at most
        log2(N) of them. Ties go to the lowest neighbour.

    Source:
        Song, Huang, Wang, Zhou and Lin, "Graph Parsing Networks", ICLR 2024.

    Example:
        >>> import torch
        >>> from pyg_pool.pool import parse_levels
        >>> pairs = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> path = torch.cat([pairs, pairs.flip(0)], dim=1)
        >>> levels = parse_levels(path, torch.tensor([9.0, 1.0, 5.0] * 2), 4)
        >>> [level.num_nodes for level in levels.levels]
        [4, 2, 1]
    """
    score, size = score.detach(), check_batch("parse_levels", batch, None, num_nodes)
    levels = [Level(num_nodes, edge_index, score, batch, size)]
    selections: list[Selection] = []
    while max_levels is None or len(selections) < max_levels:
        if num_nodes <= min_nodes:
            break
        cluster = parse(edge_index, score, num_nodes, batch)
        count = int(cluster.max()) + 1
        if count == num_nodes:
            break
        selections.append(Selection.from_clusters(cluster, count))
        edge_index, place = contract(edge_index, cluster, count)
        merged = coarse_attr(score, place, edge_index.size(1), reduce)
        score = score if merged is None else merged
        batch, num_nodes = pooled_batch(selections[-1], batch), count
        levels.append(Level(count, edge_index, score, batch, size))
    return Hierarchy(levels, selections)
