"""Edges between clusters, and the graph whose nodes these edges are.

Dual edges are built by the degree of the clusters, with no capacity fixed before:
a cluster with d neighbours gives d (d - 1) of them, twice that in configuration B.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_pool.errors import check_choice
from pyg_pool.kernels.dispatch import runs_numba
from pyg_pool.kernels.join import join

__all__ = ["both_ways", "coarse_pairs", "dual_edges"]

CONFIGS = ("A", "B", "C")


def coarse_pairs(
    pairs: Tensor, cluster: Tensor, num_clusters: int
) -> tuple[Tensor, Tensor]:
    """The pairs of clusters that pairs of nodes join.

    Args:
        pairs: Pairs of nodes.
        cluster: Cluster of each node.
        num_clusters: Number of clusters.

    Returns:
        The distinct pairs, lower cluster first, in ascending order, and for each
        pair of nodes its position among them, -1 inside a cluster.

    Shapes:
        pairs: ``[2, P]`` int64; cluster: ``[N]`` int64; returns ``[2, P']``, ``[P]``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.dual_graph import coarse_pairs
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> coarse_pairs(path, torch.tensor([1, 1, 0, 0]), 2)
        (tensor([[0],
                [1]]), tensor([-1,  0, -1]))
    """
    if runs_numba("pool_mesh", pairs.size(1), pairs, cluster):
        from pyg_pool.kernels import dual_graph_numba

        found = dual_graph_numba.coarse_pairs(
            pairs.contiguous().numpy(), cluster.numpy(), num_clusters
        )
        return torch.from_numpy(found[0]), torch.from_numpy(found[1])
    ends = cluster.index_select(0, pairs.reshape(-1)).view(2, -1)
    low, high = torch.minimum(ends[0], ends[1]), torch.maximum(ends[0], ends[1])
    outer = (low != high).nonzero().view(-1)
    key = (low * num_clusters + high).index_select(0, outer)
    key, position = torch.unique(key, return_inverse=True)
    width = max(num_clusters, 1)
    distinct = torch.stack([key.div(width, rounding_mode="floor"), key % width])
    inverse = position.new_full((pairs.size(1),), -1).index_copy(0, outer, position)
    return distinct, inverse


def both_ways(pairs: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Both directions of pairs, sorted by source, then target.

    Args:
        pairs: Distinct pairs, lower node first, in ascending order.
        num_nodes: Number of nodes.

    Returns:
        The edges, and the positions of each pair's upward and downward edge.

    Shapes:
        pairs: ``[2, P]`` int64; returns ``[2, 2 P]`` and ``[2, P]``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.dual_graph import both_ways
        >>> both_ways(torch.tensor([[0, 0], [1, 2]]), 3)
        (tensor([[0, 0, 1, 2],
                [1, 2, 0, 0]]), tensor([[0, 1],
                [2, 3]]))
    """
    if runs_numba("pool_mesh", pairs.size(1), pairs):
        from pyg_pool.kernels import dual_graph_numba

        found = dual_graph_numba.both_ways(pairs.contiguous().numpy(), num_nodes)
        return torch.from_numpy(found[0]), torch.from_numpy(found[1])
    edges = torch.cat([pairs, pairs.flip(0)], dim=1)
    order = torch.sort(edges[0] * num_nodes + edges[1]).indices
    position = torch.arange(order.size(0), device=order.device)
    place = torch.empty_like(order).index_copy(0, order, position)
    return edges.index_select(1, order), place.view(2, -1)


def dual_edges(
    edge_index: Tensor,
    edge_to_dual: Tensor,
    reverse: Tensor,
    num_nodes: int,
    num_dual: int,
    *,
    config: str = "A",
    loops: bool = False,
) -> Tensor:
    """Edges of the graph whose nodes are the edges of another.

    Args:
        edge_index: Both directions of every edge, sorted by source, then target.
        edge_to_dual: Dual node of each edge, in the order of the edges.
        reverse: Position of the opposite of each edge.
        num_nodes: Number of nodes.
        num_dual: Number of dual nodes.
        config: ``"A"``: one dual node for both directions, joined to all that share
            an end; ``"B"``: one for each direction, ``m->i`` and ``i->j`` joined both
            ways for m != j; ``"C"``: only from ``m->i`` to ``i->j``.
        loops: Whether each dual node gets a self loop.

    Returns:
        The edges between dual nodes, sorted by source, then target.

    Shapes:
        edge_index: ``[2, E]``; edge_to_dual, reverse: ``[E]``; returns ``[2, Q]``.

    Note:
        Q is the sum of d (d - 1) over the nodes' degrees d, twice that for B.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.dual_graph import dual_edges
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> dual, reverse = torch.tensor([0, 0, 1, 1]), torch.tensor([1, 0, 3, 2])
        >>> dual_edges(path, dual, reverse, 3, 2)
        tensor([[0, 1],
                [1, 0]])
    """
    check_choice("dual_edges", "config", config, CONFIGS)
    if runs_numba("pool_mesh", edge_index.size(1), edge_index, edge_to_dual, reverse):
        from pyg_pool.kernels import dual_graph_numba

        found = dual_graph_numba.dual_edges(
            edge_index.contiguous().numpy(), edge_to_dual.contiguous().numpy(),
            reverse.contiguous().numpy(), num_nodes, num_dual,
            config == "A", config == "C", loops,
        )  # fmt: skip
        return torch.from_numpy(found)
    first, second = join(edge_index[0], edge_index[0], num_nodes)
    apart = (first != second).nonzero().view(-1)
    first, second = first.index_select(0, apart), second.index_select(0, apart)
    if config != "A":  # the first of the two leads into their common node
        first = reverse.index_select(0, first)
    source = edge_to_dual.index_select(0, first)
    target = edge_to_dual.index_select(0, second)
    key = source * num_dual + target
    if config == "B":
        key = torch.cat([key, target * num_dual + source])
    if loops:
        own = torch.arange(num_dual, device=key.device)
        key = torch.cat([key, own * (num_dual + 1)])
    key = torch.sort(key).values
    width = max(num_dual, 1)
    return torch.stack([key.div(width, rounding_mode="floor"), key % width])
