"""Edges of the coarse graph."""

from __future__ import annotations

from typing import get_args

import torch
from torch import Tensor
from torch_geometric.nn.pool.connect import ConnectOutput

from pyg_pool.core.select import Selection, join
from pyg_pool.errors import check_choice, check_edges
from pyg_pool.kernels import coalesce, filter_edges, take_rows
from pyg_pool.typing import EdgeReduce, OptTensor

__all__ = ["connect", "pooled_batch"]


def connect(
    selection: Selection,
    edge_index: Tensor,
    edge_attr: OptTensor = None,
    *,
    reduce: EdgeReduce = "sum",
    keep_loops: bool = False,
    weighted: bool = False,
    batch: OptTensor = None,
) -> ConnectOutput:
    r"""Connects clusters whose members are connected.

    .. math::
        A' = S^\top A S

    with membership 0/1: cluster ``c`` of the features is node ``c`` of the edges.

    Args:
        selection: Nodes to clusters, of any kind.
        edge_index: Edges of the fine graph.
        edge_attr: Weights or attributes of the edges.
        reduce: How attributes of edges between the same two clusters are merged:
            ``"sum"`` (S'AS), ``"mean"``, ``"max"``, ``"min"``, ``"mul"``, or
            ``"none"`` to keep parallel edges apart. A one-to-one selection only
            filters: edges stay as they are, parallel ones included.
        keep_loops: Whether edges inside a cluster stay as self loops.
        weighted: Whether to use the selection's weights instead of 0/1, for soft
            assignments: each edge counts with the product of its ends' weights.
        batch: Graph of each fine node.

    Returns:
        PyG's ``ConnectOutput``: ``edge_index``, ``edge_attr``, ``batch``. Without
        ``edge_attr`` the coarse edges have none (unless ``weighted``).

    Shapes:
        edge_index: ``[2, E]`` int64; edge_attr: ``[E]``, ``[E, 1]`` or ``[E, D]``,
        whose form is kept; batch: ``[num_nodes]``.

    Raises:
        ValueError: If shapes, ids or options do not fit.

    Note:
        Cost: O(E) for one-to-one, a sort of E keys for hard selections; for soft
        ones each edge is listed once per pair of clusters of its ends.

    Example:
        >>> import torch
        >>> from pyg_pool import Selection
        >>> from pyg_pool.core import connect
        >>> edges = torch.tensor([[0, 1, 2, 0], [1, 2, 3, 3]])
        >>> pairs = Selection.from_clusters(torch.tensor([0, 0, 1, 1]))
        >>> out = connect(pairs, edges, torch.tensor([9.0, 1.0, 9.0, 5.0]))
        >>> out.edge_index.tolist(), out.edge_attr.tolist()
        ([[0], [1]], [6.0])
    """
    check_choice("connect", "reduce", reduce, get_args(EdgeReduce))
    edge_index = check_edges("connect", edge_index, edge_attr, selection.num_nodes)
    if selection.is_one_to_one and not weighted:
        edge_index, ids = filter_edges(
            edge_index, selection.perm, selection.num_nodes, keep_loops=keep_loops
        )
        edge_attr = None if edge_attr is None else take_rows(edge_attr, ids)
        return ConnectOutput(edge_index, edge_attr, pooled_batch(selection, batch))
    edge, source, target = _ends(selection, edge_index)
    row = selection.cluster_index.index_select(0, source)
    col = selection.cluster_index.index_select(0, target)
    if not keep_loops:
        kept = (row != col).nonzero().view(-1)
        row, col = row.index_select(0, kept), col.index_select(0, kept)
        edge = edge.index_select(0, kept)
        source, target = source.index_select(0, kept), target.index_select(0, kept)
    if edge_attr is not None:
        edge_attr = _rows_of_edges(selection, edge_attr, edge)
    if weighted and selection.weight is not None:
        edge_attr = _scaled(selection.weight, source, target, edge_attr)
    edge_index = torch.stack([row, col])
    if reduce != "none" and not selection.is_one_to_one:
        edge_index, edge_attr = coalesce(
            edge_index, edge_attr, selection.num_clusters, reduce
        )
    return ConnectOutput(edge_index, edge_attr, pooled_batch(selection, batch))


def _ends(selection: Selection, edge_index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For each coarse edge its fine edge and the entries of its two ends."""
    if selection.is_hard:
        entry = torch.arange(selection.node_index.numel(), device=edge_index.device)
        table = entry.new_full((selection.num_nodes,), -1)
        table = table.index_copy(0, selection.node_index, entry)
        source = table.index_select(0, edge_index[0])
        target = table.index_select(0, edge_index[1])
        edge = ((source >= 0) & (target >= 0)).nonzero().view(-1)
        return edge, source.index_select(0, edge), target.index_select(0, edge)
    edge, source = join(edge_index[0], selection.node_index, selection.num_nodes)
    end = edge_index[1].index_select(0, edge)
    pair, target = join(end, selection.node_index, selection.num_nodes)
    return edge.index_select(0, pair), source.index_select(0, pair), target


def _rows_of_edges(selection: Selection, edge_attr: Tensor, edge: Tensor) -> Tensor:
    """Attributes of the fine edges behind the coarse ones."""
    if selection.is_hard:  # each fine edge is used once at most
        return take_rows(edge_attr, edge)
    return edge_attr.index_select(0, edge)


def _scaled(
    weight: Tensor, source: Tensor, target: Tensor, edge_attr: OptTensor
) -> Tensor:
    """Attributes times the weights of both ends."""
    both = weight.index_select(0, source) * weight.index_select(0, target)
    if edge_attr is None:
        return both
    return (edge_attr * both.view([-1] + [1] * (edge_attr.dim() - 1))).to(
        edge_attr.dtype
    )


def pooled_batch(selection: Selection, batch: OptTensor) -> OptTensor:
    """Graph of each cluster, ``[num_clusters]``; 0 for a cluster without members."""
    if batch is None:
        return None
    graph = batch.index_select(0, selection.node_index)
    out = batch.new_zeros(selection.num_clusters)
    return out.index_copy(0, selection.cluster_index, graph)
