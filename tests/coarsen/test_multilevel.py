"""The scalable method beside the dense one, and its memory."""

from __future__ import annotations

import pytest

from pyg_pool.coarsen import coarsen
from tests.coarsen.golden_graphs import graph_of, read, stored
from tests.coarsen.made_graphs import blocks


@pytest.mark.parametrize("name", stored("ward_*"))
@pytest.mark.parametrize("kernel", ["rw", "normalized", "signless"])
def test_near_the_dense_method(name: str, kernel: str) -> None:
    golden = read(name)
    graph, n = graph_of(golden["inputs"]), golden["inputs"]["n"]
    sparse = coarsen(graph, num_clusters=n, kernel=kernel).quality()
    dense = coarsen(graph, num_clusters=n, kernel=kernel, method="ward").quality()
    assert sparse.objective <= dense.objective * 1.06 + 1e-12


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
