"""The scalable method beside the dense one, and its memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_matrix

from pyg_pool.coarsen import coarsen
from tests.coarsen.golden_graphs import graph_of, read, stored
from tests.coarsen.made_graphs import blocks, ring


@pytest.mark.parametrize("name", stored("ward_*"))
@pytest.mark.parametrize("kernel", ["rw", "normalized", "signless"])
def test_near_the_dense_method(name: str, kernel: str) -> None:
    golden = read(name)
    graph, n = graph_of(golden["inputs"]), golden["inputs"]["n"]
    sparse = coarsen(graph, num_clusters=n, kernel=kernel).quality()
    dense = coarsen(graph, num_clusters=n, kernel=kernel, method="ward").quality()
    assert sparse.objective <= dense.objective * 1.06 + 1e-12


def molecule(random: np.random.Generator) -> Any:
    """A tree of small degree with some rings."""
    size = int(random.integers(12, 33))
    child = np.arange(1, size)
    parent = np.maximum(child - random.integers(1, 4, size - 1), 0)
    first = random.integers(0, size - 5, 3)
    row, col = np.append(child, first), np.append(parent, first + 5)
    rows = coo_matrix((np.ones(row.size), (row, col)), (size, size)).tocsr()
    rows = rows + rows.T
    rows.data[:] = 1
    return rows


@pytest.mark.parametrize("ratio", [0.3, 0.5])
def test_near_the_dense_method_on_molecules(ratio: float) -> None:
    random = np.random.default_rng(7)
    graphs = [molecule(random) for _ in range(60)]
    kind: dict[str, Any] = {"kernel": "normalized", "ratio": ratio, "num_threads": 1}
    sparse = [coarsen(rows, **kind).quality() for rows in graphs]
    dense = [coarsen(rows, method="ward", **kind).quality() for rows in graphs]
    ours = np.mean([(q.objective, q.gw_upper_bound**2) for q in sparse], axis=0)
    best = np.mean([(q.objective, q.gw_upper_bound**2) for q in dense], axis=0)
    assert ours[0] <= 1.01 * best[0]
    assert ours[1] <= 1.04 * best[1]


@pytest.mark.parametrize(("size", "n"), [(12, 3), (12, 4), (12, 6), (24, 6), (100, 25)])
@pytest.mark.parametrize("kernel", ["rw", "normalized"])
def test_rings_are_cut_evenly(size: int, n: int, kernel: str) -> None:
    found = coarsen(ring(size), num_clusters=n, kernel=kernel)
    assert (found.size == size // n).all()


def test_shuffled_regular_graphs_take_the_best_of_some_tries() -> None:
    random = np.random.default_rng(0)
    rows, values = ring(24), []
    for _ in range(20):
        order = random.permutation(24)
        mixed = rows[order][:, order]
        values.append(coarsen(mixed, num_clusters=6).quality().objective)
    assert np.mean(values) < 0.28125 * 1.0012


def test_more_effort_is_better() -> None:
    rows = blocks(5000)
    values = [
        coarsen(rows, ratio=0.1, preset=preset).quality().objective
        for preset in ("fast", "balanced", "best")
    ]
    assert values == sorted(values, reverse=True)


def test_bound_holds() -> None:
    for name in ("ward_karate", "ward_grid4x4_weighted"):
        found = coarsen(graph_of(read(name)["inputs"]), ratio=0.4)
        quality = found.quality(gw=True)
        assert quality.gw_distance is not None
        assert quality.gw_distance <= quality.gw_upper_bound + 1e-6


def test_memory_by_directed_edge() -> None:
    import tracemalloc

    rows = blocks(20_000)
    coarsen(rows, ratio=0.1, num_threads=1)
    tracemalloc.start()
    coarsen(rows, ratio=0.1, num_threads=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * rows.nnz
