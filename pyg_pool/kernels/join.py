"""All pairs of positions with equal keys: a sparse join of two id vectors."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["join"]


def join(left: Tensor, right: Tensor, num_keys: int) -> tuple[Tensor, Tensor]:
    """Lists the positions of all pairs with ``left[a] == right[b]``.

    Args:
        left: Keys below ``num_keys``.
        right: Keys below ``num_keys``, in any order.
        num_keys: Number of keys.

    Returns:
        Positions in ``left`` and in ``right``, ordered by the first, then the second.

    Shapes:
        left: ``[A]`` int64; right: ``[B]`` int64; returns two ``[P]`` int64 tensors.

    Note:
        Cost: a sort of ``right``, and time and memory in the number of pairs.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.join import join
        >>> join(torch.tensor([2, 0]), torch.tensor([0, 2, 0]), 3)
        (tensor([0, 1, 1]), tensor([1, 0, 2]))
    """
    order = torch.sort(right, stable=True).indices
    count = right.new_zeros(num_keys).scatter_add_(0, right, torch.ones_like(right))
    start = count.cumsum(0) - count
    pairs = count.index_select(0, left)
    shift = start.index_select(0, left) - (pairs.cumsum(0) - pairs)
    position = torch.arange(left.numel(), device=left.device)
    a = torch.repeat_interleave(position, pairs)
    b = torch.arange(a.numel(), device=a.device) + torch.repeat_interleave(shift, pairs)
    return a, order.index_select(0, b)
