"""The fixed inputs that every speed and memory figure refers to.

All inputs are float32 with 64 channels, drawn from seed 0 with NumPy's
``default_rng`` so that they do not change with the torch version. Edges are stored
in both directions, sorted by row and column, without loops or duplicates; both
directions carry the same weight, uniform in 0.5..1.5.

- ``a``: 128 molecule-like graphs, about 3,260 nodes and 6,740 edge columns.
- ``b``: 32 random graphs, about 9,630 nodes and 38,500 edge columns.
- ``c``: one graph, 100,000 nodes and 1,000,000 edge columns, half of them between
  nodes whose numbers differ by at most 50.
- ``d``: one graph like ``c`` with 5,000 nodes and 50,000 edge columns.
- ``skew``: 2,000 segments whose sizes follow a power law, 100,000 rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

NUM_CHANNELS = 64
SEED = 0
LOCAL_REACH = 50
MAX_DEGREE = 4
EDGES_PER_ATOM = 1.03

Pairs = np.ndarray


@dataclass(frozen=True)
class GraphInput:
    """A batch of graphs on which both sides of a row are measured.

    Shapes:
        x: [N, 64] float32.
        edge_index: [2, E] int64.
        edge_weight: [E] float32, equal for both directions of an edge.
        batch: [N] int64, ascending unless the nodes were shuffled.
    """

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor
    batch: Tensor
    num_graphs: int


@dataclass(frozen=True)
class SegmentInput:
    """Rows that belong to segments of very different size.

    Shapes:
        x: [R, 64] float32.
        index: [R] int64 segment of each row, ascending unless shuffled.
        sizes: [S] int64 rows of each segment.
    """

    x: Tensor
    index: Tensor
    sizes: Tensor


def _molecule(num_nodes: int, rng: np.random.Generator) -> Pairs:
    """Random tree with degree at most 4 plus a few ring-closing edges."""
    degree = np.zeros(num_nodes, dtype=np.int64)
    pairs: set[tuple[int, int]] = set()

    def link(node: int, other: int) -> None:
        pairs.add((min(node, other), max(node, other)))
        degree[[node, other]] += 1

    for node in range(1, num_nodes):
        link(node, int(rng.choice(np.flatnonzero(degree[:node] < MAX_DEGREE))))
    while len(pairs) < round(EDGES_PER_ATOM * num_nodes):
        free = np.flatnonzero(degree < MAX_DEGREE)
        node, other = (int(i) for i in rng.choice(free, size=2, replace=False))
        if (min(node, other), max(node, other)) not in pairs:
            link(node, other)
    return np.array(sorted(pairs), dtype=np.int64)


def _distinct(
    draw: Callable[[int], Pairs], count: int, num_nodes: int, known: Pairs
) -> Pairs:
    """Draw undirected pairs until ``known`` has grown by ``count`` distinct ones."""
    keys = known[:, 0] * num_nodes + known[:, 1]
    wanted = len(keys) + count
    while len(keys) < wanted:
        new = np.sort(draw(wanted - len(keys)), axis=1)
        new = new[new[:, 0] != new[:, 1]]
        keys = np.unique(np.concatenate([keys, new[:, 0] * num_nodes + new[:, 1]]))
    return np.stack([keys // num_nodes, keys % num_nodes], axis=1)


def _random_graph(num_nodes: int, num_pairs: int, rng: np.random.Generator) -> Pairs:
    """Distinct node pairs, uniform over all of them."""
    return _distinct(
        lambda count: rng.integers(num_nodes, size=(count, 2)),
        num_pairs,
        num_nodes,
        np.empty((0, 2), dtype=np.int64),
    )


def _half_local_graph(
    num_nodes: int, num_pairs: int, rng: np.random.Generator
) -> Pairs:
    """Half of the pairs at most 50 numbers apart, the other half uniform."""

    def draw_local(count: int) -> Pairs:
        first = rng.integers(num_nodes, size=count)
        second = first + rng.integers(1, LOCAL_REACH + 1, size=count)
        inside = second < num_nodes
        return np.stack([first[inside], second[inside]], axis=1)

    local = _distinct(
        draw_local, num_pairs // 2, num_nodes, np.empty((0, 2), dtype=np.int64)
    )
    return _distinct(
        lambda count: rng.integers(num_nodes, size=(count, 2)),
        num_pairs - len(local),
        num_nodes,
        local,
    )


def _finish(
    graphs: list[Pairs], sizes: np.ndarray, rng: np.random.Generator
) -> GraphInput:
    """Put graphs side by side, add the reverse edges, weights and features."""
    starts = np.cumsum(sizes) - sizes
    pairs = np.concatenate([g + s for g, s in zip(graphs, starts, strict=True)])
    weight = rng.uniform(0.5, 1.5, size=len(pairs)).astype(np.float32)
    edges = np.concatenate([pairs, pairs[:, ::-1]])
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    num_nodes = int(sizes.sum())
    return GraphInput(
        x=torch.from_numpy(
            rng.standard_normal((num_nodes, NUM_CHANNELS), dtype=np.float32)
        ),
        edge_index=torch.from_numpy(np.ascontiguousarray(edges[order].T)),
        edge_weight=torch.from_numpy(np.concatenate([weight, weight])[order]),
        batch=torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes)),
        num_graphs=len(sizes),
    )


def _input_a(rng: np.random.Generator) -> GraphInput:
    sizes = rng.integers(18, 33, size=128)
    return _finish([_molecule(int(n), rng) for n in sizes], sizes, rng)


def _input_b(rng: np.random.Generator) -> GraphInput:
    sizes = rng.integers(270, 331, size=32)
    graphs = [_random_graph(int(n), 2 * int(n), rng) for n in sizes]
    return _finish(graphs, sizes, rng)


def _input_c(rng: np.random.Generator) -> GraphInput:
    graph = _half_local_graph(100_000, 500_000, rng)
    return _finish([graph], np.array([100_000]), rng)


def _input_d(rng: np.random.Generator) -> GraphInput:
    graph = _half_local_graph(5_000, 25_000, rng)
    return _finish([graph], np.array([5_000]), rng)


_MAKERS = {"a": _input_a, "b": _input_b, "c": _input_c, "d": _input_d}
GRAPH_INPUTS = tuple(_MAKERS)


def _shuffle_nodes(graph: GraphInput) -> GraphInput:
    """Renumber all nodes at random; edges keep their columns and meaning."""
    order = np.random.default_rng(SEED + 1).permutation(len(graph.batch))
    new_row = torch.from_numpy(np.argsort(order))
    old_row = torch.from_numpy(order)
    return GraphInput(
        x=graph.x[old_row],
        edge_index=new_row[graph.edge_index],
        edge_weight=graph.edge_weight,
        batch=graph.batch[old_row],
        num_graphs=graph.num_graphs,
    )


@cache
def load_graphs(name: str, *, shuffled: bool = False) -> GraphInput:
    """Return one of the graph inputs, built once per process.

    Args:
        name: ``"a"``, ``"b"``, ``"c"`` or ``"d"``, or ``"skew"`` for the segments as
            graphs without edges.
        shuffled: Whether to renumber the nodes at random, which leaves every graph
            the same but its rows (and so the batch vector) in no order.

    Returns:
        The input; treat its tensors as read-only.

    Raises:
        ValueError: If the name is unknown.
    """
    if name == "skew":
        return _segments_as_graphs(load_segments(shuffled=shuffled))
    if name not in _MAKERS:
        raise ValueError(
            f"load_graphs got the name {name!r}, expected one of "
            f"{', '.join(GRAPH_INPUTS)}; segments are 'skew'."
        )
    if shuffled:
        return _shuffle_nodes(load_graphs(name))
    return _MAKERS[name](np.random.default_rng(SEED))


def _segments_as_graphs(segments: SegmentInput) -> GraphInput:
    """One graph without edges per segment."""
    return GraphInput(
        x=segments.x,
        edge_index=torch.empty(2, 0, dtype=torch.long),
        edge_weight=torch.empty(0),
        batch=segments.index,
        num_graphs=segments.sizes.numel(),
    )


def _power_law_sizes(count: int, largest: int, total: int) -> np.ndarray:
    """Evenly spaced quantiles of a density ``~ size^-2`` cut off at ``largest``."""
    tail = np.linspace(1.0, 0.0, count)

    def sizes(smallest: float) -> np.ndarray:
        inverse = tail / smallest + (1 - tail) / largest
        return np.maximum(1, np.round(1 / inverse)).astype(np.int64)

    low, high = 1.0, float(largest)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sizes(middle).sum() < total else (low, middle)
    return sizes(high)


@cache
def load_segments(*, shuffled: bool = False) -> SegmentInput:
    """Return the ``skew`` input for segment kernels, built once per process.

    Args:
        shuffled: Whether to put the rows in random order.

    Returns:
        The input; treat its tensors as read-only.
    """
    rng = np.random.default_rng(SEED)
    sizes = rng.permutation(_power_law_sizes(2_000, 20_000, 100_000))
    index = np.repeat(np.arange(len(sizes)), sizes)
    x = rng.standard_normal((len(index), NUM_CHANNELS), dtype=np.float32)
    if shuffled:
        order = rng.permutation(len(index))
        x, index = x[order], index[order]
    return SegmentInput(
        x=torch.from_numpy(x),
        index=torch.from_numpy(index),
        sizes=torch.from_numpy(sizes),
    )
