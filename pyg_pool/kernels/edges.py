"""Edges of an induced subgraph, and edges that touch it."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_pool.kernels.dispatch import runs_numba

__all__ = ["filter_edges", "incident_edges"]


def filter_edges(
    edge_index: Tensor, node_index: Tensor, num_nodes: int, *, keep_loops: bool = True
) -> tuple[Tensor, Tensor]:
    """Returns the edges between the given nodes, in their order.

    Args:
        edge_index: Edges; ids must be below ``num_nodes``.
        node_index: Kept nodes, distinct; node ``node_index[c]`` becomes ``c``.
        num_nodes: Number of nodes.
        keep_loops: Whether self loops stay.

    Returns:
        The edges under their new numbers, and the position of each in
        ``edge_index``.

    Shapes:
        edge_index: ``[2, E]`` int64; node_index: ``[K]`` int64; returns
        ``[2, E']``, ``[E']``.

    Raises:
        IndexError: If an id is out of range.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels import filter_edges
        >>> edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> filter_edges(edges, torch.tensor([2, 0]), 3)
        (tensor([[0],
                [1]]), tensor([2]))
    """
    if runs_numba("filter_edges", edge_index.size(1), edge_index, node_index):
        from pyg_pool.kernels import edges_numba

        plain = edge_index.contiguous().numpy()
        found = edges_numba.filter_edges(
            plain, node_index.numpy(), num_nodes, keep_loops
        )
        return torch.from_numpy(found[0]), torch.from_numpy(found[1])
    from_kept, to_kept = _touching(edge_index, node_index, num_nodes)
    both = from_kept & to_kept
    if not keep_loops:
        both = both & (edge_index[0] != edge_index[1])
    ids = both.nonzero().view(-1)
    ends = edge_index.index_select(1, ids).view(-1)
    table = _numbers(node_index, num_nodes)
    return table.index_select(0, ends).view(2, -1), ids


def incident_edges(
    edge_index: Tensor, node_index: Tensor, num_nodes: int, *, swap_loops: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the edges that leave the given nodes and those that enter them.

    Args:
        edge_index: Edges; ids must be below ``num_nodes``.
        node_index: Kept nodes, distinct; node ``node_index[c]`` becomes ``c``.
        num_nodes: Number of nodes.
        swap_loops: Whether to leave self loops out and to add one for each kept
            node at the end of both lists.

    Returns:
        Leaving edges ``(c, node)`` and their positions in ``edge_index``, then
        entering edges ``(node, c)`` and theirs; added loops have no position.

    Shapes:
        edge_index: ``[2, E]`` int64; node_index: ``[K]`` int64; returns ``[2, E']``,
        ``[E' or E' - K]``, ``[2, E'']``, ``[E'' or E'' - K]``.

    Raises:
        IndexError: If an id is out of range.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels import incident_edges
        >>> edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> incident_edges(edges, torch.tensor([2]), 3, swap_loops=False)
        (tensor([[0],
                [0]]), tensor([2]), tensor([[1],
                [0]]), tensor([1]))
    """
    if runs_numba("filter_edges", edge_index.size(1), edge_index, node_index):
        from pyg_pool.kernels import edges_numba

        parts = edges_numba.incident_edges(
            edge_index.contiguous().numpy(), node_index.numpy(), num_nodes, swap_loops
        )
        left, out_ids, right, in_ids = (torch.from_numpy(part) for part in parts)
        return left, out_ids, right, in_ids
    from_kept, to_kept = _touching(edge_index, node_index, num_nodes)
    if swap_loops:
        straight = edge_index[0] != edge_index[1]
        from_kept, to_kept = from_kept & straight, to_kept & straight
    out_ids, in_ids = from_kept.nonzero().view(-1), to_kept.nonzero().view(-1)
    leaving = edge_index.index_select(1, out_ids)
    entering = edge_index.index_select(1, in_ids)
    table = _numbers(node_index, num_nodes)
    left = torch.stack([table.index_select(0, leaving[0]), leaving[1]])
    right = torch.stack([entering[0], table.index_select(0, entering[1])])
    if swap_loops:
        loops = torch.stack([table.index_select(0, node_index), node_index])
        left, right = torch.cat([left, loops], 1), torch.cat([right, loops.flip(0)], 1)
    return left, out_ids, right, in_ids


def _touching(
    edge_index: Tensor, node_index: Tensor, num_nodes: int
) -> tuple[Tensor, Tensor]:
    """Whether each edge leaves, and whether it enters, a kept node."""
    kept = torch.zeros(num_nodes, dtype=torch.bool, device=edge_index.device)
    kept = kept.index_fill(0, node_index, True)
    ends = kept.index_select(0, edge_index.reshape(-1)).view(2, -1)
    return ends[0], ends[1]


def _numbers(node_index: Tensor, num_nodes: int) -> Tensor:
    """The new number of each kept node, 0 elsewhere."""
    new = torch.arange(node_index.numel(), device=node_index.device)
    return new.new_zeros(num_nodes).index_copy(0, node_index, new)
