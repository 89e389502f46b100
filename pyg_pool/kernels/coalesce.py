"""Sorting edges and merging parallel ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_pool.errors import check_choice, check_edges
from pyg_pool.kernels.dispatch import chosen, peer, runs_numba
from pyg_pool.kernels.segment import segment_reduce
from pyg_pool.typing import OptTensor

__all__ = ["coalesce", "contract"]

REDUCES = ("sum", "mean", "max", "min", "mul")


def coalesce(
    edge_index: Tensor,
    edge_attr: OptTensor = None,
    num_nodes: int | None = None,
    reduce: str = "sum",
) -> tuple[Tensor, OptTensor]:
    """Sorts edges by source, then target, and merges parallel ones.

    Args:
        edge_index: Edges.
        edge_attr: Weights or attributes of the edges.
        num_nodes: Number of nodes; without it the largest id sets it.
        reduce: How attributes of parallel edges are merged: ``"sum"``,
            ``"mean"``, ``"max"``, ``"min"`` or ``"mul"``.

    Returns:
        The merged edges and their attributes (``None`` where none were given).

    Shapes:
        edge_index: ``[2, E]`` int64; edge_attr: ``[E]``, ``[E, 1]`` or ``[E, D]``;
        the same with ``E' <= E`` edges is returned.

    Raises:
        ValueError: If the reduction is unknown or the shapes do not fit.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels import coalesce
        >>> edges = torch.tensor([[1, 0, 1], [0, 2, 0]])
        >>> coalesce(edges, torch.tensor([1.0, 2.0, 5.0]), num_nodes=3)
        (tensor([[0, 1],
                [2, 0]]), tensor([2., 6.]))
    """
    check_choice("coalesce", "reduce", reduce, REDUCES)
    edge_index = check_edges("coalesce", edge_index, edge_attr, num_nodes)
    if num_nodes is None:
        num_nodes = int(edge_index.max()) + 1 if edge_index.numel() > 0 else 0
    word = "prod" if reduce == "mul" else reduce
    if reduce != "mul" and chosen("coalesce", edge_index):
        op = {"sum": "add"}.get(reduce, reduce)
        sizes = num_nodes, num_nodes
        run: Any = peer("torch_sparse").coalesce
        done: tuple[Tensor, OptTensor] = run(edge_index, edge_attr, *sizes, op)
        return done
    # Counting takes a cell per node: not for a few edges between high numbers.
    size = edge_index.size(1)
    if runs_numba("coalesce", size, edge_index) and num_nodes <= 4 * size + 64:
        from pyg_pool.kernels import coalesce_numba

        ends = edge_index.contiguous().numpy()
        found = coalesce_numba.coalesce(ends[0], ends[1], num_nodes)
        merged, slot = torch.from_numpy(found[0]), torch.from_numpy(found[1])
    else:
        key, order = torch.sort(edge_index[0] * num_nodes + edge_index[1], stable=True)
        new = torch.ones_like(key, dtype=torch.bool)
        new[1:] = key[1:] != key[:-1]
        first = order.index_select(0, new.nonzero().view(-1))
        merged, slot = edge_index.index_select(1, first), new.long().cumsum(0) - 1
        if edge_attr is not None:
            edge_attr = edge_attr.index_select(0, order)
    if edge_attr is None:
        return merged, None
    return merged, segment_reduce(
        edge_attr,
        slot,
        dim_size=merged.size(1),
        reduce=word,  # type: ignore[arg-type]
    )


def contract(
    edge_index: Tensor, cluster: Tensor, num_clusters: int, *, has_place: bool = True
) -> tuple[Tensor, Tensor]:
    """The distinct edges between clusters, in order, and each edge's place there.

    Args:
        edge_index: Edges between nodes.
        cluster: Cluster of each node.
        num_clusters: Number of clusters.
        has_place: Whether the places are wanted; otherwise there are none.

    Returns:
        The edges between clusters, and the position of each given edge among them,
        their number inside a cluster.

    Shapes:
        edge_index: ``[2, E]`` int64; cluster: ``[N]`` int64; returns ``[2, E']``,
        ``[E]``.

    Note:
        Cost: O(N + E) on the CPU, a sort of the edges between clusters elsewhere.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.coalesce import contract
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> contract(path, torch.tensor([0, 0, 1, 1]), 2)
        (tensor([[0],
                [1]]), tensor([1, 0, 1]))
    """
    if runs_numba("coalesce", edge_index.size(1), edge_index, cluster):
        from pyg_pool.kernels import coalesce_numba

        edges, groups = edge_index.contiguous().numpy(), cluster.contiguous().numpy()
        found = coalesce_numba.contract(edges, groups, num_clusters, has_place)
        return torch.from_numpy(found[0]), torch.from_numpy(found[1])
    ends = cluster.index_select(0, edge_index.reshape(-1)).view(2, -1)
    kept = (ends[0] != ends[1]).nonzero().view(-1)
    ends = ends.index_select(1, kept)
    key, order = torch.sort(ends[0] * num_clusters + ends[1])
    new = torch.ones_like(key, dtype=torch.bool)
    new[1:] = key[1:] != key[:-1]
    merged = ends.index_select(1, order.index_select(0, new.nonzero().view(-1)))
    if not has_place:
        return merged, edge_index.new_empty(0)
    place = new.long().cumsum(0) - 1
    slot = edge_index.new_full((edge_index.size(1),), merged.size(1))
    return merged, slot.index_copy(0, kept.index_select(0, order), place)
