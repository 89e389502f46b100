"""Cluster ids per node, checked and turned into the entries of a selection."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_pool.errors import check_batch, reads_values
from pyg_pool.typing import OptTensor

__all__ = ["both_weights", "entries_of_clusters", "kind_of"]


def entries_of_clusters(
    cluster: Tensor,
    num_clusters: int | None,
    batch: OptTensor,
    weight: OptTensor,
    per_graph: bool,
) -> tuple[Tensor, Tensor, int]:
    """Returns the nodes that have a cluster, its id, and the number of clusters.

    The arguments are those of :meth:`pyg_pool.Selection.from_clusters`.
    """
    _check_shapes(cluster, batch, weight)
    node_index = (cluster >= 0).nonzero().view(-1)
    ids = cluster.index_select(0, node_index)
    if per_graph:
        return node_index, *_number_through(ids, num_clusters, node_index, batch)
    if num_clusters is None:
        num_clusters = int(ids.max()) + 1 if ids.numel() > 0 else 0
    _check_ids(ids, num_clusters)
    if batch is not None:
        _check_graphs(ids, batch.index_select(0, node_index), num_clusters)
    return node_index, ids, num_clusters


def kind_of(
    node_index: Tensor, cluster_index: Tensor, num_nodes: int, num_clusters: int
) -> str:
    """Says what the entries of a selection make of it; reads them."""
    if _has_repeats(node_index, num_nodes):
        return "soft"
    if num_clusters == cluster_index.numel():
        repeated = _has_repeats(cluster_index, num_clusters)
        return "hard" if repeated else "one_to_one"
    return "hard"


def both_weights(a: OptTensor, left: Tensor, b: OptTensor, right: Tensor) -> OptTensor:
    """``a[left] * b[right]``, where ``None`` means ones."""
    if a is None:
        return None if b is None else b.index_select(0, right)
    a = a.index_select(0, left)
    return a if b is None else a * b.index_select(0, right)


def _has_repeats(index: Tensor, size: int) -> bool:
    count = index.new_zeros(size).scatter_add_(0, index, torch.ones_like(index))
    return bool((count > 1).any())


def _check_shapes(cluster: Tensor, batch: OptTensor, weight: OptTensor) -> None:
    owner = "Selection.from_clusters"
    if cluster.dim() != 1 or cluster.dtype != torch.long:
        raise ValueError(
            f"{owner} got cluster of shape {list(cluster.shape)} and dtype "
            f"{cluster.dtype}, expected [num_nodes] and torch.int64; give one cluster "
            f"id per node."
        )
    if weight is not None and weight.shape != cluster.shape:
        raise ValueError(
            f"{owner} got weight of shape {list(weight.shape)}, expected "
            f"{list(cluster.shape)}; give one weight per node, dropped ones included."
        )
    if batch is not None:
        check_batch(owner, batch, None, cluster.size(0))


def _number_through(
    ids: Tensor, num_clusters: int | None, node_index: Tensor, batch: OptTensor
) -> tuple[Tensor, int]:
    """Numbers (graph, id) pairs in ascending order."""
    if batch is None or num_clusters is not None:
        raise ValueError(
            f"Selection.from_clusters got per_graph=True with num_clusters="
            f"{num_clusters} and batch={'None' if batch is None else 'a tensor'}, "
            f"expected batch and no num_clusters, as ids are numbered through the "
            f"batch; pass batch only, or leave per_graph out."
        )
    width = int(ids.max()) + 1 if ids.numel() > 0 else 1
    key = batch.index_select(0, node_index) * width + ids
    found, ids = torch.unique(key, return_inverse=True)
    return ids, found.numel()


def _check_ids(ids: Tensor, num_clusters: int) -> None:
    if reads_values(ids) and ids.numel() > 0 and int(ids.max()) >= num_clusters:
        raise ValueError(
            f"Selection.from_clusters got cluster id {int(ids.max())}, expected ids "
            f"below num_clusters={num_clusters}; raise num_clusters or renumber."
        )


def _check_graphs(ids: Tensor, graph: Tensor, num_clusters: int) -> None:
    """Raises ``ValueError`` if a cluster holds nodes of two graphs."""
    if ids.numel() == 0:
        return
    low = graph.new_full((num_clusters,), int(graph.max()) + 1)
    low = low.scatter_reduce(0, ids, graph, "amin")
    high = graph.new_full((num_clusters,), -1).scatter_reduce(0, ids, graph, "amax")
    mixed = (high > low).nonzero().view(-1)
    if mixed.numel() > 0:
        raise ValueError(
            f"Selection.from_clusters got cluster {int(mixed[0])} with nodes of graphs "
            f"{int(low[mixed[0]])} and {int(high[mixed[0]])}, expected clusters inside "
            f"one graph; pass per_graph=True if ids start anew in each graph."
        )
