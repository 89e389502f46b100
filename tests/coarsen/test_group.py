"""One level of merging."""

from __future__ import annotations

import numpy as np
import pytest

from pyg_pool.coarsen.group import KEPT, Limits, group
from pyg_pool.coarsen.multilevel import narrow
from pyg_pool.coarsen.objective import objective
from pyg_pool.coarsen.state import State, state_of
from pyg_pool.coarsen.threads import Threads
from pyg_pool.coarsen.ward import merge_costs
from tests.coarsen.made_graphs import graph


def level(size: int = 500, weighted: bool = True) -> State:
    return narrow(state_of(graph(size, weighted=weighted), "rw"))


def merged(state: State, target: int, limits: Limits | None = None) -> np.ndarray:
    with Threads(1) as threads:
        label, size = group(state, target, limits or Limits(), 3, 0, threads)
    assert size == len(np.unique(label)) >= target
    return label


def test_one_merge_is_the_cheapest_pair() -> None:
    state = level()
    rows = state.to_scipy().tocoo()
    upper = rows.row < rows.col
    row, col = rows.row[upper], rows.col[upper]
    costs = merge_costs(state, row, col)
    label = merged(state, 499)
    best = np.argmin(costs)
    assert label[row[best]] == label[col[best]]
    np.testing.assert_allclose(objective(state, label, 499), costs[best], rtol=1e-5)


@pytest.mark.parametrize("target", [1, 200, 260, 400])
def test_need_is_not_exceeded(target: int) -> None:
    label = merged(level(), target)
    assert label.max() + 1 < 500


def test_labels_are_numbered_by_first_member() -> None:
    label = merged(level(), 100)
    first = [np.flatnonzero(label == k)[0] for k in range(label.max() + 1)]
    assert first == sorted(first)


def test_limits() -> None:
    state = level()
    cap = 3 * state.mass.mean()
    label = merged(state, 50, Limits(cap))
    total = np.bincount(label, weights=state.mass)
    assert (total[np.bincount(label) > 1] <= cap * (1 + 1e-6)).all()
    lock = np.zeros(500, dtype=np.uint8)
    lock[:20] = KEPT
    label = merged(state, 50, Limits(lock=lock))
    assert (np.bincount(label)[label[:20]] == 1).all()
