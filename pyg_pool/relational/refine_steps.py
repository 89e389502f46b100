"""Colour refinement of labelled copies by 1-WL, and the pooling of colours."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pyg_pool.relational.colors import Colors
from pyg_pool.relational.copies import Copies
from pyg_pool.relational.refine_items import Items
from pyg_pool.relational.refine_options import Setup
from pyg_pool.relational.refine_roots import root_step
from pyg_pool.relational.refine_setup import Colored

__all__ = ["label_colors", "pool_colors", "refinement_of"]

Step = Callable[[Tensor], Tensor]


def label_colors(
    colored: Colored, setup: Setup, copies: Copies, colors: Colors
) -> Tensor:
    """Colour of each node of each copy before the first round, ``[P]``."""
    node = colored.node.index_select(0, copies.pair_node)
    if setup.policy != "mark" or setup.l == 0:
        return colors.combine(node)
    labels = copies.tuples.index.index_select(0, copies.pair_tuple)
    hits = (labels == copies.pair_node.view(-1, 1)).long()
    columns = hits.unbind(1) if setup.ordered else (hits.sum(1),)
    return colors.combine(node, *columns)


def refinement_of(
    colored: Colored, setup: Setup, copies: Copies, colors: Colors
) -> tuple[Tensor, Step, Items | None]:
    """The first colours, one round, and the k-tuples that are coloured for k > 1."""
    start = label_colors(colored, setup, copies, colors)
    if setup.k > 1:
        items = Items.of(copies, setup.k)
        return (
            items.start(start, colored.edge, colors),
            lambda state: items.step(state, colors, folklore=setup.folklore),
            items,
        )
    if setup.update is not None:
        step = root_step(setup.update, colored, copies, colors)
        return start, step, None
    source, target = copies.edge_index
    edge = (
        None if colored.edge is None else colored.edge.index_select(0, copies.edge_id)
    )

    def plain(state: Tensor) -> Tensor:
        message = state.index_select(0, source)
        if edge is not None:
            message = colors.combine(message, edge)
        return colors.combine(state, colors.multiset(message, target, state.numel()))

    return start, plain, None


def pool_colors(
    colored: Colored,
    setup: Setup,
    copies: Copies,
    colors: Colors,
    items: Items | None,
    state: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Colours of the graphs, of the copies, and of the nodes over all copies."""
    tuples, size = copies.tuples, len(colored.sizes)
    pair = state if items is None else items.diagonal(state)
    owner = copies.pair_tuple if items is None else items.copy
    by_tuple = colors.multiset(state, owner, len(tuples))
    by_node = colors.multiset(pair, copies.pair_node, copies.num_nodes)
    if setup.pooling == "node":
        return colors.multiset(by_node, colored.batch, size), by_tuple, by_node
    if setup.pooling in ("root", "labelled"):
        by_tuple = _labelled(setup, copies, colors, pair)
    if setup.pooling == "nested":
        graph = _nested(copies, colors, by_tuple)
    else:
        graph = colors.multiset(by_tuple, tuples.batch, size)
    return graph, by_tuple, by_node


def _labelled(setup: Setup, copies: Copies, colors: Colors, pair: Tensor) -> Tensor:
    """Colour of each tuple from its first or from all its labelled nodes."""
    index = copies.tuples.index
    places = index.size(1) if setup.pooling == "labelled" else 1
    ids = torch.arange(index.size(0), device=index.device)
    columns = []
    for place in range(places):
        row = copies.find(ids, index[:, place])
        is_there = (row >= 0).long()
        color = torch.cat([pair, pair.new_zeros(1)])[row]
        columns += [is_there, color * is_there]
    if setup.ordered or places == 1:
        return colors.combine(*columns)
    each = [colors.combine(*columns[2 * i : 2 * i + 2]) for i in range(places)]
    if places > 1:  # colours of separate tables cannot be compared: make one of them
        both = [torch.cat(columns[i::2]) for i in range(2)]
        each = list(colors.combine(*both).split(index.size(0)))
    return colors.multiset(torch.cat(each), ids.repeat(places), index.size(0))


def _nested(copies: Copies, colors: Colors, by_tuple: Tensor) -> Tensor:
    """Pools the copies over the last position of the tuples first."""
    index, batch = copies.tuples.index, copies.tuples.batch
    state, rows = by_tuple, torch.cat([batch.view(-1, 1), index], dim=1)
    for length in range(index.size(1) - 1, 0, -1):
        prefix = rows[:, : length + 1]
        prefix, group = torch.unique(prefix, dim=0, return_inverse=True)
        state = colors.multiset(state, group, prefix.size(0))
        rows = prefix
    return colors.multiset(state, rows[:, 0], copies.tuples.batch_size)
