"""Methods of others against stored values."""

from __future__ import annotations

import numpy as np
import pytest

from pyg_pool.coarsen import coarsen
from pyg_pool.coarsen.rivals import mgc, sgc
from tests.coarsen.golden_graphs import graph_of, read, stored
from tests.coarsen.test_ward import partition

METHODS = (
    "mgc",
    "sgc",
    "variation_edges",
    "variation_neighborhoods",
    "variation_cliques",
    "heavy_edge",
    "algebraic",
    "affinity",
)


@pytest.mark.parametrize("name", stored("rivals_*"))
def test_golden_mgc(name: str) -> None:
    golden = read(name)
    expected = golden["outputs"]["mgc"]
    graph = graph_of(golden["inputs"])
    label = mgc(graph.to_scipy(), golden["inputs"]["n"])
    assert partition(label) == partition(expected["labels"])
    dense = np.zeros((expected["n"], expected["n"]))
    np.add.at(dense, (label[:, None], label[None]), graph.to_scipy().toarray())
    np.testing.assert_allclose(dense, expected["coarse_adjacency"], atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_sizes_are_kept_and_never_overshot(method: str) -> None:
    graph = graph_of(read("rivals_karate")["inputs"])
    found = coarsen(graph, num_clusters=10, method=method, kernel="normalized")
    assert 10 <= found.num_clusters < 34
    assert found.size.sum() == 34
    if method in ("mgc", "sgc"):
        assert found.num_clusters == 10


def test_sgc_finds_the_blocks() -> None:
    blocks = np.kron(np.eye(3), np.ones((4, 4))) + 0.01
    np.fill_diagonal(blocks, 0)
    label = sgc(blocks_matrix(blocks), 3)
    assert partition(label) == [0] * 4 + [1] * 4 + [2] * 4


def blocks_matrix(dense: np.ndarray) -> object:
    from scipy.sparse import csr_matrix

    return csr_matrix(dense)


def test_several_levels_of_a_rival() -> None:
    graph = graph_of(read("rivals_karate")["inputs"])
    found = coarsen(graph, ratio=0.5, levels=2, method="heavy_edge")
    assert found.levels == 2
    assert found.sizes[1] < found.sizes[0]


def test_large_graphs_are_refused() -> None:
    from scipy.sparse import eye

    with pytest.raises(ValueError, match="method='multilevel'"):
        coarsen(eye(20_000, format="csr"), ratio=0.5, method="mgc")
