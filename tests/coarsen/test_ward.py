"""Ward merging and exact moves against stored values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyg_pool.coarsen import coarsen
from pyg_pool.coarsen.group import Limits
from pyg_pool.coarsen.multilevel import narrow
from pyg_pool.coarsen.objective import objective
from pyg_pool.coarsen.refine import Clusters, refine
from pyg_pool.coarsen.state import plain_state, state_of
from pyg_pool.coarsen.threads import Threads
from pyg_pool.coarsen.ward import merge_costs, moves, ward
from tests.coarsen.golden_graphs import graph_of, read, stored

CASES = [
    (name, run)
    for name in stored("ward_*")
    for run in range(len(read(name)["outputs"]["runs"]))
]
BINDING = 1.02


def case(name: str, number: int) -> tuple[dict[str, Any], Any, int, dict[str, Any]]:
    """A stored run; values with degrees as masses are for masses as they are."""
    golden = read(name)
    run = golden["outputs"]["runs"][number]
    state = state_of(graph_of(golden["inputs"]), run["kernel"], run["mass"])
    if run["mass"] == "degree":
        total = state.mass.sum()
        run["merge_cost_level0"] = np.array(run["merge_cost_level0"]) / total
        for key in ("after_local_search_objective", "local_search_objective"):
            run[key] /= total
    return golden, state, golden["inputs"]["n"], run


def partition(label: Any) -> list[int]:
    """Labels numbered by first member."""
    seen: dict[int, int] = {}
    return [seen.setdefault(int(k), len(seen)) for k in label]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_golden_merge_costs(name: str, number: int) -> None:
    golden, state, _, run = case(name, number)
    row, col = np.array(run["edges"]).reshape(2, -1)
    costs = merge_costs(state, row, col)
    np.testing.assert_allclose(
        costs, run["merge_cost_level0"], atol=golden["tolerance"]["abs"], rtol=0
    )


@pytest.mark.parametrize(("name", "number"), CASES)
def test_golden_ward(name: str, number: int) -> None:
    _, state, n, run = case(name, number)
    plain, moved = ward(state, n, refine=False), ward(state, n)
    if "weighted" in name:
        assert partition(plain) == partition(run["ward_labels"])
        assert partition(moved) == partition(run["after_local_search_labels"])
    limit = run["after_local_search_objective"] * BINDING
    assert objective(state, moved, n) <= limit
    assert len(np.unique(moved)) == n


@pytest.mark.parametrize(("name", "number"), CASES)
def test_golden_moves(name: str, number: int) -> None:
    _, state, n, run = case(name, number)
    start = np.array(run["local_search_from"])
    found = moves(state, start, n)
    np.testing.assert_allclose(
        objective(state, found, n), run["local_search_objective"], rtol=0.02
    )
    if "weighted" in name:
        assert found.tolist() == run["local_search_labels"]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_golden_moves_of_the_sparse_method(name: str, number: int) -> None:
    _, state, n, run = case(name, number)
    label = np.array(run["local_search_from"], dtype=np.int32)
    coarse = plain_state(state, label, n)
    clusters = Clusters(coarse.own, coarse.mass, np.empty((0, 0)))
    refine(narrow(state), label, clusters, Limits(), 100, Threads(1))
    if "weighted" in name:
        assert label.tolist() == run["local_search_labels"]
    assert objective(state, label, n) <= run["local_search_objective"] * BINDING


def test_dense_method_refuses_large_graphs() -> None:
    from scipy.sparse import eye

    with pytest.raises(ValueError, match="16384"):
        coarsen(eye(20_000, format="csr"), ratio=0.5, method="ward")
