"""Rounds of marked copies that see other copies: the SWL family of tests."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pyg_pool.relational.colors import Colors
from pyg_pool.relational.copies import Copies
from pyg_pool.relational.neighbours import spread
from pyg_pool.relational.refine_setup import Colored

__all__ = ["root_step"]

Step = Callable[[Tensor], Tensor]


def root_step(update: str, colored: Colored, copies: Copies, colors: Colors) -> Step:
    """One round of the colours c(u, v) of node v in the copy with root u.

    Raises:
        ValueError: If edge colours are given to an update that cannot use them.
    """
    if update == "SLFWL" and colored.edge is not None:
        raise ValueError(
            "kl_wl got update='SLFWL' with edge_colors, expected no edge colours, "
            "since its messages do not follow edges; take update='LFWL' or 'SSWL'."
        )
    grid = _Grid(colored, copies, colors)
    if update in ("LFWL", "SLFWL"):
        row, other, edge = grid.near_nodes() if update == "LFWL" else grid.near_both()

        def joined(state: Tensor) -> Tensor:
            first = state.index_select(0, grid.cell(grid.root[row], other))
            second = state.index_select(0, grid.cell(other, grid.node[row]))
            columns = [first, second] if edge is None else [first, second, edge]
            message = colors.combine(*columns)
            return colors.combine(state, colors.multiset(message, row, state.numel()))

        return joined
    extra = _EXTRAS[update]
    return lambda state: colors.combine(state, grid.inside(state), *extra(grid, state))


class _Grid:
    """The cells (u, v): root u, node v, one after the other for each root."""

    def __init__(self, colored: Colored, copies: Copies, colors: Colors) -> None:
        self.colored, self.copies, self.colors = colored, copies, colors
        self.root, self.node = copies.pair_tuple, copies.pair_node
        sizes = torch.tensor(colored.sizes, device=colored.batch.device)
        self.size = sizes.index_select(0, colored.batch)
        first = (sizes.cumsum(0) - sizes).index_select(0, colored.batch)
        self.base = copies.pair_ptr[:-1] - first

    def cell(self, root: Tensor, node: Tensor) -> Tensor:
        """Position of a cell."""
        return self.base.index_select(0, root) + node

    def _message(self, color: Tensor, edge: Tensor) -> Tensor:
        if self.colored.edge is None:
            return color
        return self.colors.combine(color, self.colored.edge.index_select(0, edge))

    def inside(self, state: Tensor) -> Tensor:
        """Multiset of c(u, w) over the neighbours w of v."""
        source, target = self.copies.edge_index
        message = self._message(state.index_select(0, source), self.copies.edge_id)
        return self.colors.multiset(message, target, state.numel())

    def point(self, state: Tensor) -> list[Tensor]:
        """c(v, v)."""
        return [state.index_select(0, self.cell(self.node, self.node))]

    def whole(self, state: Tensor) -> list[Tensor]:
        """Multiset of c(w, v) over all w."""
        pooled = self.colors.multiset(state, self.node, self.copies.num_nodes)
        return [pooled.index_select(0, self.node)]

    def context(self, state: Tensor) -> list[Tensor]:
        """The same, and the multiset of it over the neighbours of v."""
        pooled = self.colors.multiset(state, self.node, self.copies.num_nodes)
        source, target = self.colored.edge_index
        ids = torch.arange(source.numel(), device=source.device)
        message = self._message(pooled.index_select(0, source), ids)
        around = self.colors.multiset(message, target, self.copies.num_nodes)
        return [t.index_select(0, self.node) for t in (pooled, around)]

    def across(self, state: Tensor) -> list[Tensor]:
        """Multiset of c(w, v) over the neighbours w of u."""
        edge, source, target = self.between_roots()
        message = self._message(state.index_select(0, source), edge)
        return [self.colors.multiset(message, target, state.numel())]

    def between_roots(self) -> tuple[Tensor, Tensor, Tensor]:
        """Edge, cell (w, v) and cell (u, v) for each edge from w to u and node v."""
        source, target = self.colored.edge_index
        edge, place = spread(self.size.index_select(0, source))
        first = self.copies.pair_ptr
        begin = first.index_select(0, source).index_select(0, edge) + place
        end = first.index_select(0, target).index_select(0, edge) + place
        return edge, begin, end

    def near_nodes(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Cell (u, v) and w for the neighbours w of v, with edge colours."""
        source, target = self.copies.edge_index
        edge = self.colored.edge
        if edge is not None:
            edge = edge.index_select(0, self.copies.edge_id)
        return target, self.node.index_select(0, source), edge

    def near_both(self) -> tuple[Tensor, Tensor, None]:
        """Cell (u, v) and w for the neighbours w of u or v, each once."""
        row, other, _ = self.near_nodes()
        edge, _, end = self.between_roots()
        row = torch.cat([row, end])
        more = self.colored.edge_index[0].index_select(0, edge)
        other = torch.cat([other, more])
        radix = max(self.copies.num_nodes, 1)
        key = torch.unique(row * radix + other)
        return key // radix, key % radix, None


_EXTRAS: dict[str, Callable[[_Grid, Tensor], list[Tensor]]] = {
    "SWL": lambda grid, state: [],
    "PSWL": _Grid.point,
    "GSWL": _Grid.whole,
    "DSS": _Grid.context,
    "SSWL": _Grid.across,
}
