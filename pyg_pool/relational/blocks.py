"""Cuts labelled copies into blocks that fit into a processor's cache."""

from __future__ import annotations

from torch import Tensor

from pyg_pool.kernels.gin_stack import Block
from pyg_pool.relational.copies import Copies

__all__ = ["copy_blocks"]

#: Rows of a block: at width 64 in float32 a quarter of a MiB.
ROWS = 1024


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
