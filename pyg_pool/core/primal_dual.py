"""What pooling a primal and a dual graph gives, and how the dual one is built."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_pool.core.select import Selection
from pyg_pool.kernels import dual_graph
from pyg_pool.kernels.segment import segment_count
from pyg_pool.typing import OptTensor

__all__ = ["CoarseDual", "PrimalDualPoolOutput", "contract_duals"]


@dataclass
class PrimalDualPoolOutput:
    """Both graphs after pooling, and the maps that lead to them.

    Attributes:
        x: ``[K, Cp]`` features of the clusters of faces.
        x_dual: ``[D', Cd]`` features of the dual nodes.
        edge_index: ``[2, 2P']``, sorted.
        edge_index_dual: ``[2, Q']``, sorted.
        edge_to_dual: ``[2P']`` dual node of each edge.
        batch: ``[K]``; ``None`` where none was given.
        batch_dual: ``[D']``; ``None`` where none was given.
        batch_size: Number of meshes.
        selection: Faces to clusters.
        selection_dual: Dual nodes to dual nodes; those inside a cluster have none.
        score: ``[P]`` score of each pair of faces, without gradient.
        selected_edges: ``[2, S]`` pairs of faces that were merged.
        ratio_nodes: ``[B]`` share of faces left in each mesh, 1 where there were none.
        ratio_edges: ``[B]`` share of edges left.
    """

    x: Tensor
    x_dual: Tensor
    edge_index: Tensor
    edge_index_dual: Tensor
    edge_to_dual: Tensor
    batch: OptTensor
    batch_dual: OptTensor
    batch_size: int
    selection: Selection
    selection_dual: Selection
    score: Tensor
    selected_edges: Tensor
    ratio_nodes: Tensor
    ratio_edges: Tensor


@dataclass
class CoarseDual:
    """The edges between clusters, and the dual nodes that belong to them.

    Attributes:
        pairs: ``[2, P']`` pairs of clusters, lower one first, ascending.
        edge_index: ``[2, 2P']`` both directions, sorted.
        edge_to_dual: ``[2P']`` dual node of each edge.
        opposite: ``[2P']`` position of the opposite of each edge.
        selection: Old dual nodes to new ones.
        num_clusters: Number of clusters.
    """

    pairs: Tensor
    edge_index: Tensor
    edge_to_dual: Tensor
    opposite: Tensor
    selection: Selection
    num_clusters: int

    def links(self, config: str, *, loops: bool) -> Tensor:
        """Returns the edges between the dual nodes, ``[2, Q]``."""
        return dual_graph.dual_edges(
            self.edge_index,
            self.edge_to_dual,
            self.opposite,
            self.num_clusters,
            self.selection.num_clusters,
            config=config,
            loops=loops,
        )


def contract_duals(
    pairs: Tensor,
    both: Tensor,
    edge_to_dual: Tensor,
    num_dual: int,
    selection: Selection,
    config: str,
) -> CoarseDual:
    """Follows the dual nodes of a graph whose nodes are merged.

    Args:
        pairs: Pairs of adjacent nodes, lower one first, ascending.
        both: Positions of the two directions of each pair among the edges.
        edge_to_dual: Dual node of each edge.
        num_dual: Number of dual nodes.
        selection: A cluster for every node.
        config: ``"A"``, ``"B"`` or ``"C"``.

    Shapes:
        pairs, both: ``[2, P]`` int64; edge_to_dual: ``[2P]`` int64.

    Example:
        >>> import torch
        >>> from pyg_pool import Selection
        >>> from pyg_pool.core.primal_dual import contract_duals
        >>> pairs, both = torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0, 2], [1, 3]])
        >>> merged = Selection.from_clusters(torch.tensor([0, 0, 1]))
        >>> dual = torch.tensor([0, 0, 1, 1])
        >>> contract_duals(pairs, both, dual, 2, merged, "A").selection.cluster
        tensor([-1,  0])
    """
    cluster, count = selection.cluster_index, selection.num_clusters
    outer, between = dual_graph.coarse_pairs(pairs, cluster, count)
    edges, place = dual_graph.both_ways(outer, count)
    flat, size = place.view(-1), place.size(1)
    opposite = torch.empty_like(flat).index_copy(0, flat, place.flip(0).view(-1))
    new = torch.arange(flat.size(0), device=flat.device)
    if config == "A":
        new = torch.empty_like(flat).index_copy(0, flat, new % max(size, 1))
    stays = (between >= 0).nonzero().view(-1)
    coarse = between.index_select(0, stays)
    ends = cluster.index_select(0, pairs.index_select(1, stays).view(-1)).view(2, -1)
    # An upward edge may lead downward between the clusters of its ends.
    turns = ends[0] > ends[1]
    up, down = place.index_select(1, coarse)
    target = torch.cat([torch.where(turns, down, up), torch.where(turns, up, down)])
    old = edge_to_dual.index_select(0, both.index_select(1, stays).view(-1))
    moved = old.new_full((num_dual,), -1)
    moved = moved.index_copy(0, old, new.index_select(0, target))
    kept = (moved >= 0).nonzero().view(-1)
    number = size if config == "A" else flat.size(0)
    duals = Selection(kept, num_dual, moved.index_select(0, kept), number, kind="hard")
    return CoarseDual(outer, edges, new, opposite, duals, count)


def graph_of_pairs(batch: OptTensor, pairs: Tensor) -> OptTensor:
    """Graph of each pair of nodes; ``None`` without ``batch``."""
    return None if batch is None else batch.index_select(0, pairs[0])


def shares(
    left: tuple[int, OptTensor],
    before: tuple[int, OptTensor],
    batch_size: int,
    like: Tensor,
) -> Tensor:
    """Share of things left in each graph, 1 where there were none.

    Args:
        left: Number of things left, and the graph of each.
        before: The same for those before.
        batch_size: Number of graphs.
        like: Gives type and device.
    """
    if left[1] is None or before[1] is None:
        return like.new_full((1,), left[0] / before[0] if before[0] > 0 else 1.0)
    was = segment_count(before[1], batch_size)
    now = segment_count(left[1], batch_size).to(like.dtype)
    return torch.where(was > 0, now / was.clamp(min=1), 1.0)
