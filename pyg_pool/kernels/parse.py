"""Which neighbour each node points at, and which nodes hang together by that.

Only maxima, minima and gathers: the result is the same on every device and for every
order of the edges, and nothing is sorted.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_pool.errors import check_edges, reads_values
from pyg_pool.kernels.dispatch import chosen, runs_numba
from pyg_pool.typing import OptTensor

__all__ = ["dominant_links", "link_components", "parse", "rounded"]

# Rounds of doubling in a traced graph, where the number of nodes is not known.
TRACED_ROUNDS = 32


def parse(
    edge_index: Tensor,
    score: Tensor,
    num_nodes: int,
    batch: OptTensor = None,
    *,
    loop_score: OptTensor = None,
) -> Tensor:
    """Clusters the nodes that are joined by the best edge of either.

    Args:
        edge_index: Edges, both directions listed; node ``edge_index[0]`` may choose
            the edge. Self loops are passed over.
        score: Score of each edge. A NaN is never chosen.
        num_nodes: Number of nodes.
        batch: Graph of each node; only checked against the edges.
        loop_score: Score of each node's own loop: where it is larger than that of
            every edge the node chooses itself.

    Returns:
        The cluster of each node, numbered by smallest member.

    Shapes:
        edge_index: ``[2, E]``; score: ``[E]``; batch, loop_score: ``[N]``; returns
        ``[N]`` int64.

    Raises:
        ValueError: If shapes or ids do not fit, or an edge joins two graphs.

    Note:
        Ties go to the lowest neighbour, and to an edge before the loop. Cost:
        O(E + N log N), no sort; deterministic on every device. Nodes without edges
        are clusters of their own.

    Example:
        >>> import torch
        >>> from pyg_pool.pool.graph_parsing import parse
        >>> path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> parse(path, torch.tensor([0.9, 0.9, 0.1, 0.1, 0.5, 0.5]), 4)
        tensor([0, 0, 1, 1])
    """
    edge_index = check_edges("parse", edge_index, score, num_nodes)
    for name, rows, size in (
        ("score", score, edge_index.size(1)),
        ("loop_score", loop_score, num_nodes),
        ("batch", batch, num_nodes),
    ):
        if rows is not None and list(rows.shape) != [size]:
            raise ValueError(
                f"parse got {name} of shape {list(rows.shape)}, expected [{size}]; "
                f"give one value per {'edge' if name == 'score' else 'node'}."
            )
    if batch is not None and reads_values(batch):
        ends = batch.index_select(0, edge_index.reshape(-1)).view(2, -1)
        crossing = (ends[0] != ends[1]).nonzero().view(-1)
        if crossing.numel() > 0:
            raise ValueError(
                f"parse got an edge {edge_index[:, crossing[0]].tolist()} between "
                f"graphs {ends[:, crossing[0]].tolist()}, expected edges inside one "
                f"graph; check batch."
            )
    return link_components(dominant_links(edge_index, score, num_nodes, loop_score))[0]


def dominant_links(
    edge_index: Tensor,
    score: Tensor,
    num_nodes: int,
    loop_score: OptTensor = None,
    *,
    both_ways: bool = False,
) -> Tensor:
    """Returns for each node the end of its best edge.

    Args:
        edge_index: Edges; self loops are passed over.
        score: Score of each edge, in any floating type; an edge with NaN is passed
            over.
        num_nodes: Number of nodes.
        loop_score: Score of each node's own loop, which wins only where it is
            larger than that of every edge.
        both_ways: Whether each column stands for both directions.

    Returns:
        The neighbour with the best edge, the lowest one among equals; the node
        itself where its loop wins or where it has no edge.

    Shapes:
        edge_index: ``[2, E]`` int64; score: ``[E]``; loop_score: ``[N]``; returns
        ``[N]`` int64.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.parse import dominant_links
        >>> edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> dominant_links(edges, torch.tensor([0.2, 0.2, 0.7, 0.7]), 4)
        tensor([1, 2, 1, 3])
    """
    score = score.detach()
    is_plain = loop_score is None and not both_ways
    if is_plain and chosen("parse", edge_index, score):
        from pyg_pool.kernels import parse_triton

        found: Tensor = parse_triton.dominant_links(edge_index, score, num_nodes)
        return found
    tensors = [edge_index, score] + ([] if loop_score is None else [loop_score])
    if _has_twin(score, loop_score) and runs_numba(
        "parse", edge_index.size(1), *tensors
    ):
        return _numba_links(edge_index, score, num_nodes, loop_score, both_ways)
    source, target = edge_index[0], edge_index[1]
    if both_ways:
        source, target = torch.cat([source, target]), torch.cat([target, source])
        score = torch.cat([score, score])
    valid = (source != target) & ~score.isnan()
    lowest = score.new_full((num_nodes,), -torch.inf)
    given = score.masked_fill(~valid, -torch.inf)
    best = lowest.scatter_reduce(0, source, given, "amax")
    top = valid & (score == best.index_select(0, source))
    nodes = torch.arange(num_nodes, device=edge_index.device)
    link = torch.full_like(nodes, num_nodes)
    link = link.scatter_reduce(0, source, target.masked_fill(~top, num_nodes), "amin")
    link = torch.where(link == num_nodes, nodes, link)
    if loop_score is not None:
        link = torch.where(loop_score.detach() > best, nodes, link)
    return link


def _has_twin(score: Tensor, loop_score: OptTensor) -> bool:
    known = score.dtype in (torch.float32, torch.float64)
    return known and (loop_score is None or loop_score.dtype == score.dtype)


def _numba_links(
    edge_index: Tensor,
    score: Tensor,
    num_nodes: int,
    loop_score: OptTensor,
    both_ways: bool,
) -> Tensor:
    from pyg_pool.kernels import parse_numba

    loops = score.new_empty(0) if loop_score is None else loop_score.detach()
    found = parse_numba.dominant_links(
        edge_index.contiguous().numpy(), score.contiguous().numpy(), num_nodes,
        loops.contiguous().numpy(), both_ways,
    )  # fmt: skip
    return torch.from_numpy(found)


def link_components(link: Tensor) -> tuple[Tensor, int]:
    """Groups the nodes that are joined by links, one of which leaves each node.

    Args:
        link: The node that each node points at, perhaps itself.

    Returns:
        The group of each node, numbered by smallest member, and the number of
        groups.

    Shapes:
        link: ``[N]`` int64; returns ``[N]`` int64.

    Note:
        Links are followed in doubling steps, about log2(N) of them without a look
        at their outcome, so that the device never waits for the host. Every group
        has one cycle (two nodes that point at each other, or a longer one), whose
        lowest node stands for the group until the groups are numbered.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.parse import link_components
        >>> link_components(torch.tensor([1, 2, 1, 3]))
        (tensor([0, 0, 0, 1]), 2)
    """
    size = link.size(0)
    if runs_numba("parse", size, link):
        from pyg_pool.kernels import parse_numba

        found, count = parse_numba.link_components(link.contiguous().numpy())
        return torch.from_numpy(found), int(count)
    nodes = torch.arange(size, device=link.device)
    if chosen("parse", link):
        from pyg_pool.kernels import parse_triton

        return _numbered(parse_triton.link_roots(link), nodes)
    # After round k: the node 2^k steps ahead, and the lowest one on the way there.
    ahead, lowest = link, nodes
    rounds = TRACED_ROUNDS if torch.compiler.is_compiling() else size.bit_length()
    for _ in range(rounds):
        lowest = torch.minimum(lowest, lowest.index_select(0, ahead))
        ahead = ahead.index_select(0, ahead)
    return _numbered(lowest.index_select(0, ahead), nodes)


def _numbered(group: Tensor, nodes: Tensor) -> tuple[Tensor, int]:
    """Groups by smallest member, and their number."""
    size = nodes.numel()
    member = torch.full_like(nodes, size).scatter_reduce(0, group, nodes, "amin")
    member = member.index_select(0, group)
    first = member == nodes
    number = first.long().cumsum(0) - 1
    return number.index_select(0, member), first.nonzero().size(0)


def rounded(logit: Tensor, step: float | None) -> Tensor:
    """Rounds logits to a step relative to their power of two; ``None`` keeps them.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.parse import rounded
        >>> rounded(torch.tensor([1.3, -5.2]), 2**-2)
        tensor([ 1.5000, -6.0000])
    """
    if step is None:
        return logit
    mantissa, exponent = torch.frexp(logit)
    return torch.ldexp((mantissa / step).round() * step, exponent)
