"""Batch kernel k-means against stored values."""

from __future__ import annotations

import numpy as np
import pytest

from pyg_pool.coarsen import coarsen
from pyg_pool.coarsen.kernel_kmeans import (
    batch_step,
    kmeans,
    nearest_centre,
    plus_plus,
    run,
)
from pyg_pool.coarsen.objective import objective
from pyg_pool.coarsen.state import plain_state, state_of
from tests.coarsen.golden_graphs import graph_of, read, stored

RUNS = [
    (name, number)
    for name in stored("kkmeans_*")
    if "empty" not in name
    for number in range(len(read(name)["outputs"]["runs"]))
]


@pytest.mark.parametrize(("name", "number"), RUNS)
def test_golden_batch_steps(name: str, number: int) -> None:
    golden = read(name)
    stored_run = golden["outputs"]["runs"][number]
    state = state_of(
        graph_of(golden["inputs"]), stored_run["kernel"], stored_run["mass"]
    )
    n = golden["inputs"]["n"]
    label = np.array(stored_run["init_labels"])
    for expected, value in zip(
        stored_run["label_history"], stored_run["objective_history"], strict=True
    ):
        assert label.tolist() == expected
        np.testing.assert_allclose(objective(state, label, n), value, atol=1e-9)
        label = batch_step(state, label, n)
    assert label.tolist() == stored_run["labels"]
    assert stored_run["success"]
    start = np.array(stored_run["init_labels"])
    assert run(state, start, n).tolist() == stored_run["labels"]


def test_golden_empty_cluster_is_filled() -> None:
    golden = read("kkmeans_empty_path6")
    inputs = golden["inputs"]
    state = state_of(graph_of(inputs), inputs["kernel"], inputs["mass"])
    centres = np.array(inputs["averaging_rows_start"]).argmax(axis=1)
    label = run(state, nearest_centre(state, centres), inputs["n"])
    assert np.unique(label).tolist() == [0, 1, 2]
    limit = golden["required"]["objective_at_most"]
    assert objective(state, label, 3) <= limit + 1e-12


@pytest.mark.parametrize("name", stored("kmeanspp_*"))
def test_golden_starts(name: str) -> None:
    golden = read(name)
    inputs, outputs = golden["inputs"], golden["outputs"]
    state = state_of(graph_of(inputs), inputs["kernel"], inputs["mass"])
    n = inputs["n"]
    centres, second = plus_plus(state, n, outputs["runs"][0]["seed"])
    assert centres[0] == outputs["first_centre"]
    expected = outputs["second_centre_probabilities"]
    np.testing.assert_allclose(second, expected, atol=1e-6)
    for stored_run in outputs["runs"]:
        start = nearest_centre(state, np.array(stored_run["centres"]))
        label = run(state, start, n)
        assert label.tolist() == stored_run["labels"]
        value = objective(state, label, n)
        np.testing.assert_allclose(value, stored_run["objective"], atol=1e-6)


@pytest.mark.parametrize("name", stored("kmeanspp_*"))
def test_golden_best_start(name: str) -> None:
    golden = read(name)
    inputs = golden["inputs"]
    graph = graph_of(inputs)
    found = coarsen(
        graph, num_clusters=inputs["n"], method="kmeans", kernel="normalized", seed=42
    )
    state = state_of(graph, "normalized")
    value = objective(state, found.cluster.numpy(), inputs["n"])
    assert value <= golden["outputs"]["best_objective_seen"] + 1e-9


@pytest.mark.parametrize("number", [0, 1])
def test_golden_sparse_step(number: int) -> None:
    golden = read("sparse_assign_1")
    inputs, step = golden["inputs"], golden["outputs"]["one_step"][number]
    state = state_of(graph_of(inputs), step["kernel"], "uniform")
    label = np.array(inputs["labels"])
    new = batch_step(state, label, inputs["n"])
    tied = set(step["tied_nodes"])
    for i, expected in enumerate(step["new_labels"]):
        assert i in tied or new[i] == expected
    own = plain_state(state, label, inputs["n"]).own
    tolerance = golden["tolerance"]["abs"]
    np.testing.assert_allclose(own, step["cluster_q"], atol=tolerance, rtol=1e-6)


def test_starts_from_labels_and_from_methods() -> None:
    graph = graph_of(read("ward_karate")["inputs"])
    start = np.arange(34) % 8
    for init in (start, "ward", "multilevel"):
        found = coarsen(graph, num_clusters=8, method="kmeans", init=init, kernel="rw")
        assert found.num_clusters == 8


def test_labels_with_gaps_are_renumbered() -> None:
    graph = graph_of(read("ward_karate")["inputs"])
    start = (np.arange(34) % 4) * 3
    with pytest.warns(UserWarning, match="renumbered"):
        found = coarsen(graph, num_clusters=4, method="kmeans", init=start)
    assert found.num_clusters == 4


def test_equal_nodes_give_as_many_clusters_as_asked_for() -> None:
    state = state_of(graph_of(read("kkmeans_empty_path6")["inputs"]), "normalized")
    label = kmeans(state, 3, label=np.zeros(6, dtype=np.int64))
    assert len(np.unique(label)) == 3
