"""Many graphs at once: each is coarsened on its own, threads share them out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyg_pool.coarsen.api import Kernel, coarsen
from pyg_pool.coarsen.batch_numba import ward_graphs
from pyg_pool.coarsen.state import KERNELS
from pyg_pool.coarsen.threads import Threads
from pyg_pool.errors import check_choice, check_edges

__all__ = ["coarsen_batch"]

Array = NDArray[Any]
# Up to this many nodes a graph is merged over all pairs; above, by levels.
SMALL = 64
SWEEPS = 8
_GUARD = 1e-9


def coarsen_batch(
    edge_index: Tensor,
    node_counts: Tensor,
    edge_counts: Tensor,
    *,
    ratio: float | None = None,
    num_clusters: int | Tensor | None = None,
    edge_weight: Tensor | None = None,
    kernel: Kernel = "rw",
    num_threads: int | None = None,
) -> Tensor:
    """Cluster of each node of many graphs, numbered from 0 in each graph.

    Args:
        edge_index: Edges of all graphs, graph by graph, nodes numbered through.
        node_counts: Nodes of each graph.
        edge_counts: Entries of ``edge_index`` of each graph.
        ratio: Clusters by nodes, rounded up in each graph.
        num_clusters: Clusters of each graph instead, one number or one per graph, where
            it has as many nodes.
        edge_weight: Weights.
        kernel: See :func:`coarsen`.
        num_threads: Threads over the graphs; never change the result.

    Shapes:
        edge_index: ``[2, E]``; node_counts, edge_counts: ``[B]``; edge_weight: ``[E]``;
        returns ``[N]`` int64.

    Raises:
        ValueError: If not exactly one of ``ratio`` and ``num_clusters`` is given, or
            shapes do not fit.

    Example:
        >>> import torch
        >>> from pyg_pool.coarsen import coarsen_batch
        >>> edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
        >>> counts = torch.tensor([2, 2])
        >>> coarsen_batch(edges, counts, counts, ratio=0.5)
        tensor([0, 0, 0, 0])
    """
    check_choice("coarsen_batch", "kernel", kernel, KERNELS)
    if (ratio is None) == (num_clusters is None):
        raise ValueError(
            f"coarsen_batch got ratio={ratio} and num_clusters={num_clusters}, "
            f"expected exactly one of them; say how small the graphs shall become."
        )
    total = int(node_counts.sum())
    edge_index = check_edges("coarsen_batch", edge_index, edge_weight, total)
    nodes = node_counts.numpy().astype(np.int64)
    node_start = np.concatenate([[0], np.cumsum(nodes)])
    edge_start = np.concatenate([[0], np.cumsum(edge_counts.numpy())]).astype(np.int64)
    if edge_start[-1] != edge_index.size(1):
        raise ValueError(
            f"coarsen_batch got edge_counts that add up to {edge_start[-1]} for "
            f"{edge_index.size(1)} edges, expected equal numbers; count both "
            f"directions."
        )
    target = _targets(nodes, ratio, num_clusters)
    label = np.zeros(total, dtype=np.int64)
    row, col = edge_index.numpy()
    weight = np.empty(0) if edge_weight is None else edge_weight.double().numpy()
    edges = (row, col, weight)
    here = np.where(nodes <= SMALL, target, nodes)
    code = KERNELS.index(kernel)
    with Threads(num_threads) as threads:

        def work(part: tuple[int, int]) -> None:
            ward_graphs(part, node_start, edge_start, edges, here, code, SWEEPS, label)

        threads.map(work, threads.ranges(nodes.size, 32))
    for g in np.flatnonzero(nodes > SMALL):
        span = slice(edge_start[g], edge_start[g + 1])
        part = edge_index[:, span] - int(node_start[g])
        values = None if edge_weight is None else edge_weight[span]
        found = coarsen(
            part,
            num_clusters=int(target[g]),
            edge_weight=values,
            size=int(nodes[g]),
            kernel=kernel,
            num_threads=1,
        )
        label[node_start[g] : node_start[g + 1]] = found.cluster.numpy()
    return torch.from_numpy(label)


def _targets(
    nodes: Array, ratio: float | None, num_clusters: int | Tensor | None
) -> Array:
    """Clusters of each graph: at least one where it has a node."""
    if num_clusters is not None:
        wanted = np.asarray(num_clusters)
        if (wanted < (nodes > 0)).any():
            raise ValueError(
                f"coarsen_batch got num_clusters={num_clusters}, expected at least 1; "
                f"10 suits molecules."
            )
        return np.minimum(nodes, wanted)
    if not 0 < (ratio or 0) < np.inf:
        raise ValueError(
            f"coarsen_batch got ratio={ratio}, expected a number above 0, such as 0.5; "
            f"it is the share of the nodes that each graph keeps."
        )
    wanted = np.ceil((ratio or 0.0) * nodes - _GUARD).astype(np.int64)
    return np.minimum(np.maximum(wanted, 1), nodes)
