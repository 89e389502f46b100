"""From which size the compiled CPU twins are faster, measured on this machine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_pool.kernels.attention import attend
from pyg_pool.kernels.coalesce import coalesce
from pyg_pool.kernels.dispatch import NUMBA_FROM, use_backend
from pyg_pool.kernels.dual_graph import both_ways
from pyg_pool.kernels.edges import filter_edges
from pyg_pool.kernels.gate import gated_rows
from pyg_pool.kernels.gather_sum import gather_sum
from pyg_pool.kernels.hops import hop_pairs
from pyg_pool.kernels.join_product import join_product
from pyg_pool.kernels.layer_mix import History, layer_dots
from pyg_pool.kernels.norm_sum import norm_sum
from pyg_pool.kernels.pair_product import pair_product
from pyg_pool.kernels.pairs import distinct_pairs
from pyg_pool.kernels.parse import dominant_links
from pyg_pool.kernels.pnorm import segment_pnorm
from pyg_pool.kernels.product import sparse_product
from pyg_pool.kernels.propagate import propagate
from pyg_pool.kernels.relu_dropout import relu_dropout
from pyg_pool.kernels.segment import segment_reduce, segment_softmax
from pyg_pool.kernels.segment_attention import segment_attention
from pyg_pool.kernels.topk import topk
from pyg_pool.kernels.tuple_propagate import tuple_propagate

__all__ = ["STEPS", "Crossover", "measure_crossovers", "size_to_use"]

CHANNELS = 16
GROUP = 25  # rows of a segment, nodes of a graph
SIZES = tuple(1 << power for power in range(8, 20, 2))
REPEATS = 7
# A twin that is faster at every measured size is used from here on: below, no step
# takes a tenth of a millisecond, and starting numba should not be paid for toys. The
# exceptions are counted in nodes or pairs, and their native form is slow.
LEAST = 1024
LEAST_OF = {"hop_pairs": 1, "pool_mesh": 256}
NEVER = 1 << 20
# A whole operator, whose native form is another room's: its benchmark measures it.
ELSEWHERE = {"pick"}

Run = Callable[[], object]
Step = Callable[[int], Run]


@dataclass(frozen=True)
class Crossover:
    """Where a twin starts to pay.

    Args:
        primitive: Key of the table of sizes.
        measured: Measured size from which the twin saves most, ``None`` if it never
            is faster.
        used: The size from which the twin is used.
        gain: How many times faster the twin is at the largest measured size.
        gains: The same at each measured size.
    """

    primitive: str
    measured: int | None
    used: int
    gain: float
    gains: tuple[float, ...] = ()


def size_to_use(primitive: str, measured: int | None, smallest: int = SIZES[0]) -> int:
    """The size for the table of sizes, given what was measured.

    Args:
        primitive: Key of the table.
        measured: Size from which the twin saves most, ``None`` for none.
        smallest: Smallest size that was measured.

    Example:
        >>> from pyg_pool.kernels.crossover import size_to_use
        >>> size_to_use("topk", 256), size_to_use("topk", 4096)
        (1024, 4096)
    """
    if measured is None:
        return NEVER
    least = LEAST_OF.get(primitive, LEAST)
    return least if measured == smallest else max(least, measured)


def _rows(size: int) -> Tensor:
    """Rows with so many elements that require a gradient."""
    rows = max(1, size // CHANNELS)
    return torch.ones(rows, CHANNELS).cumsum(0).sin().requires_grad_()


def _groups(rows: int) -> Tensor:
    """Segments of equal size."""
    return torch.arange(rows) // GROUP


def _edges(number: int, num_nodes: int) -> Tensor:
    """Edges between nodes all over the graph, sorted by source."""
    source = torch.arange(number) * num_nodes // max(1, number)
    return torch.stack([source, (torch.arange(number) * 7919 + source) % num_nodes])


def _learned(make: Callable[[Tensor], Callable[[Tensor], Tensor]]) -> Step:
    """Forward and backward over so many elements."""

    def step(size: int) -> Run:
        x = _rows(size)
        run = make(x)
        return lambda: run(x).sum().backward()

    return step


def _segments(run: Callable[[Tensor, Tensor], Tensor]) -> Step:
    """Forward and backward over so many elements in segments of equal size."""

    def make(x: Tensor) -> Callable[[Tensor], Tensor]:
        index = _groups(x.size(0))
        return lambda x: run(x, index)

    return _learned(make)


def _linked(run: Callable[[Tensor, Tensor, int], Tensor], degree: int = 4) -> Step:
    """Forward and backward along edges, as many elements at their ends."""

    def step(size: int) -> Run:
        x = _rows(max(CHANNELS, size // degree))
        edge_index = _edges(max(1, size // CHANNELS), x.size(0))
        return lambda: run(x, edge_index, x.size(0)).sum().backward()

    return step


def _on_edges(run: Callable[[Tensor, Tensor, int], object]) -> Step:
    """So many edges with a score."""

    def step(size: int) -> Run:
        num_nodes = max(2, size // 4)
        edge_index, score = _edges(size, num_nodes), torch.arange(size).sin()
        return lambda: run(edge_index, score, num_nodes)

    return step


def _pick(size: int) -> Run:
    score, batch = torch.arange(size).sin(), _groups(size)
    return lambda: topk(score, 0.5, batch=batch)


def _multiply(size: int) -> Run:
    number = max(1, size // 2)
    num_nodes = max(2, number // 4)
    index, value = _edges(number, num_nodes), torch.ones(number)
    shape = num_nodes, num_nodes, num_nodes
    return lambda: sparse_product(index, value, index, value, shape)


def _gate(x: Tensor) -> Callable[[Tensor], Tensor]:
    index, vector = torch.arange(x.size(0)), torch.ones(x.size(1))
    return lambda x: gated_rows(x, index, vector, None, "tanh")[0]


def _shift(x: Tensor) -> Callable[[Tensor], Tensor]:
    ones, group = torch.ones(x.size(1)), _groups(x.size(0))
    number = int(group[-1]) + 1
    return lambda x: norm_sum(x, ones, ones, 1e-5, group, number)


def _layers(x: Tensor) -> Callable[[Tensor], Tensor]:
    index = _groups(x.size(0))
    history = History(x, (0, CHANNELS // 2, CHANNELS), index, torch.ones(len(index)))
    r = torch.ones(x.size(0), CHANNELS + 2, requires_grad=True)
    return lambda x: layer_dots(r, history)


def _hops(size: int) -> Run:
    ptr = torch.arange(size + 1) * 2
    near = torch.arange(2 * size) // 2 + torch.tensor([1, -1]).repeat(size)
    neighbour = near.clamp(0, max(0, size - 1))
    return lambda: hop_pairs(ptr, neighbour, 2)


def _join(size: int) -> Run:
    triples = max(1, size // CHANNELS)
    a = torch.ones(max(1, triples // 4), CHANNELS, requires_grad=True)
    where = torch.arange(triples)[:, None] * torch.tensor([1, 3]) % a.size(0)
    target = torch.arange(triples)[:, None] // 4 % a.size(0)
    kept = torch.cat([where, target], 1)
    return lambda: join_product(a, a, kept, a.size(0)).sum().backward()


def _tuples(size: int) -> Run:
    nodes = max(1, round(size / CHANNELS / GROUP))
    ptr = torch.arange(nodes + 1) * GROUP
    x = torch.ones(nodes * GROUP * GROUP, CHANNELS, requires_grad=True)
    source = torch.arange(nodes * GROUP).repeat_interleave(4)
    target = source // GROUP * GROUP + (source + torch.arange(len(source)) % 4) % GROUP
    edge_index = torch.stack([source, target])
    return lambda: tuple_propagate(x, edge_index, ptr).sum().backward()


def _meet(x: Tensor, edge_index: Tensor, size: int) -> Tensor:
    weight = torch.ones(edge_index.size(1), 1)
    return attend(x.unsqueeze(1), weight, edge_index, size)


STEPS: dict[str, Step] = {
    "segment_reduce": _segments(lambda x, i: segment_reduce(x, i, reduce="max")),
    "segment_softmax": _segments(lambda x, i: segment_softmax(x, i)),
    "segment_attention": _segments(lambda x, i: segment_attention(x, x, i)),
    "segment_pnorm": _segments(lambda x, i: segment_pnorm(x, 2.0, 0.5, i)),
    "topk": _pick,
    "coalesce": _on_edges(lambda edges, score, n: coalesce(edges, score)),
    "sparse_product": _multiply,
    "filter_edges": _on_edges(lambda e, s, n: filter_edges(e, torch.arange(n // 2), n)),
    "gated_rows": _learned(_gate),
    "relu_dropout": _learned(lambda x: lambda x: relu_dropout(x, 0.5)),
    "parse": _on_edges(lambda e, s, n: dominant_links(e, s, n)),
    "distinct_pairs": _on_edges(lambda e, s, n: distinct_pairs(e, n)),
    "pair_logits": _linked(lambda x, e, n: pair_product(x, e)),
    "propagate": _linked(lambda x, e, n: propagate(x, e, torch.ones(n))),
    "norm_sum": _learned(_shift),
    "hop_pairs": _hops,
    "join_product": _join,
    "gather_sum": _linked(lambda x, e, n: gather_sum(x, e, n)),
    "tuple_propagate": _tuples,
    "attend": _linked(_meet),
    "pool_mesh": _on_edges(lambda e, s, n: both_ways(e, n)),
    "layer_mix": _learned(_layers),
}


def _seconds(step: Step, size: int, name: str) -> float:
    """The best of several runs in one backend."""
    best = float("inf")
    with use_backend(name):  # type: ignore[arg-type]
        run = step(size)
        run()
        for _ in range(REPEATS):
            start = time.perf_counter()
            run()
            best = min(best, time.perf_counter() - start)
    return best


def _first(sizes: tuple[int, ...], gains: tuple[float, ...]) -> int | None:
    """The size from which the twin saves most, so that one odd figure decides little.

    From there on the product of the gains is largest; ``None`` if it is never above 1.
    """
    saved = [sum(math.log(gain) for gain in gains[k:]) for k in range(len(sizes))]
    best = max(range(len(sizes)), key=saved.__getitem__)
    return sizes[best] if saved[best] > 0 else None


def measure_crossovers(sizes: tuple[int, ...] = SIZES) -> list[Crossover]:
    """Times native operations against the compiled twins; some ten seconds.

    Args:
        sizes: Numbers of elements or edges to measure, ascending.

    Returns:
        One entry per primitive.

    Example:
        >>> from pyg_pool.kernels.crossover import measure_crossovers
        >>> [c.primitive for c in measure_crossovers((64,))][:2]
        ['segment_reduce', 'segment_softmax']
    """
    out = []
    for primitive, step in STEPS.items():
        gains = tuple(
            _seconds(step, size, "native") / _seconds(step, size, "numba")
            for size in sizes
        )
        first = _first(sizes, gains)
        used = NUMBA_FROM[primitive]
        out.append(Crossover(primitive, first, used, gains[-1], gains))
    return out
