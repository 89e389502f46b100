"""Whatever a caller calls a graph, as a :class:`Graph`; and the target sizes."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_pool.coarsen.build import (
    Duplicates,
    Symmetrize,
    graph_from_edges,
    graph_from_rows,
)
from pyg_pool.coarsen.graph import Graph
from pyg_pool.coarsen.threads import Threads
from pyg_pool.errors import check_edges

__all__ = ["as_graph", "target_sizes"]

_GUARD = 1e-9


def as_graph(
    graph: Any,
    edge_weight: Tensor | None = None,
    size: int | None = None,
    symmetrize: Symmetrize = "error",
    duplicates: Duplicates = "sum",
    threads: Threads | None = None,
) -> Graph:
    """The graph behind ``edge_index``, a ``Data``, a sparse matrix, or a path.

    Args:
        graph: What the caller gave.
        edge_weight: ``[E]`` weights, beside an ``edge_index`` or a ``Data``.
        size: Number of nodes, beside one of these, where isolated nodes come last.
        symmetrize: See :func:`coarsen`; edges of files are undirected.
        duplicates: See :func:`coarsen`.
        threads: Threads that check the rows of a matrix; one if left out.

    Raises:
        TypeError: If it is none of these.
        ValueError: If shapes, ids or weights do not fit.
    """
    if isinstance(graph, Graph):
        _unused("a Graph", edge_weight=edge_weight, size=size)
        return graph
    if isinstance(graph, (str, os.PathLike)):
        from pyg_pool.coarsen.read import read_graph

        _unused("a file", edge_weight=edge_weight, size=size)
        return read_graph(graph, duplicates=duplicates)
    if isinstance(graph, Data):
        weight = graph.edge_weight if edge_weight is None else edge_weight
        if (
            weight is None
            and graph.edge_attr is not None
            and graph.edge_attr.dim() == 1
        ):
            weight = graph.edge_attr
        nodes = graph.num_nodes if size is None else size
        edges = graph.edge_index
        if edges is None:
            edges = torch.empty(2, 0, dtype=torch.long)
        return as_graph(edges, weight, nodes, symmetrize, duplicates)
    how: Any = {"symmetrize": symmetrize, "duplicates": duplicates}
    if hasattr(graph, "tocsr"):
        _unused("a matrix", edge_weight=edge_weight, size=size)
        rows = graph.tocsr()
        if rows.shape[0] != rows.shape[1]:
            raise ValueError(
                f"coarsen got a matrix of shape {list(rows.shape)}, expected a square "
                f"adjacency; pass the graph's own matrix."
            )
        parts = (rows.indptr, rows.indices, rows.data)
        return graph_from_rows(*parts, threads=threads, **how)
    if isinstance(graph, Tensor) and graph.layout == torch.strided:
        index = check_edges("coarsen", graph.detach().cpu(), edge_weight, size)
        weight = None if edge_weight is None else edge_weight.detach().cpu().view(-1)
        values = None if weight is None else weight.to(_wide(weight.dtype)).numpy()
        row, col = index.numpy()
        return graph_from_edges(row, col, values, num_nodes=size, **how)
    raise TypeError(
        f"coarsen got a graph of type {type(graph).__name__}, expected edge_index "
        f"[2, E], a PyG Data, a SciPy sparse matrix or a path; convert it to one."
    )


def _unused(kind: str, **options: Any) -> None:
    """Raises where an option is given that this kind of graph has in itself."""
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"coarsen got {name} beside {kind}, expected it beside edge_index or a "
                f"PyG Data only, as {kind} holds it already; leave it out."
            )


def _wide(dtype: torch.dtype) -> torch.dtype:
    """Weights are single precision at least."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def target_sizes(
    num_nodes: int,
    ratio: float | None,
    num_clusters: int | Sequence[int] | None,
    levels: int,
) -> list[int]:
    """Number of clusters of every level.

    Raises:
        ValueError: If not exactly one of ``ratio`` and ``num_clusters`` is given, or
            they are not positive.
    """
    if (ratio is None) == (num_clusters is None):
        raise ValueError(
            f"coarsen got ratio={ratio} and num_clusters={num_clusters}, expected "
            f"exactly one of them; say how small the graph shall become."
        )
    if levels < 1:
        raise ValueError(
            f"coarsen got levels={levels}, expected at least 1; leave it out for one."
        )
    if ratio is not None:
        if not 0 < ratio < math.inf:
            raise ValueError(
                f"coarsen got ratio={ratio}, expected a number above 0, such as 0.1; "
                f"it is the share of the nodes that each level keeps."
            )
        sizes = [num_nodes]
        for _ in range(levels):
            wanted = math.ceil(ratio * sizes[-1] - _GUARD)
            sizes.append(min(max(wanted, 1), sizes[-1]))
        return sizes[1:]
    given = (
        [num_clusters] if isinstance(num_clusters, int) else list(num_clusters or ())
    )
    if not given or min(given) < 1 or sorted(given, reverse=True) != given:
        raise ValueError(
            f"coarsen got num_clusters={num_clusters}, expected numbers >= 1 that do "
            f"not grow from level to level; give one number, or one per level."
        )
    if len(given) > 1 and levels not in (1, len(given)):
        raise ValueError(
            f"coarsen got {len(given)} numbers in num_clusters and levels={levels}, "
            f"expected one number per level; leave levels out."
        )
    if len(given) == 1 and levels > 1:
        step = (given[0] / max(num_nodes, 1)) ** (1 / levels)
        given = [math.ceil(num_nodes * step**i) for i in range(1, levels)] + given
    return [min(size, num_nodes) for size in given]
