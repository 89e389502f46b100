from __future__ import annotations

import numpy as np
import pytest

from pyg_pool.view import graph_layout


def distances(points: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points[:, None] - points[None], axis=2)


def test_path_is_straight_and_horizontal() -> None:
    edges = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
    points = graph_layout(edges, 5)
    hops = np.abs(np.arange(5)[:, None] - np.arange(5)[None])
    np.testing.assert_allclose(distances(points), hops, atol=0.1)
    assert np.ptp(points[:, 0]) > 10 * np.ptp(points[:, 1])


def test_ring_is_round() -> None:
    edges = np.stack([np.arange(8), (np.arange(8) + 1) % 8])
    points = graph_layout(edges, 8)
    radius = np.linalg.norm(points, axis=1)
    np.testing.assert_allclose(radius, radius.mean(), rtol=0.02)


def test_components_do_not_overlap() -> None:
    edges = np.array([[0, 1, 3, 4], [1, 2, 4, 5]])
    points = graph_layout(edges, 6)
    assert distances(points)[np.triu_indices(6, 1)].min() > 0.4


def test_direction_loops_and_repeats_do_not_matter() -> None:
    edges = np.array([[0, 1], [1, 2]])
    noisy = np.array([[0, 1, 2, 1, 0], [1, 2, 1, 1, 1]])
    np.testing.assert_allclose(graph_layout(edges, 3), graph_layout(noisy, 3))


def test_same_graph_same_drawing() -> None:
    edges = np.random.default_rng(7).integers(0, 20, (2, 40))
    np.testing.assert_array_equal(graph_layout(edges, 20), graph_layout(edges, 20))


@pytest.mark.parametrize("num_nodes", [0, 1, 2, 3])
def test_tiny_graphs(num_nodes: int) -> None:
    points = graph_layout(np.empty((2, 0), dtype=np.int64), num_nodes)
    assert points.shape == (num_nodes, 2)
    assert np.isfinite(points).all()
