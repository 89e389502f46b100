"""Sweeps of moves: they never raise the objective and keep every sum."""

from __future__ import annotations

import numpy as np
import pytest

from pyg_pool.coarsen import refine as room
from pyg_pool.coarsen.group import Limits
from pyg_pool.coarsen.multilevel import narrow
from pyg_pool.coarsen.objective import cluster_terms, objective
from pyg_pool.coarsen.refine import Clusters, refine
from pyg_pool.coarsen.state import state_of
from pyg_pool.coarsen.threads import Threads
from tests.coarsen.made_graphs import graph


@pytest.mark.parametrize("blockwise", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kernel", ["rw", "normalized"])
def test_objective_falls_and_sums_are_kept(
    blockwise: bool, threads: int, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "SEQUENTIAL", 0 if blockwise else 1 << 40)
    monkeypatch.setattr(room, "BLOCK", 64)
    state = narrow(state_of(graph(2000, weighted=True), kernel))
    label = (np.random.default_rng(1).permutation(2000) % 200).astype(np.int32)
    own, mass = cluster_terms(state, label, 200)
    clusters = Clusters(own, mass, np.empty((0, 0)))
    before = [objective(state, label, 200)]

    def note(turn: int, moved: int) -> None:
        before.append(objective(state, label, 200))
        assert moved > 0 or before[-1] == before[-2]

    with Threads(threads) as pool:
        refine(state, label, clusters, Limits(), 5, pool, report=note)
    assert (np.diff(before) <= 1e-12).all()
    assert before[-1] < 0.97 * before[0]
    found = cluster_terms(state, label, 200)
    np.testing.assert_allclose(clusters.own, found[0], rtol=1e-5)
    np.testing.assert_allclose(clusters.mass, found[1])
    assert len(np.unique(label)) == 200


def test_blocks_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "SEQUENTIAL", 0)
    monkeypatch.setattr(room, "BLOCK", 256)
    state = narrow(state_of(graph(2000), "rw"))
    results = []
    for threads in (1, 2, 7):
        label = (np.random.default_rng(1).permutation(2000) % 200).astype(np.int32)
        sums = Clusters(*cluster_terms(state, label, 200), np.empty((0, 0)))
        with Threads(threads) as pool:
            refine(state, label, sums, Limits(), 4, pool)
        results.append(label)
    assert (results[0] == results[1]).all()
    assert (results[0] == results[2]).all()
