"""Colours of k-tuples of nodes of each copy: oblivious k-WL and k-FWL."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_pool.relational.checks import check_room
from pyg_pool.relational.colors import Colors, HashColors
from pyg_pool.relational.copies import Copies
from pyg_pool.relational.neighbours import spread

__all__ = ["Items"]

#: Messages of k-FWL that are made at once where hashes allow less.
BLOCK = 4_000_000


@dataclass(frozen=True)
class Items:
    """All k-tuples of the nodes of each copy, copy by copy, in lexicographic order.

    Args:
        copies: The copies.
        k: Length of the tuples.
        size: ``[T]`` number of nodes of each copy.
        first: ``[T]`` first item of each copy.
        copy: ``[R]`` copy of each item.
        place: ``[k, R]`` nodes of each item, by their place in the copy.
    """

    copies: Copies
    k: int
    size: Tensor
    first: Tensor
    copy: Tensor
    place: Tensor

    @classmethod
    def of(cls, copies: Copies, k: int) -> Items:
        """Lists the items of some copies."""
        size = copies.pair_ptr[1:] - copies.pair_ptr[:-1]
        total = sum(float(each) ** min(k, 300) for each in size.tolist())
        check_room(total, size.device, width=k + 3)
        number = size**k
        copy, local = spread(number)
        own = size.index_select(0, copy)
        place = [local // own ** (k - 1 - i) % own for i in range(k)]
        first = number.cumsum(0) - number
        return cls(copies, k, size, first, copy, torch.stack(place))

    def stride(self, axis: int) -> Tensor:
        """Distance of items that differ by one in a position, ``[R]``."""
        return self.size.index_select(0, self.copy) ** (self.k - 1 - axis)

    def diagonal(self, state: Tensor) -> Tensor:
        """Colours of the items (u, ..., u), in the order of the pairs."""
        owner, place = spread(self.size)
        step = sum(self.size**i for i in range(self.k))
        row = self.first.index_select(0, owner) + place * step.index_select(0, owner)  # type: ignore[union-attr]
        return state.index_select(0, row)

    def start(self, pair: Tensor, edge: Tensor | None, colors: Colors) -> Tensor:
        """Colours by type: nodes, equalities and edges of each item."""
        base = self.copies.pair_ptr[:-1].index_select(0, self.copy)
        adjacency, where = self._adjacency(edge, colors)
        columns = [pair.index_select(0, base + self.place[i]) for i in range(self.k)]
        size = self.size.index_select(0, self.copy)
        for i in range(self.k):
            for j in range(self.k):
                row = where + self.place[i] * size + self.place[j]
                columns.append(adjacency.index_select(0, row))
                if i < j:
                    columns.append((self.place[i] == self.place[j]).long())
        return colors.combine(*columns)

    def _adjacency(self, edge: Tensor | None, colors: Colors) -> tuple[Tensor, Tensor]:
        """Colour of the edges of each pair of nodes, and where those of a copy are."""
        square = self.size**2
        first = square.cumsum(0) - square
        source, target = self.copies.edge_index
        owner = self.copies.pair_tuple.index_select(0, source)
        shift = self.copies.pair_ptr.index_select(0, owner)
        size = self.size.index_select(0, owner)
        row = first.index_select(0, owner) + (source - shift) * size + target - shift
        if edge is None:
            color = torch.zeros_like(row)
        else:
            color = edge.index_select(0, self.copies.edge_id)
        total = int(square.sum())
        return colors.multiset(color, row, total), first.index_select(0, self.copy)

    def step(self, state: Tensor, colors: Colors, *, folklore: bool) -> Tensor:
        """One round."""
        if folklore:
            return colors.combine(state, self._folklore(state, colors))
        columns = [state]
        count = self.size ** (self.k - 1)
        base = (count.cumsum(0) - count).index_select(0, self.copy)
        local = torch.arange(state.numel(), device=state.device)
        local = local - self.first.index_select(0, self.copy)
        size = self.size.index_select(0, self.copy)
        for axis in range(self.k):
            stride = self.stride(axis)
            group = base + local // (stride * size) * stride + local % stride
            line = colors.multiset(state, group, int(count.sum()))
            columns.append(line.index_select(0, group))
        return colors.combine(*columns)

    def _folklore(self, state: Tensor, colors: Colors) -> Tensor:
        """Multiset over w of the colours of the items with w in each position."""
        total = state.numel()
        block = total
        if isinstance(colors, HashColors) and self.size.numel():
            block = max(BLOCK // max(int(self.size.max()), 1), 1)
        parts = [state[:0]]
        for low in range(0, total, max(block, 1)):
            rows = torch.arange(low, min(low + block, total), device=state.device)
            size = self.size.index_select(0, self.copy.index_select(0, rows))
            owner, other = spread(size)
            row = rows.index_select(0, owner)
            seen = []
            for axis in range(self.k):
                stride = size ** (self.k - 1 - axis)
                here = self.place[axis].index_select(0, row)
                shift = (other - here) * stride.index_select(0, owner)
                seen.append(state.index_select(0, row + shift))
            message = colors.combine(*seen)
            parts.append(colors.multiset(message, owner, rows.numel()))
        return torch.cat(parts)
