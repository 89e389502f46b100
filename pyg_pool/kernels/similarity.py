"""Graphs of similar rows inside groups, built block by block.

Groups of about the same size are multiplied together, so that many short ones take
few steps; a long one is cut into blocks of rows. A group meets no other group, and
the shape of its blocks depends on nothing but its own size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from pyg_pool.kernels.segment import segment_count

__all__ = ["similar_pairs", "unit_rows"]

# Similarities, or features, that a block may hold.
ENTRIES = 1 << 22
# Rows shorter than this are not blown up to length 1.
SHORTEST = 1e-8


def unit_rows(x: Tensor) -> Tensor:
    """Rows divided by their length, or by 1e-8 if that is more.

    Note:
        Lengths of rows up to the largest number of the dtype are finite. The gradient
        of a zero row is finite, and 0 from its length.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.similarity import unit_rows
        >>> unit_rows(torch.tensor([[3e30, 4e30], [0.0, 0.0]]))
        tensor([[0.6000, 0.8000],
                [0.0000, 0.0000]])
    """
    top = x.detach().abs().amax(1, keepdim=True) if x.size(1) > 0 else x
    part = x / top.masked_fill(top == 0, 1.0)
    root = part.square().sum(1, keepdim=True).masked_fill(top == 0, 1.0).sqrt()
    # The length itself, top * root, may overflow.
    return torch.where(top * root > SHORTEST, part / root, x / SHORTEST)


class _Blocks(NamedTuple):
    """Groups of one width: rows of each, and which of these are there."""

    ids: Tensor
    valid: Tensor


@torch.no_grad()
def similar_pairs(
    x: Tensor,
    index: Tensor,
    num_groups: int,
    tau: float,
    *,
    max_neighbors: int | None = None,
    window: int | None = None,
    chunk_size: int | None = None,
    self_loops: bool = True,
) -> Tensor:
    r"""Returns an edge for each two rows of a group whose cosine is above ``tau``.

    .. math::
        i \to j \iff \frac{x_i \cdot x_j}{\max(|x_i|, 10^{-8}) \max(|x_j|, 10^{-8})}
        > \tau

    Args:
        x: Rows.
        index: Group of each row, in any order.
        num_groups: Number of groups.
        tau: Threshold.
        max_neighbors: Keeps only the most similar sources of each row, the row
            itself not counted; ties by lower index.
        window: Keeps only sources at most this far away in the order of the group.
        chunk_size: Rows that are compared at once; without it as many as make four
            million similarities.
        self_loops: Whether a row is its own neighbour where the threshold allows it.

    Returns:
        Edges ``[2, E]`` from source to target, sorted by target, then source.

    Shapes:
        x: ``[N, F]``; index: ``[N]`` int64; returns ``[2, E]`` int64.

    Note:
        Takes time of the sum of the squared sizes of the groups times F, with a
        window that of the sizes times the window; memory is that of a block, a copy
        of x and the edges. Half precision is compared in float32. NaN has no edges.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.similarity import similar_pairs
        >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.2], [0.0, 1.0], [0.0, 2.0]])
        >>> similar_pairs(x, torch.tensor([0, 0, 0, 1]), 2, 0.6)
        tensor([[0, 1, 0, 1, 2, 3],
                [0, 0, 1, 1, 2, 3]])
    """
    if torch.compiler.is_compiling():
        out: Tensor = _pairs_op(
            x.detach(), index, num_groups, tau, max_neighbors, window, chunk_size,
            self_loops,
        )  # fmt: skip
        return out
    if x.dtype in (torch.float16, torch.bfloat16):
        x = x.float()
    if tau >= 1.0:  # which rounding may exceed, but no cosine does
        return index.new_empty(2, 0)
    unit = unit_rows(x.detach())
    rows, ends = [index.new_empty(0)], [index.new_empty(2, 0)]
    for blocks, height in _blocks(index, num_groups, x.size(1), chunk_size, window):
        part = unit[blocks.ids]
        for low in range(0, part.size(1), height):
            mine, first, keep = _near(part, blocks.valid, low, height, tau, window)
            keep = _chosen(keep, mine, low - first, max_neighbors, self_loops)
            group, row, col = keep.nonzero().unbind(1)
            target = blocks.ids[:, low:][group, row]
            ends.append(torch.stack([blocks.ids[:, first:][group, col], target]))
            there = blocks.valid[:, low : low + height]
            rows.append(blocks.ids[:, low : low + height][there])
    return _by_target(torch.cat(ends, 1), torch.cat(rows), x.size(0))


# How blocks are cut, and the number of edges, depend on the data.
@torch.library.custom_op("pyg_pool::similar_pairs", mutates_args=())
def _pairs_op(
    x: Tensor, index: Tensor, num_groups: int, tau: float, max_neighbors: int | None,
    window: int | None, chunk_size: int | None, self_loops: bool,
) -> Tensor:  # fmt: skip
    return similar_pairs(
        x, index, num_groups, tau, max_neighbors=max_neighbors, window=window,
        chunk_size=chunk_size, self_loops=self_loops,
    )  # fmt: skip


@_pairs_op.register_fake
def _(
    x: Tensor, index: Tensor, num_groups: int, tau: float, max_neighbors: int | None,
    window: int | None, chunk_size: int | None, self_loops: bool,
) -> Tensor:  # fmt: skip
    return index.new_empty(2, torch.library.get_ctx().new_dynamic_size())


def _blocks(
    index: Tensor, num_groups: int, width: int, chunk: int | None, window: int | None
) -> Iterator[tuple[_Blocks, int]]:
    """Groups of about the same size together, and how many rows of them at once."""
    count = segment_count(index, num_groups)
    start = count.cumsum(0) - count
    order = torch.argsort(index, stable=True)
    longest = int(count.max()) if num_groups > 0 else 0
    sizes = _ladder(longest)
    rung = torch.bucketize(count, torch.tensor(sizes, device=index.device))
    of_rung = torch.argsort(rung, stable=True)
    number = segment_count(rung, len(sizes)).tolist()
    for size, groups in zip(sizes, of_rung.split(number), strict=True):
        if groups.numel() == 0 or size == 0:
            continue
        height = min(chunk or max(ENTRIES // size, 1), size)
        if window is not None and chunk is None:
            # A band costs height * (height + 2 window) per height rows.
            height = min(height, max(2 * window, 128))
        held = max(height * size, size * width, 1)
        budget = ENTRIES if chunk is None else chunk * size
        place = torch.arange(size, device=index.device)
        for some in groups.split(max(budget // held, 1)):
            ids = (start[some].unsqueeze(1) + place).clamp(max=order.numel() - 1)
            yield _Blocks(order[ids], place < count[some].unsqueeze(1)), height


def _ladder(longest: int) -> list[int]:
    """Widths to which groups are filled up: 0, and powers of 2 and what is between."""
    sizes, step = [0, 1], 2
    while sizes[-1] < longest:
        sizes += [step, step + step // 2] if step > 1 else [step]
        step *= 2
    return sizes


def _near(
    part: Tensor,
    valid: Tensor,
    low: int,
    height: int,
    tau: float,
    window: int | None,
) -> tuple[Tensor, int, Tensor]:
    """Similarities of some rows, the first column of them, and which are above."""
    high, first, last = low + height, 0, part.size(1)
    if window is not None:
        first, last = max(low - window, 0), min(high + window, last)
    mine = torch.bmm(part[:, low:high], part[:, first:last].transpose(1, 2))
    keep = mine > tau
    keep &= valid[:, None, first:last]
    keep &= valid[:, low:high, None]
    if window is not None:
        places = torch.arange(first, last, device=part.device)
        shift = (
            places - torch.arange(low, low + mine.size(1), device=part.device)[:, None]
        )
        keep &= shift.abs() <= window
    return mine, first, keep


def _chosen(
    keep: Tensor, similarity: Tensor, shift: int, limit: int | None, loops: bool
) -> Tensor:
    """The loops taken out or left in, and the most similar others."""
    if loops and limit is None:
        return keep
    own = torch.zeros_like(keep)
    own.diagonal(shift, 1, 2).fill_(True)
    others = keep & ~own
    if limit is not None and limit < keep.size(2):
        others = _nearest(similarity, others, limit)
    return others | (keep & own) if loops else others


def _nearest(similarity: Tensor, keep: Tensor, limit: int) -> Tensor:
    """The most similar columns of each row; the lowest among ties."""
    score = similarity.masked_fill(~keep, -torch.inf)
    bound = score.topk(limit, dim=-1).values[..., -1:]
    above = score > bound
    ties = keep & (score == bound)
    room = limit - above.sum(-1, keepdim=True, dtype=torch.int32)
    return above | (ties & (ties.cumsum(-1, dtype=torch.int32) <= room))


def _by_target(edges: Tensor, rows: Tensor, num_rows: int) -> Tensor:
    """Sorts edges by target, those of each target being together already."""
    count = segment_count(edges[1], num_rows)
    number = count[rows]
    lead = count.cumsum(0) - count
    shift = torch.zeros_like(count)
    shift[rows] = lead[rows] - (number.cumsum(0) - number)
    place = torch.arange(edges.size(1), device=edges.device) + shift[edges[1]]
    out = torch.empty_like(edges)
    out[:, place] = edges
    return out
