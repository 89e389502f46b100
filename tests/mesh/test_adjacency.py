"""Neighbours of faces against the definition, pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyg_pool.mesh import Mesh, primal_dual_graph
from pyg_pool.mesh.adjacency import check_finite, face_adjacency

POINTS = np.random.default_rng(3).normal(size=(6, 3))
TRIANGLES = st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), max_size=14)


@given(TRIANGLES)
@settings(derandomize=True, deadline=None, max_examples=200)
def test_adjacent_faces_share_exactly_two_vertices(faces: list[list[int]]) -> None:
    found = face_adjacency(Mesh(POINTS, faces))
    expected = [
        (i, j)
        for i in range(len(faces))
        for j in range(i + 1, len(faces))
        if len(set(faces[i]) & set(faces[j])) == 2
    ]
    assert list(zip(found.low.tolist(), found.high.tolist(), strict=True)) == expected
    for i, j, a, b, clash in zip(*vars(found).values(), strict=True):
        assert (a // 3, b // 3) == (i, j)
        first = faces[i][a % 3], faces[i][(a + 1) % 3]
        second = faces[j][b % 3], faces[j][(b + 1) % 3]
        assert first == (second if clash else second[::-1])


@given(TRIANGLES)
@settings(derandomize=True, deadline=None, max_examples=100)
def test_no_mesh_gives_infinities(faces: list[list[int]]) -> None:
    for config in ("A", "B", "C"):
        graph = primal_dual_graph(Mesh(POINTS, faces), config, primal_features="dual")
        assert graph.x.isfinite().all()
        assert graph.x_dual.isfinite().all()
        assert graph.x.shape == (len(faces), 4)


def test_coordinates_that_are_not_finite_are_named() -> None:
    points = POINTS.copy()
    points[4, 1] = np.nan
    check_finite("caller", Mesh(points, [[0, 1, 2]]))
    with pytest.raises(ValueError, match=r"caller got .* in 2 faces \(first: 1\)"):
        check_finite("caller", Mesh(points, [[0, 1, 2], [1, 2, 4], [4, 0, 1]]))
    points[4, 1] = np.inf
    with pytest.raises(ValueError, match="primal_dual_graph got a mesh with NaN or"):
        primal_dual_graph(Mesh(points, [[1, 2, 4]]))
