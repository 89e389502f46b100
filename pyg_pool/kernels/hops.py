"""All pairs of nodes within a number of hops, by breadth-first search."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_pool.kernels.dispatch import runs_numba

__all__ = ["hop_pairs"]


def hop_pairs(
    ptr: Tensor, neighbour: Tensor, radius: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Lists for each node those within ``radius`` hops, ascending, itself included.

    Args:
        ptr: Offsets of the neighbour lists.
        neighbour: Neighbours of all nodes, one list after the other.
        radius: Most hops, or ``None`` for all nodes that can be reached.

    Returns:
        Offsets of the lists, nodes, and their distances.

    Shapes:
        ptr: ``[N + 1]`` int64; neighbour: ``[M]`` int64; returns ``[N + 1]``,
        ``[P]``, ``[P]`` int64.

    Note:
        Cost: time in the sum of the degrees over all pairs, memory in the number of
        pairs. Graphs of a batch never meet.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.hops import hop_pairs
        >>> path = torch.tensor([0, 1, 3, 4]), torch.tensor([1, 0, 2, 1])
        >>> hop_pairs(*path, 1)
        (tensor([0, 2, 5, 7]), tensor([0, 1, 0, 1, 2, 1, 2]), \
tensor([0, 1, 1, 0, 1, 1, 0]))
    """
    limit = -1 if radius is None else radius
    if runs_numba("hop_pairs", ptr.numel(), ptr):
        from pyg_pool.kernels import hops_numba

        arrays = ptr.contiguous().numpy(), neighbour.contiguous().numpy()
        found = hops_numba.hop_pairs(*arrays, limit)
        return tuple(torch.from_numpy(part) for part in found)  # type: ignore[return-value]
    return _native(ptr, neighbour, limit)


def _native(
    ptr: Tensor, neighbour: Tensor, limit: int
) -> tuple[Tensor, Tensor, Tensor]:
    """One sparse join per hop; keys below N * N."""
    size = ptr.numel() - 1
    count = ptr[1:] - ptr[:-1]
    front = torch.arange(size, device=ptr.device) * (size + 1)
    seen, hops = front, torch.zeros_like(front)
    hop = 0
    while front.numel() and hop != limit:
        hop += 1
        source, via = front // max(size, 1), front % max(size, 1)
        number = count.index_select(0, via)
        owner = torch.arange(via.numel(), device=ptr.device).repeat_interleave(number)
        shift = ptr.index_select(0, via) - (number.cumsum(0) - number)
        place = torch.arange(owner.numel(), device=ptr.device)
        place = place + shift.index_select(0, owner)
        target = neighbour.index_select(0, place)
        front = torch.unique(source.index_select(0, owner) * size + target)
        front = front[~torch.isin(front, seen)]
        seen, order = torch.sort(torch.cat([seen, front]))
        hops = torch.cat([hops, torch.full_like(front, hop)]).index_select(0, order)
    row, node = seen // max(size, 1), seen % max(size, 1)
    out = ptr.new_zeros(size + 1)
    out.scatter_add_(0, row + 1, torch.ones_like(row))
    return out.cumsum(0), node, hops
