"""Costs, spectra and bounds against stored values."""

from __future__ import annotations

import numpy as np
import pytest

from pyg_pool.coarsen import from_labels
from pyg_pool.coarsen.objective import association, move_cost, objective, theorem
from pyg_pool.coarsen.state import plain_state, state_of
from tests.coarsen.golden_graphs import graph_of, read, stored

CASES = [
    (name, pair)
    for name in stored("algebra_*")
    for pair in read(name)["outputs"]["per_kernel_and_mass"]
]


@pytest.mark.parametrize(("name", "pair"), CASES)
def test_golden_algebra(name: str, pair: str) -> None:
    golden = read(name)
    graph, label = graph_of(golden["inputs"]), np.array(golden["inputs"]["labels"])
    expected = golden["outputs"]["per_kernel_and_mass"][pair]
    state = state_of(graph, *pair.split("/"))
    size = int(label.max()) + 1
    coarse = plain_state(state, label, size)
    close = {"atol": golden["tolerance"]["abs"], "rtol": 0}
    total = state.mass.sum()
    np.testing.assert_allclose(state.mass / total, expected["mass"], **close)
    np.testing.assert_allclose(coarse.mass / total, expected["cluster_mass"], **close)
    similarity = coarse.to_dense() / np.outer(coarse.mass, coarse.mass)
    np.testing.assert_allclose(similarity, expected["coarse_similarity"], **close)
    found = theorem(state, label, size)
    for ours, theirs in (
        (found["eigenvalues"], "similarity_eigenvalues_desc"),
        (found["coarse_eigenvalues"], "coarse_eigenvalues_desc"),
        (found["spectral_difference"], "spectral_difference"),
        (objective(state, label, size), "kmeans_objective"),
        (move_cost(state, coarse), "induced_transport_gw2"),
        (found["bound"], "theorem_bound"),
        (found["constant"], "theorem_constant"),
    ):
        np.testing.assert_allclose(ours, expected[theirs], err_msg=theirs, **close)


@pytest.mark.parametrize(("name", "pair"), CASES)
def test_eigenvalues_interlace(name: str, pair: str) -> None:
    golden = read(name)
    state = state_of(graph_of(golden["inputs"]), *pair.split("/"))
    label = np.array(golden["inputs"]["labels"])
    size = int(label.max()) + 1
    found = theorem(state, label, size)
    fine, coarse = found["eigenvalues"], found["coarse_eigenvalues"]
    assert (coarse <= fine[:size] + 1e-12).all()
    assert (coarse >= fine[-size:] - 1e-12).all()
    assert found["spectral_difference"] <= objective(state, label, size) + 1e-12


def test_association_is_what_the_objective_lacks() -> None:
    graph = graph_of(read("algebra_karate")["inputs"])
    label = np.arange(34) // 2
    state = state_of(graph, "normalized")
    left = 34 - 17 - association(state, label, 17)
    np.testing.assert_allclose(objective(state, label, 17) * 34, left)


def test_partition_of_one_label_is_judged_by_the_coarsening() -> None:
    graph = graph_of(read("algebra_path5")["inputs"])
    found = from_labels(graph, [0, 0, 1, 1, 2], kernel="normalized")
    assert found.size.tolist() == [2, 2, 1]
