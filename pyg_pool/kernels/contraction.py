"""Which edges a graph is contracted along, and the clusters that come of it.

Pairs are undirected edges, lower node first, in ascending order; an order of pairs
puts the best first. Everything is deterministic and independent of the backend.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_pool.errors import reads_values
from pyg_pool.kernels.components import connected_components
from pyg_pool.kernels.dispatch import runs_numba
from pyg_pool.kernels.segment import segment_count

__all__ = ["first_pairs", "grown_pairs", "matched_pairs", "merge_pairs"]


def reverse_edges(owner: str, edge_index: Tensor, num_nodes: int) -> Tensor:
    """Position of the opposite of each edge.

    Args:
        owner: Name of the operator, for the message.
        edge_index: Both directions of every edge, sorted by source, then target.
        num_nodes: Number of nodes.

    Shapes:
        edge_index: ``[2, E]`` int64; returns ``[E]`` int64.

    Raises:
        ValueError: If the edges are not sorted, or a loop, a repeat or an edge
            without its opposite is among them.
    """
    if runs_numba("pool_mesh", edge_index.size(1), edge_index):
        from pyg_pool.kernels import contraction_numba

        plain = edge_index.contiguous().numpy()
        found = torch.from_numpy(contraction_numba.reverse_edges(plain, num_nodes))
        fits, out = bool(found[-1] == 0), found[:-1]
    else:
        source, target = edge_index[0], edge_index[1]
        key = source * num_nodes + target
        out = torch.sort(target * num_nodes + source).indices
        fits = True
        if reads_values(edge_index):
            other = edge_index.index_select(1, out).flip(0)
            fits = bool((key[1:] > key[:-1]).all()) and torch.equal(other, edge_index)
            fits = fits and not bool((source == target).any())
    if not fits:
        raise ValueError(
            f"{owner} got edge_index of shape {list(edge_index.shape)} that is not "
            f"sorted and symmetric, expected both directions of each edge once, no "
            f"loops, sorted by source and target; take the edges of "
            f"pyg_pool.mesh.primal_dual_graph, or sort them with "
            f"torch_geometric.utils.coalesce (and edge_to_dual with them)."
        )
    return out


def first_pairs(order: Tensor, graph: Tensor, limit: Tensor) -> Tensor:
    """Marks the first pairs of each graph.

    Args:
        order: Pairs, best first.
        graph: Graph of each pair.
        limit: How many pairs of each graph.

    Shapes:
        order: ``[S]`` int64; graph: ``[P]`` int64; limit: ``[B]`` int64; returns
        ``[P]`` bool.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.contraction import first_pairs
        >>> order, graph = torch.tensor([2, 0, 1]), torch.tensor([0, 0, 1])
        >>> first_pairs(order, graph, torch.tensor([1, 1]))
        tensor([ True, False,  True])
    """
    owner, place = torch.sort(graph.index_select(0, order), stable=True)
    order = order.index_select(0, place)
    count = segment_count(owner, limit.size(0))
    start = count.cumsum(0) - count
    position = torch.arange(order.size(0), device=order.device)
    inside = position - start.index_select(0, owner) < limit.index_select(0, owner)
    out = torch.zeros(graph.size(0), dtype=torch.bool, device=order.device)
    return out.index_copy(0, order, inside)


def matched_pairs(
    pairs: Tensor, order: Tensor, graph: Tensor, limit: Tensor, num_nodes: int
) -> Tensor:
    """Marks pairs, best first, that have no node in common.

    Args:
        pairs: Pairs of nodes.
        order: Pairs that may be taken, best first.
        graph: Graph of each pair.
        limit: How many pairs of each graph at most.
        num_nodes: Number of nodes.

    Shapes:
        pairs: ``[2, P]``; order: ``[S]``; graph: ``[P]``; limit: ``[B]``, all int64;
        returns ``[P]`` bool.

    Note:
        The greedy matching, cut off after ``limit``. Away from the CPU in rounds:
        a pair that is the best at both its ends belongs to it.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.contraction import matched_pairs
        >>> path, graph = torch.tensor([[0, 1, 2], [1, 2, 3]]), torch.zeros(3).long()
        >>> matched_pairs(path, torch.tensor([0, 1, 2]), graph, torch.tensor([2]), 4)
        tensor([ True, False,  True])
    """
    if torch.compiler.is_compiling():
        out: Tensor = _matched_op(pairs, order, graph, limit, num_nodes)
        return out
    if runs_numba("pool_mesh", pairs.size(1), pairs, order, graph, limit):
        from pyg_pool.kernels import contraction_numba

        found = contraction_numba.match(
            pairs.contiguous().numpy(), order.numpy(), graph.numpy(), limit.numpy(),
            num_nodes,
        )  # fmt: skip
        return torch.from_numpy(found)
    left, right = pairs.index_select(1, order)
    last = order.size(0)
    rank = torch.arange(last, device=order.device)
    taken = torch.zeros(last, dtype=torch.bool, device=order.device)
    live = torch.ones_like(taken)
    while bool(live.any()):
        now = rank.masked_fill(~live, last)
        best = now.new_full((num_nodes,), last)
        best = best.scatter_reduce(0, left, now, "amin")
        best = best.scatter_reduce(0, right, now, "amin")
        at_left, at_right = best.index_select(0, left), best.index_select(0, right)
        won = live & (at_left == rank) & (at_right == rank)
        taken = taken | won
        used = torch.zeros(num_nodes, dtype=torch.bool, device=order.device)
        ids = won.nonzero().view(-1)
        used = used.index_fill(0, left.index_select(0, ids), True)
        used = used.index_fill(0, right.index_select(0, ids), True)
        live = live & ~used.index_select(0, left) & ~used.index_select(0, right)
    return first_pairs(order.index_select(0, taken.nonzero().view(-1)), graph, limit)


def grown_pairs(
    pairs: Tensor,
    order: Tensor,
    graph: Tensor,
    limit: Tensor,
    num_nodes: int,
    max_cluster_size: int,
) -> Tensor:
    """Marks pairs, best first, that leave no cluster above a size.

    Arguments and result are those of :func:`matched_pairs`; a pair inside one
    cluster counts as taken.

    Note:
        A sequential walk on the CPU: elsewhere the pairs are copied there and back.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.contraction import grown_pairs
        >>> path, graph = torch.tensor([[0, 1, 2], [1, 2, 3]]), torch.zeros(3).long()
        >>> grown_pairs(path, torch.arange(3), graph, torch.tensor([3]), 4, 3)
        tensor([ True,  True, False])
    """
    if torch.compiler.is_compiling():
        out: Tensor = _grown_op(pairs, order, graph, limit, num_nodes, max_cluster_size)
        return out
    from pyg_pool.kernels import contraction_numba

    found = contraction_numba.grow(
        pairs.cpu().contiguous().numpy(), order.cpu().numpy(), graph.cpu().numpy(),
        limit.cpu().numpy(), num_nodes, max_cluster_size,
    )  # fmt: skip
    return torch.from_numpy(found).to(pairs.device)


def merge_pairs(pairs: Tensor, num_nodes: int) -> tuple[Tensor, int]:
    """Clusters of the nodes that pairs join, and their number.

    Args:
        pairs: Pairs of nodes.
        num_nodes: Number of nodes.

    Returns:
        The cluster of each node, numbered by smallest member, and the number of
        clusters.

    Shapes:
        pairs: ``[2, P]`` int64; returns ``[N]`` int64.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.contraction import merge_pairs
        >>> merge_pairs(torch.tensor([[3, 1], [0, 2]]), 5)
        (tensor([0, 1, 1, 0, 2]), 3)
    """
    if runs_numba("pool_mesh", num_nodes, pairs):
        from pyg_pool.kernels import contraction_numba

        found, count = contraction_numba.merge_pairs(
            pairs.contiguous().numpy(), num_nodes
        )
        return torch.from_numpy(found), int(count)
    cluster = connected_components(pairs, num_nodes)
    if torch.compiler.is_compiling():  # a mark for each cluster that has a member
        marks = torch.zeros_like(cluster).index_fill(0, cluster, 1)
        return cluster, marks.nonzero().size(0)
    return cluster, int(cluster.max()) + 1 if num_nodes > 0 else 0


# Greedy choices walk from pair to pair: one operation each in a traced graph.
@torch.library.custom_op("pyg_pool::matched_pairs", mutates_args=())
def _matched_op(
    pairs: Tensor, order: Tensor, graph: Tensor, limit: Tensor, num_nodes: int
) -> Tensor:
    return matched_pairs(pairs, order, graph, limit, num_nodes)


@_matched_op.register_fake
def _(
    pairs: Tensor, order: Tensor, graph: Tensor, limit: Tensor, num_nodes: int
) -> Tensor:
    return pairs.new_empty(pairs.size(1), dtype=torch.bool)


@torch.library.custom_op("pyg_pool::grown_pairs", mutates_args=())
def _grown_op(
    pairs: Tensor, order: Tensor, graph: Tensor, limit: Tensor, num_nodes: int,
    max_cluster_size: int,
) -> Tensor:  # fmt: skip
    return grown_pairs(pairs, order, graph, limit, num_nodes, max_cluster_size)


@_grown_op.register_fake
def _(
    pairs: Tensor, order: Tensor, graph: Tensor, limit: Tensor, num_nodes: int,
    max_cluster_size: int,
) -> Tensor:  # fmt: skip
    return pairs.new_empty(pairs.size(1), dtype=torch.bool)
