"""Puts together what chunks of copies give for each node."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_pool.relational.copies import Copies
from pyg_pool.relational.pooling import MERGED, CopyPooling

__all__ = ["merge_over_tuples"]


def merge_over_tuples(
    pooling: CopyPooling, parts: list[Tensor], pieces: list[Copies], copies: Copies
) -> Tensor:
    """Returns the pool over all tuples for each node from the pools over chunks.

    Raises:
        ValueError: If the pooling cannot be put together from chunks.
    """
    word = pooling.tuple_pool.word
    if word not in MERGED:
        raise ValueError(
            f"RelationalPooling got chunk_size with readout='node' and tuple_pool="
            f"{word!r}, expected one of {list(MERGED)} there; leave chunk_size out."
        )
    counts = [_counts(piece) for piece in pieces]
    if word == "sum":
        return pooling.scaled_nodes(torch.stack(parts).sum(0), copies)
    if word == "mean":
        weighted = [p * c.to(p.dtype) for p, c in zip(parts, counts, strict=True)]
        total = torch.stack(counts).sum(0).clamp(min=1)
        return torch.stack(weighted).sum(0) / total.to(parts[0].dtype)
    worst = -torch.inf if word == "max" else torch.inf
    stack = torch.stack(
        [p.masked_fill(c == 0, worst) for p, c in zip(parts, counts, strict=True)]
    )
    best = stack.max(0).values if word == "max" else stack.min(0).values
    return best.masked_fill(torch.stack(counts).sum(0) == 0, 0.0)


def _counts(copies: Copies) -> Tensor:
    """Number of copies with each node, ``[N, 1]``."""
    count = copies.pair_node.new_zeros(copies.num_nodes)
    ones = torch.ones_like(copies.pair_node)
    return count.scatter_add_(0, copies.pair_node, ones).view(-1, 1)
