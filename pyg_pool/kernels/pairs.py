"""Unordered pairs of neighbours, and a number for each from the features of both."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.dispatch import is_traced, runs_numba
from pyg_pool.kernels.segment import segment_reduce
from pyg_pool.typing import OptTensor

__all__ = [
    "distinct_pairs",
    "drop_pairs",
    "link_scores",
    "links_inside",
    "pair_logits",
    "pair_numbers",
]

# Entries of a product of features that may be held at once.
CHUNK = 1 << 22


def distinct_pairs(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Returns each pair of neighbours once, lower node first, in ascending order.

    Args:
        edge_index: Edges in any direction and number; self loops are left out.
        num_nodes: Number of nodes.

    Shapes:
        edge_index: ``[2, E]`` int64; returns ``[2, P]`` int64.

    Note:
        Cost: O(N + E) on the CPU (a glance where the edges are sorted and
        undirected, else a counting sort), a sort of E keys elsewhere.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.pairs import distinct_pairs
        >>> distinct_pairs(torch.tensor([[2, 1, 0, 1, 3], [1, 2, 1, 2, 3]]), 4)
        tensor([[0, 1],
                [1, 2]])
    """
    if runs_numba("distinct_pairs", edge_index.size(1), edge_index):
        from pyg_pool.kernels import pairs_numba

        found = pairs_numba.distinct_pairs(edge_index.contiguous().numpy(), num_nodes)
        return torch.from_numpy(found)
    return _sorted_pairs(edge_index, num_nodes)[0]


def pair_numbers(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Returns the distinct pairs and the number of each edge's pair, -1 for loops.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.pairs import pair_numbers
        >>> pair_numbers(torch.tensor([[2, 1, 0, 3], [1, 2, 1, 3]]), 4)[1]
        tensor([ 1,  1,  0, -1])
    """
    pairs, edge, slot = _sorted_pairs(edge_index, num_nodes)
    number = edge.new_full((edge_index.size(1),), -1).index_copy(0, edge, slot)
    return pairs, number


def drop_pairs(
    edge_index: Tensor, num_nodes: int, rate: float
) -> tuple[Tensor, Tensor]:
    """Takes out each pair with probability ``rate``, and its edges with it.

    Returns:
        The pairs that stay, and the positions of their edges.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.pairs import drop_pairs
        >>> drop_pairs(torch.tensor([[1, 0, 2], [0, 1, 2]]), 3, 0.0)[1]
        tensor([0, 1])
    """
    pairs, number = pair_numbers(edge_index, num_nodes)
    stays = torch.rand(pairs.size(1), device=pairs.device) >= rate
    # Loops have no pair: their -1 picks the entry behind the last one.
    listed = torch.cat([stays, stays.new_zeros(1)])[number]
    pairs = pairs.index_select(1, stays.nonzero().view(-1))
    return pairs, listed.nonzero().view(-1)


def _sorted_pairs(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Distinct pairs; the edges that are no loops; the pair of each of these."""
    ids = (edge_index[0] != edge_index[1]).nonzero().view(-1)
    ends = edge_index.index_select(1, ids)
    low, high = torch.minimum(ends[0], ends[1]), torch.maximum(ends[0], ends[1])
    key, order = torch.sort(low * num_nodes + high)
    new = torch.ones_like(key, dtype=torch.bool)
    new[1:] = key[1:] != key[:-1]
    first = order.index_select(0, new.nonzero().view(-1))
    pairs = torch.stack([low.index_select(0, first), high.index_select(0, first)])
    return pairs, ids.index_select(0, order), new.long().cumsum(0) - 1


def links_inside(links: Tensor, cluster: Tensor) -> Tensor:
    """Positions of the links that join two nodes of the same cluster.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.pairs import links_inside
        >>> links_inside(torch.tensor([[0, 1], [1, 2]]), torch.tensor([0, 0, 1]))
        tensor([0])
    """
    ends = cluster.index_select(0, links.reshape(-1)).view(2, -1)
    return (ends[0] == ends[1]).nonzero().view(-1)


def link_scores(
    edge_index: Tensor,
    score: Tensor,
    cluster: Tensor,
    num_clusters: int,
    *,
    times: OptTensor = None,
) -> tuple[Tensor, Tensor]:
    """Returns mean score and number of the edges inside each cluster.

    A cluster without any counts as one edge of score 1.

    Args:
        edge_index: Edges, loops among them; those between clusters do not matter.
        score: Score of each edge.
        cluster: Cluster of each node.
        num_clusters: Number of clusters.
        times: How often each edge counts; ``None`` means once.

    Shapes:
        edge_index: ``[2, E]`` int64; score, times: ``[E]``; cluster: ``[N]``;
        returns ``[K]``, ``[K]``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.pairs import link_scores
        >>> edges, score = torch.tensor([[0, 1], [1, 2]]), torch.tensor([0.5, 0.9])
        >>> link_scores(edges, score, torch.tensor([0, 0, 1]), 2)
        (tensor([0.5000, 1.0000]), tensor([1., 1.]))
    """
    ends = cluster.index_select(0, edge_index.reshape(-1)).view(2, -1)
    inside = (ends[0] == ends[1]).nonzero().view(-1)
    owner, score = ends[0].index_select(0, inside), score.index_select(0, inside)
    number = torch.ones_like(score)
    if times is not None:
        number = times.index_select(0, inside).to(score.dtype)
    total = segment_reduce(score * number, owner, dim_size=num_clusters)
    count = segment_reduce(number, owner, dim_size=num_clusters)
    alone = count == 0
    count = count.masked_fill(alone, 1.0)
    return total.masked_fill(alone, 1.0) / count, count


def pair_logits(x: Tensor, pairs: Tensor, weight: Tensor) -> Tensor:
    r"""The weighted inner product of the features of each pair.

    .. math::
        l_{ij} = \sum_f w_f\, x_{if}\, x_{jf}

    Args:
        x: Features.
        pairs: Pairs of rows.
        weight: Weight of each feature, in the type of ``x``.

    Returns:
        One number per pair. Products of features are never kept: memory is O(P)
        beside the features, in both directions.

    Shapes:
        x: ``[N, F]``; pairs: ``[2, P]`` int64; weight: ``[F]``; returns ``[P]``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.pairs import pair_logits
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> pair_logits(x, torch.tensor([[0], [1]]), torch.tensor([1.0, 10.0]))
        tensor([83.])
    """
    if is_traced():
        return (x.index_select(0, pairs[0]) * x.index_select(0, pairs[1])) @ weight
    out: Tensor = _PairLogits.apply(x, pairs, weight)
    return out


class _PairLogits(torch.autograd.Function):
    """Recomputes the products when the gradient is asked for."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, pairs: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, pairs, weight)
        if _takes_numba(x, pairs, weight):
            from pyg_pool.kernels import pairs_numba

            out = x.new_empty(pairs.size(1))
            pairs_numba.logits(
                x.detach().numpy(), pairs.contiguous().numpy(),
                weight.detach().contiguous().numpy(), out.numpy(),
            )  # fmt: skip
            return out
        parts = [
            (x.index_select(0, i) * x.index_select(0, j)) @ weight
            for i, j in _chunks(pairs, x.size(1))
        ]
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor]:
        x, pairs, weight = ctx.saved_tensors
        # With second derivatives asked for, only torch's operations will do.
        if not torch.is_grad_enabled() and _takes_numba(x, pairs, weight):
            from pyg_pool.kernels import pairs_numba

            grad_x, grad_weight = torch.zeros_like(x), torch.zeros_like(weight)
            pairs_numba.logits_backward(
                x.detach().numpy(), pairs.contiguous().numpy(),
                weight.detach().contiguous().numpy(), grad.contiguous().numpy(),
                grad_x.numpy(), grad_weight.numpy(),
            )  # fmt: skip
            return grad_x, None, grad_weight
        return _native_backward(x, pairs, weight, grad)


def _native_backward(
    x: Tensor, pairs: Tensor, weight: Tensor, grad: Tensor
) -> tuple[Tensor, None, Tensor]:
    grad_x, grad_weight = torch.zeros_like(x), torch.zeros_like(weight)
    width = x.size(1)
    slopes = grad.split(_rows(width))
    for (i, j), slope in zip(_chunks(pairs, width), slopes, strict=True):
        a, b = x.index_select(0, i), x.index_select(0, j)
        up = slope.unsqueeze(-1) * weight
        grad_x = grad_x.index_add(0, i, up * b).index_add(0, j, up * a)
        grad_weight = grad_weight + slope @ (a * b)
    return grad_x, None, grad_weight


def _takes_numba(x: Tensor, pairs: Tensor, weight: Tensor) -> bool:
    size = pairs.size(1) * x.size(1)
    known = x.dtype == weight.dtype and x.dtype in (torch.float32, torch.float64)
    return known and x.is_contiguous() and runs_numba("pair_logits", size, x, pairs)


def _rows(width: int) -> int:
    """Pairs whose products are held at once."""
    return max(CHUNK // max(width, 1), 1)


def _chunks(pairs: Tensor, width: int) -> list[tuple[Tensor, Tensor]]:
    size = _rows(width)
    return list(zip(pairs[0].split(size), pairs[1].split(size), strict=True))
