"""How many tuples, pairs and bytes a setting will need, known before it is built."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from pyg_pool.relational.checks import SHARE, free_memory
from pyg_pool.relational.domains import COUNTED, Domain, Ground, count_tuples
from pyg_pool.relational.neighbours import find_balls

__all__ = ["Cost", "check_cost", "estimate_cost", "free_memory"]

#: Saved floats per row and layer, in units of the width: GIN with batch norm.
SAVED_PER_LAYER = 4


@dataclass(frozen=True)
class Cost:
    """Sizes of a setting.

    Args:
        tuples: Number of tuples, T.
        pairs: Number of pairs of tuple and node, P.
        edges: Number of copied edges.
        num_bytes: Estimate of the memory that training takes.
    """

    tuples: int
    pairs: int
    edges: int
    num_bytes: int

    def __str__(self) -> str:
        """The sizes in one line."""
        return (
            f"T = {self.tuples:,} tuples, P = {self.pairs:,} pairs of tuple and node, "
            f"about {self.num_bytes / 2**30:.3g} GiB"
        )


def estimate_cost(
    ground: Ground,
    length: int,
    domain: str,
    *,
    max_distance: int | None = None,
    ego: int | None = None,
    num_samples: int | None = None,
    chunk_size: int | None = None,
    perms: bool = False,
    per_edge: bool = False,
    channels: int = 64,
    num_layers: int = 6,
) -> Cost:
    r"""Estimates sizes from node counts and degrees, without listing tuples.

    .. math::
        \text{bytes} \approx 4 d P (4 L + 2) + 16 E

    Args:
        ground: The graphs.
        length: Number of labels.
        domain: Which tuples.
        max_distance: Distance of ``"dist"`` where the word does not name it.
        ego: Radius of the balls.
        num_samples: Tuples drawn of each graph.
        chunk_size: Tuples in memory at a time.
        perms: Whether every order of the labels makes a copy.
        per_edge: A copy for each edge instead, whatever the labels.
        channels: Width of the network.
        num_layers: Depth of the network.

    Note:
        Counts are exact for ``"all"``, ``"distinct"``, ``"subset"``, ``"star"`` and
        ``"star_set"`` (without cover tuples) and upper bounds for the others; balls
        count with their mean size, the union of several as their sum.

    Example:
        >>> import torch
        >>> from pyg_pool.relational import estimate_cost
        >>> from pyg_pool.relational.tuples import lay_ground
        >>> ring = torch.stack([torch.arange(500), (torch.arange(500) + 1) % 500])
        >>> estimate_cost(lay_ground(ring, None), 3, "distinct").tuples
        124251000
    """
    parsed = Domain.parse(domain, max_distance)
    sizes = (ground.start[1:] - ground.start[:-1]).tolist()
    degree = ground.lists.count
    arcs = torch.zeros(len(sizes), dtype=torch.long, device=degree.device)
    arcs.scatter_add_(0, ground.batch, degree)
    if per_edge:
        per_graph = [arc // 2 for arc in arcs.tolist()]
    else:
        per_graph = _per_graph(ground, length, parsed, sizes)
    if num_samples is not None:
        per_graph = [min(count, num_samples) for count in per_graph]
    if perms:
        per_graph = [count * math.factorial(length) for count in per_graph]
    ball = 0.0
    if ego is not None and ground.num_nodes:
        near = find_balls(ground.lists, ground.num_nodes, ego).lists.value.numel()
        ball = near / ground.num_nodes
    pairs = edges = 0
    for count, size, arc in zip(per_graph, sizes, arcs.tolist(), strict=True):
        share = 1.0 if ego is None or not size else min(ball * max(length, 1) / size, 1)
        pairs += math.ceil(count * size * share)
        edges += math.ceil(count * arc * share)
    total = sum(per_graph)
    share = 1.0 if chunk_size is None or not total else min(chunk_size / total, 1.0)
    held_pairs, held_edges = pairs * share, edges * share
    num_bytes = 4 * channels * held_pairs * (SAVED_PER_LAYER * num_layers + 2)
    return Cost(total, pairs, edges, math.ceil(num_bytes + 16 * held_edges))


def _per_graph(
    ground: Ground, length: int, domain: Domain, sizes: list[int]
) -> list[int]:
    """Number of tuples of each graph, or a bound."""
    if length == 0:
        return [1] * len(sizes)
    word = domain.word
    if word in COUNTED:
        return [count_tuples(size, length, word) for size in sizes]
    if word == "path":
        return _walks(ground, length, len(sizes))
    reach = ground.lists.count
    if word in ("dist", "dist_set"):
        radius = domain.max_distance
        reach = find_balls(ground.lists, ground.num_nodes, radius).lists.count - 1
    counts = [0] * len(sizes)
    graphs = ground.batch.tolist()
    top = int(reach.max()) if reach.numel() else 0
    for graph, near in zip(graphs, reach.tolist(), strict=True):
        if word == "star_set":
            counts[graph] += math.comb(near, length - 1)
        elif word in ("star", "dist", "dist_set"):
            counts[graph] += math.perm(near, length - 1)
        elif length == 1:
            counts[graph] += 1
        else:
            grown = near * top ** (length - 2) * math.factorial(length - 1)
            counts[graph] += min(grown, sizes[graph] ** (length - 1))
    if word == "dist_set":
        counts = [count // math.factorial(length) for count in counts]
    return counts


def _walks(ground: Ground, length: int, size: int) -> list[int]:
    """Number of walks over ``length`` nodes of each graph; paths are fewer."""
    lists = ground.lists
    nodes = torch.arange(ground.num_nodes, device=lists.ptr.device)
    row = nodes.repeat_interleave(lists.count)
    ends = torch.ones(ground.num_nodes, dtype=torch.float64, device=row.device)
    for _ in range(length - 1):
        near = ends.index_select(0, lists.value)
        ends = torch.zeros_like(ends).index_add_(0, row, near)
    total = ends.new_zeros(size).index_add_(0, ground.batch, ends)
    return [math.ceil(count) for count in total.tolist()]


def check_cost(
    owner: str, cost: Cost, device: torch.device, limit: int | None = None
) -> None:
    """Raises ``ValueError`` if a setting needs more than the limit.

    Args:
        owner: Who asks, for the message.
        cost: The estimate.
        device: Where it will run.
        limit: Bytes; ``None`` for 80 % of the free memory.
    """
    allowed = int(SHARE * free_memory(device)) if limit is None else limit
    if cost.num_bytes > allowed:
        raise ValueError(
            f"{owner} got graphs and options that make {cost}, expected at most "
            f"{allowed / 2**30:.3g} GiB; take a smaller domain ('star', 'dist<=2'), an "
            f"ego radius (ego=3), fewer tuples (num_samples) or parts of them at a "
            f"time (chunk_size), or raise memory_limit."
        )
