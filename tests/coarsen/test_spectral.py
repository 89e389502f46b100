"""Spectra and random coordinates."""

from __future__ import annotations

import numpy as np
import pytest

from pyg_pool.coarsen import graph_from_edges, spectral
from pyg_pool.coarsen.spectral import eigenvalue_errors, largest, random_coordinates
from pyg_pool.coarsen.state import plain_state, state_of
from tests.coarsen.made_graphs import graph


def test_trace_of_the_coordinates() -> None:
    state = state_of(graph(200), "rw")
    points = random_coordinates(state, 0.5, 0)
    trace = (state.own / state.mass).sum()
    assert (points**2 * state.mass[:, None]).sum() == pytest.approx(0.5 * trace)


def test_sparse_solver_equals_the_dense_one(monkeypatch: pytest.MonkeyPatch) -> None:
    state = state_of(graph(300), "normalized")
    dense = largest(state, 6)
    monkeypatch.setattr(spectral, "DENSE", 10)
    np.testing.assert_allclose(largest(state, 6), dense, rtol=1e-4)


def test_eigenvalues_of_zero_have_no_error() -> None:
    edges = graph_from_edges([0, 1], [1, 0])  # I + A has the eigenvalues 2 and 0
    state = state_of(edges, "normalized")
    found = eigenvalue_errors(state, plain_state(state, np.arange(2), 2), 5)
    assert found["error"] == pytest.approx(0, abs=1e-12)


def test_errors_are_not_negative() -> None:
    state = state_of(graph(200), "rw")
    coarse = plain_state(state, np.arange(200) // 4, 50)
    found = eigenvalue_errors(state, coarse, 10)
    assert 0 <= found["error"] < 1
    assert len(found["eigenvalues"]) == 10
