"""Samples of large tuple domains by their rank, without listing the domain."""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

from pyg_pool.relational.checks import check_room
from pyg_pool.relational.domains import COUNTED, Domain, Ground, count_tuples

__all__ = ["sample_ranks"]

#: Where ranks are drawn, so that one seed gives the same tuples on every device.
CPU = torch.device("cpu")
#: Tuples of one graph from which on a domain is not listed to be sampled.
LISTED = 4096
#: Tuples of one graph from which on they have no ranks.
NUMBERED = 2**62
#: What is told of the size of a domain that has more tuples than 64 bits can count.
MOST = 2**63 - 1


def sample_ranks(
    ground: Ground,
    length: int,
    domain: Domain,
    number: int,
    generator: Generator | None,
    cover: bool,
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Draws tuples of ``all``, ``distinct`` and ``subset`` by rank.

    Returns:
        Tuples, their graphs, and the size of each graph's domain; ``None`` where the
        domain has to be listed, or is small enough to be.
    """
    if domain.word not in COUNTED:
        return None
    sizes = (ground.start[1:] - ground.start[:-1]).tolist()
    counts = [count_tuples(size, length, domain.word) for size in sizes]
    if not counts or max(counts) <= LISTED:
        return None
    width = 2 * length + 4 + (max(sizes) if max(counts) >= NUMBERED else 0)
    drawn = sum(min(count, number) for count in counts)
    check_room(float(drawn), ground.batch.device, width=width)
    parts, graphs, totals = [], [], []
    starts = ground.start.tolist()
    for graph, (size, count) in enumerate(zip(sizes, counts, strict=True)):
        first = starts[graph]
        if count == 0 and cover and size:
            # Fewer nodes than positions: every node is a cover tuple.
            rows = torch.full((size, length), -1, device=CPU)
            rows[:, 0] = torch.arange(size, device=CPU) + first
            kept = _choose(size, number, generator)
            rows, count = rows[kept], size
        elif count == 0:
            rows = torch.empty((0, length), dtype=torch.long, device=CPU)
        elif count < NUMBERED:
            rank = _choose(count, number, generator)
            rows = _unrank(rank, size, length, domain.word) + first
        else:
            rows = _throw(size, length, domain.word, number, generator) + first
            count = min(count, MOST)
        parts.append(rows)
        graphs.append(torch.full((rows.size(0),), graph, device=CPU))
        totals.append(count)
    device = ground.batch.device
    index, batch = torch.cat(parts).to(device), torch.cat(graphs).to(device)
    return index, batch, torch.tensor(totals, device=device)


def _choose(count: int, number: int, generator: Generator | None) -> Tensor:
    """Different numbers below ``count``, ascending."""
    if count <= max(LISTED, 2 * number):
        order = torch.randperm(count, generator=generator, device=_device(generator))
        return torch.sort(order[:number].cpu()).values
    found = torch.empty(0, dtype=torch.long, device=CPU)
    while found.numel() < number:
        draw = torch.randint(
            count, (2 * number,), generator=generator, device=_device(generator)
        ).cpu()
        both = torch.cat([found, draw])
        # The first of equal draws counts, so that no number is more likely.
        value, place = torch.unique(both, return_inverse=True)
        first = torch.full_like(value, both.numel()).scatter_reduce(
            0, place, torch.arange(both.numel(), device=CPU), "amin"
        )
        found = both[torch.sort(first).values][:number]
    return torch.sort(found).values


def _throw(
    size: int, length: int, word: str, number: int, generator: Generator | None
) -> Tensor:
    """Different tuples of a domain too large to be numbered, in their order."""
    device = _device(generator)
    found = torch.empty((0, length), dtype=torch.long, device=CPU)
    while found.size(0) < number:
        shape = number - found.size(0), length
        if word == "all":
            rows = torch.randint(size, shape, generator=generator, device=device)
        else:
            luck = torch.rand(
                (shape[0], size),
                dtype=torch.float64,
                generator=generator,
                device=device,
            )
            rows = torch.argsort(luck, dim=1)[:, :length]
        rows = torch.sort(rows, dim=1).values if word == "subset" else rows
        found = torch.unique(torch.cat([found, rows.cpu()]), dim=0)
    return found


def _device(generator: Generator | None) -> torch.device:
    return CPU if generator is None else generator.device


def _unrank(rank: Tensor, size: int, length: int, word: str) -> Tensor:
    """The tuples at these places of the lexicographic order, numbers from 0."""
    if word == "subset":
        return _unrank_subset(rank, size, length)
    columns: list[Tensor] = []
    for place in range(length):
        left = length - place - 1
        if word == "all":
            below = size**left
            columns.append(rank // below)
        else:
            below = math.perm(size - place - 1, left)
            digit = rank // below
            # The digit counts the numbers not used so far: skip those that are.
            used = torch.stack(columns, 1).sort(1).values if columns else None
            for column in range(place):
                digit = digit + (digit >= used[:, column])  # type: ignore[index]
            columns.append(digit)
        rank = rank % below
    return torch.stack(columns, 1)


def _unrank_subset(rank: Tensor, size: int, length: int) -> Tensor:
    columns, low = [], torch.zeros_like(rank)
    for place in range(length):
        left = length - place - 1
        # ahead[v]: subsets that begin here with a number below v.
        begins = [math.comb(size - v - 1, left) for v in range(size)]
        ahead = torch.tensor([0, *begins], device=CPU).cumsum(0)
        target = rank + ahead[low]
        digit = torch.searchsorted(ahead, target, right=True) - 1
        rank = target - ahead[digit]
        columns.append(digit)
        low = digit + 1
    return torch.stack(columns, 1)
