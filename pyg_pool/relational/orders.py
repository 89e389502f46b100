"""Every order of the labels of a tuple."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from pyg_pool.relational.copies import Copies

__all__ = ["position_orders", "reordered"]


def reordered(label: Tensor, copies: Copies) -> list[Tensor]:
    """Label features under every order of the labels.

    The labelled nodes of a padded tuple change places among each other only, so that
    each of their orders comes up equally often.
    """
    index = copies.tuples.index
    length = index.size(1)
    blocks = label.view(label.size(0), length, label.size(1) // max(length, 1))
    real = (index >= 0).sum(1).index_select(0, copies.pair_tuple)
    out = []
    for order in itertools.permutations(range(length)):
        table = torch.tensor(
            [
                [*(p for p in order if p < count), *range(count, length)]
                for count in range(length + 1)
            ],
            device=label.device,
        )
        place = table.index_select(0, real).unsqueeze(-1).expand_as(blocks)
        out.append(blocks.gather(1, place).flatten(1))
    return out


def position_orders(copies: Copies, *, keep_root: bool = False) -> list[Tensor]:
    """Label number of each pair under every order of the labels, -1 for none.

    The labelled nodes of a padded tuple change places among each other only. With
    ``keep_root`` the first node keeps the first label, and the others of a padded
    tuple take any of the other labels.
    """
    index = copies.tuples.index
    length = index.size(1)
    rows = index.index_select(0, copies.pair_tuple)
    hit = rows == copies.pair_node.view(-1, 1)
    place = torch.where(hit.any(1), hit.long().argmax(1), -1) if length else None
    if place is None:
        return [torch.full_like(copies.pair_node, -1)]
    real = (index >= 0).sum(1).index_select(0, copies.pair_tuple)
    out = []
    for order in itertools.permutations(range(length)):
        if keep_root and order[0] != 0:
            continue
        # Positions below the number of real ones keep their order among themselves.
        table = [
            [
                sorted(order[:count]).index(p) if i < count and not keep_root else p
                for i, p in enumerate(order)
            ]
            for count in range(length + 1)
        ]
        ranks = torch.tensor([[*row, -1] for row in table], device=index.device)
        out.append(ranks[real, place])
    return out
