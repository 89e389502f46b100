"""Connected components by hooking and pointer jumping."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_pool.errors import check_edges
from pyg_pool.kernels.dispatch import chosen

__all__ = ["connected_components"]


def connected_components(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Numbers the connected components of an undirected graph.

    Args:
        edge_index: Edges; the direction does not matter.
        num_nodes: Number of nodes.

    Returns:
        The component of each node, numbered by smallest member.

    Shapes:
        edge_index: ``[2, E]`` int64; returns ``[N]`` int64.

    Raises:
        ValueError: If the edges do not fit the nodes.

    Note:
        Deterministic. Cost: O((N + E) log N) time, O(N + E) memory; one device
        synchronisation per round.

    Source:
        Hooking rounds as in Zhang, Azad and Hu, "FastSV: a distributed-memory
        connected component algorithm with fast convergence", SIAM PP 2020.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels import connected_components
        >>> connected_components(torch.tensor([[3, 1], [0, 2]]), 5)
        tensor([0, 1, 1, 0, 2])
    """
    edge_index = check_edges("connected_components", edge_index, None, num_nodes)
    nodes = torch.arange(num_nodes, device=edge_index.device)
    if chosen("connected_components", edge_index):
        from pyg_pool.kernels import parse_triton

        parent: Tensor = parse_triton.components(edge_index, num_nodes)
    elif torch.compiler.is_compiling():
        parent = _roots_op(edge_index, num_nodes)
    else:
        parent = _roots(edge_index, nodes)
    root = parent == nodes
    number = root.long().cumsum(0) - 1
    return number.index_select(0, parent)


def _roots(edge_index: Tensor, nodes: Tensor) -> Tensor:
    """The lowest node of the component of each node."""
    both = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    source, target = both[0], both[1]
    parent = nodes.clone()
    while True:
        grand = parent.index_select(0, parent)
        offer = grand.index_select(0, target)
        new = parent.scatter_reduce(0, parent.index_select(0, source), offer, "amin")
        new = new.scatter_reduce(0, source, offer, "amin")
        new = torch.minimum(new, grand)
        if torch.equal(new, parent):
            return parent
        parent = new


# How many rounds there are depends on the edges, which a traced graph cannot hold.
@torch.library.custom_op("pyg_pool::component_roots", mutates_args=())
def _roots_op(edge_index: Tensor, num_nodes: int) -> Tensor:
    return _roots(edge_index, torch.arange(num_nodes, device=edge_index.device))


@_roots_op.register_fake
def _(edge_index: Tensor, num_nodes: int) -> Tensor:
    return edge_index.new_empty(num_nodes)
