"""Puts labelled copies together by graph, and into blocks that fit into a cache."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from pyg_pool.kernels.copy_sum import CopyGroup
from pyg_pool.kernels.dispatch import is_traced
from pyg_pool.kernels.gin_stack import Block
from pyg_pool.relational.copies import Copies

__all__ = ["block_groups", "copy_blocks", "copy_groups"]

#: Rows of a block: at width 64 in float32 half a MiB.
ROWS = 2048


def copy_blocks(copies: Copies, rows: int = ROWS) -> list[Block]:
    """Returns the copies a few at a time, with their edges.

    Large whole copies share the edges of their graph, which are not listed for each.

    Args:
        copies: The copies.
        rows: Rows of a block, as far as copies are not larger.

    Example:
        >>> import torch
        >>> from pyg_pool.relational import expand_copies, find_tuples, lay_ground
        >>> from pyg_pool.relational.blocks import copy_blocks
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> tuples = find_tuples(path, None, 1, "distinct")
        >>> copies = expand_copies(lay_ground(path, None), tuples)
        >>> [(block.start, block.stop) for block in copy_blocks(copies, 6)]
        [(0, 6), (6, 9)]
    """
    graphs = max(copies.tuples.batch_size, 1)
    if copies.is_full and copies.num_pairs >= graphs * rows:
        return _shared(copies, rows)
    return _listed(copies, rows)


def _listed(copies: Copies, rows: int) -> list[Block]:
    """Blocks of copies with edges of their own."""
    edges, number = copies.edge_index, len(copies.tuples)
    owner = copies.pair_tuple.index_select(0, edges[0])
    ends = owner.new_zeros(number + 1)
    ends.scatter_add_(0, owner + 1, owner.new_ones(owner.numel()))
    edge_ptr, ptr = ends.cumsum(0).tolist(), copies.pair_ptr.tolist()
    blocks, first = [], 0
    for last in range(1, number + 1):
        if last < number and ptr[last + 1] - ptr[first] <= rows:
            continue
        if ptr[last] > ptr[first]:
            part = edges[:, edge_ptr[first] : edge_ptr[last]] - ptr[first]
            blocks.append(Block(ptr[first], ptr[last], part[0], part[1]))
        first = last
    return blocks


def _shared(copies: Copies, rows: int) -> list[Block]:
    """Blocks of whole copies; those of a graph have the same edges."""
    ground, blocks, place = copies.ground, [], 0
    sizes = (ground.start[1:] - ground.start[:-1]).tolist()
    graph = ground.batch.index_select(0, ground.edge_index[0])
    counts = copies.tuples.drawn.tolist()
    for number, (size, count) in enumerate(zip(sizes, counts, strict=True)):
        if size == 0 or count == 0:
            continue
        edges = ground.edge_index[:, graph == number] - ground.start[number]
        step = min(max(rows // size, 1), count)
        both = [_repeated(ends, step, size) for ends in edges]
        for begin in range(0, count, step):
            some = min(step, count - begin)
            used = [ends[: some * edges.size(1)] for ends in both]
            stop = place + some * size
            blocks.append(Block(place, stop, used[0], used[1]))
            place = stop
    return blocks


def _repeated(ends: Tensor, times: int, size: int) -> Tensor:
    """Ends of the edges of several copies, one after the other."""
    shift = ends.new_tensor(range(times)).mul_(size).repeat_interleave(ends.numel())
    return ends.repeat(times) + shift


def copy_groups(copies: Copies, times: int = 1) -> list[CopyGroup]:
    """Returns which rows are copies of one graph, with the edges of that graph.

    Copies that are cut to balls have edges of their own; all of them are one group.

    Args:
        copies: The copies.
        times: How often the table of all pairs is repeated.

    Example:
        >>> import torch
        >>> from pyg_pool.relational import expand_copies, find_tuples, lay_ground
        >>> from pyg_pool.relational.blocks import copy_groups
        >>> path = torch.tensor([[0, 1], [1, 2]])
        >>> tuples = find_tuples(path, None, 1, "distinct")
        >>> group = copy_groups(expand_copies(lay_ground(path, None), tuples))[0]
        >>> group.count, group.size
        (3, 3)
    """
    if not copies.is_full or is_traced():
        size = copies.num_pairs
        edges, ids = copies.listed
        return [CopyGroup(k * size, 1, size, edges, ids) for k in range(times)]
    ground, groups, place = copies.ground, [], 0
    edges = ground.edge_index
    graph = ground.batch.index_select(0, edges[0])
    graph, ids = torch.sort(graph, stable=True)
    local = (edges - ground.start.index_select(0, ground.batch)[edges]).index_select(
        1, ids
    )
    counts = ground.start.new_zeros(copies.tuples.batch_size)
    number = counts.scatter_add(0, graph, torch.ones_like(graph)).tolist()
    sizes = ground.start.diff().tolist()
    drawn = copies.tuples.drawn.tolist()
    for _ in range(times):
        first = 0
        for size, count, length in zip(sizes, drawn, number, strict=True):
            span = slice(first, first + length)
            first += length
            if size * count:
                groups.append(CopyGroup(place, count, size, local[:, span], ids[span]))
                place += size * count
    return groups


def block_groups(copies: Copies, rows: int = ROWS) -> list[tuple[int, CopyGroup]]:
    """A few copies at a time as groups of their own, each with its first row.

    Example:
        >>> import torch
        >>> from pyg_pool.relational import expand_copies, find_tuples, lay_ground
        >>> from pyg_pool.relational.blocks import block_groups
        >>> path = torch.tensor([[0, 1], [1, 2]])
        >>> tuples = find_tuples(path, None, 1, "distinct")
        >>> copies = expand_copies(lay_ground(path, None), tuples)
        >>> [(row, group.count) for row, group in block_groups(copies, 6)]
        [(0, 2), (6, 1)]
    """
    out = []
    if copies.is_full:
        for group in copy_groups(copies):
            step = max(rows // group.size, 1)
            for begin in range(0, group.count, step):
                count = min(step, group.count - begin)
                part = replace(group, start=0, count=count)
                out.append((group.start + begin * group.size, part))
        return out
    first = 0
    for block in _listed(copies, rows):
        last, size = first + block.source.numel(), block.stop - block.start
        ids = copies.edge_id[first:last]
        edges = torch.stack([block.source, block.target])
        out.append((block.start, CopyGroup(0, 1, size, edges, ids)))
        first = last
    return out
