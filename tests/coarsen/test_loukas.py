"""Loukas' methods against stored values."""

from __future__ import annotations

import numpy as np
import pytest

from pyg_pool.coarsen.loukas import (
    edge_costs,
    loukas,
    neighborhood_costs,
    slow_vectors,
)
from tests.coarsen.golden_graphs import graph_of, read, stored
from tests.coarsen.test_ward import partition


@pytest.mark.parametrize("name", [n for n in stored("rivals_*") if "weighted" in n])
@pytest.mark.parametrize(
    "method", ["variation_edges", "variation_neighborhoods", "heavy_edge"]
)
def test_golden_labels(name: str, method: str) -> None:
    golden = read(name)
    expected = golden["outputs"][method]
    label = loukas(method, graph_of(golden["inputs"]).to_scipy(), expected["n"])
    assert partition(label) == partition(expected["labels"])


@pytest.mark.parametrize("name", stored("rivals_*"))
def test_golden_costs(name: str) -> None:
    golden = read(name)
    outputs = golden["outputs"]
    weights = graph_of(golden["inputs"]).to_scipy()
    vectors, _ = slow_vectors(weights, None)
    edges = outputs["variation_edge_costs_level1"]
    row, col = np.array(edges["edges"])
    tolerance = {"atol": golden["tolerance"]["abs"], "rtol": 0}
    if "weighted" in name:
        costs = edge_costs(weights, vectors, row, col)
        np.testing.assert_allclose(costs, edges["cost"], **tolerance)
        sets = neighborhood_costs(weights, vectors)
        expected = outputs["variation_neighborhood_costs_level1"]
        np.testing.assert_allclose(sets, expected, **tolerance)


def test_target_is_not_overshot() -> None:
    weights = graph_of(read("rivals_mutag0")["inputs"]).to_scipy()
    label = loukas("variation_neighborhoods", weights, 6)
    assert label.max() + 1 >= 6
