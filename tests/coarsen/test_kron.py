"""Kron reduction against effective resistances, which it keeps."""

from __future__ import annotations

import numpy as np
import pytest

from pyg_pool.coarsen import coarsen
from tests.coarsen.golden_graphs import graph_of, read


def resistance(dense: np.ndarray) -> np.ndarray:
    inverse = np.linalg.pinv(np.diag(dense.sum(1)) - dense)
    diagonal = np.diag(inverse)
    return diagonal[:, None] + diagonal[None] - 2 * inverse


def test_resistances_are_kept() -> None:
    graph = graph_of(read("rivals_karate")["inputs"])
    found = coarsen(graph, num_clusters=9, method="kron")
    kept = found.kept
    assert kept is not None
    assert kept.numel() == found.num_clusters == 9
    assert (found.cluster >= 0).sum() == 9
    data = found.graph()
    dense = np.zeros((9, 9))
    row, col = data.edge_index.numpy()
    dense[row, col] = data.edge_weight.numpy()
    before = resistance(graph.to_scipy().toarray())[np.ix_(kept, kept)]
    np.testing.assert_allclose(resistance(dense), before, atol=1e-4)


def test_no_quality_without_clusters() -> None:
    graph = graph_of(read("rivals_karate")["inputs"])
    found = coarsen(graph, num_clusters=9, method="kron")
    with pytest.raises(ValueError, match="kron"):
        found.quality()
