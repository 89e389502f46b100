"""Edges and features of the coarse graph, with gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pyg_pool.coarsen.state import state_of
from pyg_pool.core.connect import connect
from pyg_pool.core.reduce import reduce as reduce_nodes
from pyg_pool.core.select import Selection
from pyg_pool.typing import OptTensor

if TYPE_CHECKING:
    from pyg_pool.coarsen.coarsening import Coarsening

__all__ = ["coarse_edges", "restrict"]


def coarse_edges(
    coarsening: Coarsening, edge: str, self_loops: bool, edge_weight: OptTensor
) -> tuple[Tensor, Tensor]:
    """Edges and weights of the coarse graph, see :meth:`Coarsening.graph`."""
    if coarsening.kept is not None:
        from pyg_pool.coarsen.kron import kron_edges

        return kron_edges(coarsening.source, coarsening.kept)
    edge_index = torch.from_numpy(coarsening.source.edge_index())
    weight = _weights(coarsening, edge_index, edge_weight)
    if edge == "gcn":
        weight = _normalised(edge_index, weight, coarsening.num_nodes)
    elif edge == "similarity":
        edge_index, weight = _similarity(coarsening, edge_weight)
    loops = self_loops or edge in ("gcn", "similarity")
    selection = coarsening.selection
    out = connect(selection, edge_index, weight, keep_loops=loops)
    if out.edge_attr is None:
        raise RuntimeError("connect got weights and returned none")
    index, total = out.edge_index, out.edge_attr
    size = coarsening.size.to(total.dtype)
    if edge == "mean":
        total = total / (size[index[0]] * size[index[1]])
    elif edge == "projected":
        total = total / (size[index[0]] * size[index[1]]).sqrt()
    elif edge == "gcn":
        total = total / size[index[0]]
    elif edge == "similarity":
        mass = coarsening.mass
        total = total / (mass[index[0]] * mass[index[1]]).to(total.dtype)
    return index, total


def _weights(
    coarsening: Coarsening, edge_index: Tensor, edge_weight: OptTensor
) -> Tensor:
    """Weights given, or those of the source."""
    if edge_weight is None:
        stored = coarsening.source.edge_weight()
        if stored is None:
            return torch.ones(edge_index.size(1))
        return torch.from_numpy(stored)
    if edge_weight.size(0) != edge_index.size(1):
        raise ValueError(
            f"Coarsening.graph got edge_weight of shape {list(edge_weight.shape)}, "
            f"expected [{edge_index.size(1)}] in the order of source.edge_index(); "
            f"sort the weights by row and column, self loops last."
        )
    return edge_weight


def _normalised(edge_index: Tensor, weight: Tensor, num_nodes: int) -> Tensor:
    """Entries of ``D^{-1/2} A D^{-1/2}``."""
    degree = weight.new_zeros(num_nodes).index_add(0, edge_index[0], weight)
    root = torch.where(degree > 0, degree, torch.ones_like(degree)).rsqrt()
    return weight * root[edge_index[0]] * root[edge_index[1]]


def _similarity(
    coarsening: Coarsening, edge_weight: OptTensor
) -> tuple[Tensor, Tensor]:
    """Entries of ``Q`` of the fine graph, the diagonal included."""
    if edge_weight is not None:
        raise ValueError(
            "Coarsening.graph got edge_weight with edge='similarity', expected none, "
            "as the kernel is that of the source; choose another edge."
        )
    rows = state_of(
        coarsening.source, coarsening.kernel, coarsening.mass_of.numpy()
    ).to_scipy()
    coo = rows.tocoo()
    row, col = torch.from_numpy(coo.row).long(), torch.from_numpy(coo.col).long()
    return torch.stack([row, col]), torch.from_numpy(coo.data)


def restrict(coarsening: Coarsening, x: Tensor, how: Any) -> Tensor:
    """Features of the clusters, see :meth:`Coarsening.restrict`."""
    selection = coarsening.selection
    if how == "majority":
        return _majority(x, selection)
    if not x.is_floating_point():
        raise TypeError(
            f"Coarsening.restrict got x of dtype {x.dtype}, expected floating point; "
            f"convert it with x.float(), or pass reduce='majority'."
        )
    small = x.dtype in (torch.float16, torch.bfloat16)
    wide = x.float() if small else x
    if how == "first":
        return x[first_members(selection)]
    if how == "projected":
        size = coarsening.size.to(wide.dtype).view([-1] + [1] * (x.dim() - 1))
        out = reduce_nodes(wide, selection, "sum") / size.sqrt()
    else:
        out = reduce_nodes(wide, selection, how)
    return out.to(x.dtype)


def first_members(selection: Selection) -> Tensor:
    """The first node of each cluster."""
    first = selection.cluster_index.new_full(
        (selection.num_clusters,), selection.num_nodes
    )
    return first.scatter_reduce(
        0, selection.cluster_index, selection.node_index, "amin"
    )


def _majority(x: Tensor, selection: Selection) -> Tensor:
    """The most frequent value of each column in each cluster, the least on ties."""
    if x.dim() > 1:
        columns = [_majority(column, selection) for column in x.flatten(1).unbind(1)]
        return torch.stack(columns, 1).view(-1, *x.shape[1:])
    values, code = torch.unique(x, return_inverse=True)
    cluster, node = selection.cluster_index, selection.node_index
    key = cluster * values.numel() + code[node]
    pair, count = torch.unique(key, return_counts=True)
    owner = pair // values.numel()
    # Ascending pairs: a stable sort by count leaves the least value in front.
    order = torch.sort(count, descending=True, stable=True).indices
    order = order[torch.sort(owner[order], stable=True).indices]
    starts = torch.ones(order.numel(), dtype=torch.bool)
    starts[1:] = owner[order][1:] != owner[order][:-1]
    return values[pair[order][starts] % values.numel()]
