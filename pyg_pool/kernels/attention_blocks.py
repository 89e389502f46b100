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
# From here on calls are few beside what each has to do, so that none is padded.
LARGE = 128
WIDTHS = sorted({int(width) for width in WIDTHS})[:NUM_WIDTHS]


@dataclass(frozen=True)
class AttentionBlock:
    """Groups whose queries, and whose keys, are padded to the same number.

    Attributes:
        groups: ``[G]`` the groups.
        query: ``[G, P]`` rows of the queries, padded by a row of the group.
        query_here: ``[G, P]`` where it is no padding.
        key: ``[G, K]`` rows of the keys, padded by a row of the group.
        key_here: ``[G, K]`` where it is no padding.
        query_span: Where the queries of a group that is alone lie side by side.
        key_span: The same for its keys.
    """

    groups: Tensor
    query: Tensor
    query_here: Tensor
    key: Tensor
    key_here: Tensor
    query_span: slice | None = None
    key_span: slice | None = None

    def chunks(self, size: int) -> Iterator[AttentionBlock]:
        """Returns the block in parts of at most ``size`` queries per group."""
        for start in range(0, self.query.size(1), size):
            part = slice(start, start + size)
            yield AttentionBlock(
                self.groups, self.query[:, part], self.query_here[:, part],
                self.key, self.key_here,
            )  # fmt: skip


def attention_blocks(
    query_index: Tensor,
    key_index: Tensor,
    num_groups: int,
    kind: OptTensor = None,
    *,
    alone: bool = False,
) -> list[AttentionBlock]:
    """Puts groups of similar size together.

    Args:
        query_index: Group of each query, in any order.
        key_index: Group of each key; may be the same tensor.
        num_groups: Number of groups.
        kind: Kind of each group; a block holds groups of one kind.
        alone: Whether groups of more than 128 queries or keys are alone, unpadded.

    Returns:
        Blocks that hold every query whose group has a key once.

    Shapes:
        query_index: ``[Q]`` int64; key_index: ``[K]`` int64; kind: ``[B]`` int64.

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
    if kind is not None:
        code = code + NUM_WIDTHS**2 * kind
    is_empty = (queries[0] == 0) | (keys[0] == 0)
    code = code.masked_fill(is_empty, -1)
    blocks = []
    if alone:
        is_large = (torch.maximum(queries[0], keys[0]) > LARGE) & ~is_empty
        code = code.masked_fill(is_large, -1)
        for group in is_large.nonzero():
            query = _whole(queries, group)
            key = query if keys is queries else _whole(keys, group)
            blocks.append(AttentionBlock(group, *query[:2], *key[:2], query[2], key[2]))
    for word in torch.unique(code).tolist():
        if word < 0:
            continue
        groups, word = (code == word).nonzero().view(-1), word % NUM_WIDTHS**2
        padded = _padded(queries, groups, WIDTHS[word // NUM_WIDTHS])
        other = padded
        if keys is not queries:
            other = _padded(keys, groups, WIDTHS[word % NUM_WIDTHS])
        blocks.append(AttentionBlock(groups, *padded, *other))
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
    last = (count.index_select(0, groups) - 1).clamp(min=0).unsqueeze(-1)
    rows = start.index_select(0, groups).unsqueeze(-1) + torch.minimum(place, last)
    if order is not None:
        rows = order.index_select(0, rows.view(-1)).view_as(rows)
    return rows, here


def _whole(sides: Sides, group: Tensor) -> tuple[Tensor, Tensor, slice | None]:
    """Rows of one group without padding, and where they lie if side by side."""
    count, start, order = sides
    span = slice(int(start[group]), int(start[group] + count[group]))
    rows = torch.arange(span.start, span.stop, device=group.device)
    here = torch.ones_like(rows, dtype=torch.bool).unsqueeze(0)
    if order is None:
        return rows.unsqueeze(0), here, span
    return order[span].unsqueeze(0), here, None
