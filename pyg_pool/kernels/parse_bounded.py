"""Clusters of a parse that may not grow beyond a number of nodes."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_pool.kernels.dispatch import runs_numba
from pyg_pool.kernels.parse import link_components

__all__ = ["bounded_components"]


def bounded_components(
    link: Tensor, pairs: Tensor, score: Tensor, max_size: int
) -> tuple[Tensor, int]:
    """Groups nodes by their links, the best link first, up to a number of nodes.

    Args:
        link: The node that each node points at.
        pairs: Pairs of neighbours, each once.
        score: Score of each pair.
        max_size: Largest number of nodes in a group. A link that would make a
            larger one is left out.

    Returns:
        The group of each node, numbered by smallest member, and their number.

    Shapes:
        link: ``[N]`` int64; pairs: ``[2, P]`` int64; score: ``[P]``; returns ``[N]``
        int64.

    Note:
        Equal scores go by the lower node. Where no group is too large the result is
        that of ``link_components``; otherwise links are sorted and followed one by
        one on the CPU. Not for compiled graphs.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.parse_bounded import bounded_components
        >>> path, score = torch.tensor([[0, 1], [1, 2]]), torch.tensor([0.5, 0.9])
        >>> bounded_components(torch.tensor([1, 2, 1]), path, score, 2)
        (tensor([0, 1, 1]), 2)
    """
    group, count = link_components(link)
    sizes = torch.bincount(group, minlength=count)
    if count == 0 or int(sizes.max()) <= max_size:
        return group, count
    # The score of the link of each node; nodes that point at themselves have none.
    nodes = torch.arange(link.size(0), device=link.device)
    worth = score.new_full((link.size(0),), -torch.inf)
    for one, other in ((0, 1), (1, 0)):
        ids = (link.index_select(0, pairs[one]) == pairs[other]).nonzero().view(-1)
        ends = pairs[one].index_select(0, ids)
        worth = worth.index_copy(0, ends, score.index_select(0, ids))
    order = worth.argsort(descending=True, stable=True)
    order = order.index_select(
        0, (link != nodes).index_select(0, order).nonzero()[:, 0]
    )
    order, link = order.cpu(), link.cpu()
    if runs_numba("parse", link.size(0), link):
        from pyg_pool.kernels import parse_bounded_numba

        root = parse_bounded_numba.roots(order.numpy(), link.numpy(), max_size)
        found = torch.from_numpy(root)
    else:
        found = torch.tensor(_roots(order.tolist(), link.tolist(), max_size))
    return link_components(found.to(nodes.device))


def _roots(order: list[int], link: list[int], max_size: int) -> list[int]:
    """A node of its group for each node, by union of small groups."""
    root, size = list(range(len(link))), [1] * len(link)

    def find(node: int) -> int:
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    for node in order:
        a, b = find(node), find(link[node])
        if a != b and size[a] + size[b] <= max_size:
            low, high = min(a, b), max(a, b)
            root[high] = low
            size[low] += size[high]
    return root
