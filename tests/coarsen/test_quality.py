"""The report."""

from __future__ import annotations

import json

import networkx
import numpy as np
import pytest
import torch

from pyg_pool.coarsen import coarsen, from_labels
from tests.coarsen.golden_graphs import graph_of, read
from tests.coarsen.made_graphs import blocks, ring


def test_golden_figures() -> None:
    golden = read("algebra_karate")
    inputs = golden["inputs"]
    expected = golden["outputs"]["per_kernel_and_mass"]["normalized/uniform"]
    found = from_labels(graph_of(inputs), inputs["labels"], kernel="normalized")
    quality = found.quality(5, gw=True)
    assert quality.objective == pytest.approx(expected["kmeans_objective"], abs=1e-6)
    bound = np.sqrt(expected["induced_transport_gw2"])
    assert quality.gw_upper_bound == pytest.approx(bound, abs=1e-5)
    top = expected["similarity_eigenvalues_desc"][:5]
    np.testing.assert_allclose(quality.eigenvalues, top, atol=1e-6)
    assert quality.gw_distance is not None
    assert quality.gw_distance <= bound + 1e-5


def test_cut_and_modularity_equal_networkx() -> None:
    rows = blocks(200)
    found = coarsen(rows, num_clusters=8)
    quality = found.quality()
    graph = networkx.from_scipy_sparse_array(rows)
    groups = [
        set(torch.nonzero(found.cluster == k).view(-1).tolist()) for k in range(8)
    ]
    expected = networkx.community.modularity(graph, groups)
    assert quality.modularity == pytest.approx(expected)
    inside = sum(graph.subgraph(group).number_of_edges() for group in groups)
    assert quality.cut == pytest.approx(1 - inside / graph.number_of_edges())


def test_table_and_json() -> None:
    quality = coarsen(ring(12), num_clusters=4).quality(3)
    assert json.loads(quality.to_json()) == quality.to_dict()
    assert "12 -> 4" in str(quality)
    assert sum(quality.histogram) == 4


def test_distance_of_large_graphs_is_refused() -> None:
    found = coarsen(ring(3000), ratio=0.5)
    with pytest.raises(ValueError, match="gw_upper_bound"):
        found.quality(gw=True)
