"""Groups of similar size side by side, for attention inside each group.

Groups are padded to the next of a few widths, which are at most half as far apart
as they are large, so that a large group never pads a small one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_pool.errors import reads_values
from pyg_pool.kernels.segment import segment_count
from pyg_pool.typing import OptTensor

__all__ = ["AttentionBlock", "attention_blocks"]

NUM_WIDTHS = 62
WIDTHS = [2**k if half == 0 else 3 * 2 ** (k - 1) for k in range(31) for half in (0, 1)]
WIDTHS = sorted({int(width) for width in WIDTHS})[:NUM_WIDTHS]


@dataclass(frozen=True)
class AttentionBlock:
    """Groups whose queries, and whose keys, are padded to the same number.

    Attributes:
        groups: ``[G]`` the groups.
        query: ``[G, P]`` rows of the queries, 0 where padded.
        query_here: ``[G, P]`` where it is no padding.
        key: ``[G, K]`` rows of the keys, 0 where padded.
        key_here: ``[G, K]`` where it is no padding.
    """

    groups: Tensor
    query: Tensor
    query_here: Tensor
    key: Tensor
    key_here: Tensor

    def chunks(self, size: int) -> Iterator[AttentionBlock]:
        """Returns the block in parts of at most ``size`` queries per group."""
        for start in range(0, self.query.size(1), size):
            part = slice(start, start + size)
            yield AttentionBlock(
                self.groups, self.query[:, part], self.query_here[:, part],
                self.key, self.key_here,
            )  # fmt: skip


def attention_blocks(
    query_index: Tensor, key_index: Tensor, num_groups: int
) -> list[AttentionBlock]:
    """Puts groups of similar size together.

    Args:
        query_index: Group of each query, in any order.
        key_index: Group of each key; may be the same tensor.
        num_groups: Number of groups.

    Returns:
        Blocks that hold every query whose group has a key once.

    Shapes:
        query_index: ``[Q]`` int64; key_index: ``[K]`` int64.

    Note:
        Reads on the host which sizes occur.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.attention_blocks import attention_blocks
        >>> index = torch.tensor([0, 1, 1, 1, 1, 1])
        >>> [block.query.shape for block in attention_blocks(index, index, 2)]
        [torch.Size([1, 1]), torch.Size([1, 6])]
    """
    steps = torch.tensor(WIDTHS, device=query_index.device)
    queries = _sides(query_index, num_groups)
    keys = queries if key_index is query_index else _sides(key_index, num_groups)
    code = NUM_WIDTHS * torch.bucketize(queries[0], steps)
    code = code + torch.bucketize(keys[0], steps)
    code = code.masked_fill((queries[0] == 0) | (keys[0] == 0), -1)
    blocks = []
    for word in torch.unique(code).tolist():
        if word < 0:
            continue
        groups = (code == word).nonzero().view(-1)
        query = _padded(queries, groups, WIDTHS[word // NUM_WIDTHS])
        key = query
        if keys is not queries:
            key = _padded(keys, groups, WIDTHS[word % NUM_WIDTHS])
        blocks.append(AttentionBlock(groups, *query, *key))
    return blocks


Sides = tuple[Tensor, Tensor, OptTensor]


def _sides(index: Tensor, num_groups: int) -> Sides:
    """Size and start of each group, and the order of rows where it is not theirs."""
    count = segment_count(index, num_groups)
    order = None
    # Where reading that it is in order would wait for the device, it is sorted anyway.
    if not (reads_values(index) and bool((index[1:] >= index[:-1]).all())):
        order = torch.sort(index, stable=True).indices
    return count, count.cumsum(0) - count, order


def _padded(sides: Sides, groups: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Rows of some groups, and which of them are there."""
    count, start, order = sides
    place = torch.arange(width, device=groups.device)
    here = place < count.index_select(0, groups).unsqueeze(-1)
    rows = start.index_select(0, groups).unsqueeze(-1) + place
    rows = rows.masked_fill(~here, 0)
    if order is not None:
        rows = order.index_select(0, rows.view(-1)).view_as(rows)
    return rows, here
