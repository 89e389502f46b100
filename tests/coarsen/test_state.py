"""States: kernels and masses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from pyg_pool.coarsen.state import matrix_state, plain_state, state_of
from tests.coarsen.golden_graphs import graph_of, read
from tests.coarsen.made_graphs import graph


def test_golden_similarity() -> None:
    golden = read("algebra_selfloops6")
    state = state_of(graph_of(golden["inputs"]), "normalized")
    np.testing.assert_allclose(
        state.to_dense(), golden["outputs"]["similarity_normalized"], atol=1e-9
    )


@pytest.mark.parametrize("kernel", ["rw", "normalized", "signless"])
@pytest.mark.parametrize("mass", ["degree", "uniform", None])
def test_kernels_are_positive_semidefinite(kernel: str, mass: str | None) -> None:
    state = state_of(graph(100, weighted=True), kernel, mass)
    assert np.linalg.eigvalsh(state.operator().toarray()).min() > -1e-9


def test_masses_of_the_caller() -> None:
    here = graph(100)
    state = state_of(here, "normalized", torch.full((100,), 2.0))
    np.testing.assert_allclose(state.mass, 2)
    for bad in (np.ones(3), np.zeros(100), np.full(100, np.nan)):
        with pytest.raises(ValueError, match="positive finite"):
            state_of(here, "rw", bad)


def test_unknown_words() -> None:
    with pytest.raises(ValueError, match="kernel="):
        state_of(graph(50), "laplacian")
    with pytest.raises(ValueError, match="mass="):
        state_of(graph(50), "rw", "volume")


def test_matrices_of_all_kinds() -> None:
    dense = np.array([[2.0, 1.0], [1.0, 3.0]])
    kinds = (
        dense,
        csr_matrix(dense),
        torch.tensor(dense),
        torch.tensor(dense).to_sparse(),
    )
    for matrix in kinds:
        np.testing.assert_allclose(matrix_state(matrix, 2).to_dense(), dense)
    with pytest.raises(ValueError, match="one row per node"):
        matrix_state(dense, 3)


def test_coarse_state_sums() -> None:
    state = state_of(graph(100), "rw")
    label = np.arange(100) // 10
    coarse = plain_state(state, label, 10)
    np.testing.assert_allclose(coarse.mass.sum(), state.mass.sum())
    np.testing.assert_allclose(coarse.to_dense().sum(), state.to_dense().sum())
