"""Best partners by degree are those of least merge cost."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_matrix

from pyg_pool.coarsen import graph_from_rows
from pyg_pool.coarsen.partners import ByCost, ByDegree
from pyg_pool.coarsen.state import State, state_of
from tests.coarsen.made_graphs import graph

NONE = np.empty(0, np.uint8)


def both(state: State, seed: int = 3) -> tuple[ByDegree, ByCost]:
    closed = np.zeros(state.num_nodes, bool)
    closed[::7] = True
    return ByDegree(state, closed, seed), ByCost(state, closed, np.inf, NONE, seed)


@pytest.mark.parametrize("seed", [0, 3, -1, 1 << 40])
def test_least_degree_is_least_cost(seed: int) -> None:
    state = state_of(graph(500, weighted=False), "rw")
    few, all_costs = both(state, seed)
    for partners in (few, all_costs):
        partners.look((0, 200))
        partners.look((200, 500))
        partners.best[::7] = -1
    prices = few.keep_prices()()
    np.testing.assert_allclose(prices, all_costs.cost, rtol=1e-6)
    assert ((few.best < 0) == (all_costs.best < 0)).all()
    rows = state.to_scipy()
    found = np.flatnonzero(few.best >= 0)
    assert found.size > 300
    assert (rows[found, few.best[found]] > 0).all()


def test_partners_that_are_taken_are_replaced() -> None:
    state = state_of(graph(500, weighted=False), "rw")
    few, _ = both(state)
    few.look((0, 500))
    before = few.best.copy()
    few.taken[before[3]] = few.mark
    few.look((0, 500))
    lost = before == before[3]
    assert lost[3]
    assert (few.best[lost] != before[3]).all()
    kept = ~lost
    kept[before[3]] = False
    assert (few.best[kept] == before[kept]).all()


def test_ties_agree_from_both_ends() -> None:
    size = 20
    row = np.repeat(np.arange(size), size)
    col = np.tile(np.arange(size), size)
    apart = row != col
    ones = np.ones(apart.sum())
    rows = coo_matrix((ones, (row[apart], col[apart])), (size, size)).tocsr()
    state = state_of(graph_from_rows(rows.indptr, rows.indices, rows.data), "rw")
    few = ByDegree(state, np.zeros(size, bool), 0)
    few.look((0, size))
    assert (few.best[few.best] == np.arange(size)).any()
    assert few.best.min() >= 0


def test_only_plain_states_fit() -> None:
    assert ByDegree.fits(state_of(graph(50, weighted=False), "rw"))
    assert not ByDegree.fits(state_of(graph(50, weighted=True), "rw"))
    loops = graph(50, weighted=False)
    loops.loop = np.eye(50)[3]
    assert not ByDegree.fits(state_of(loops, "rw"))
    assert not ByDegree.fits(state_of(graph(50, weighted=False), "normalized"))
    assert not ByDegree.fits(state_of(graph(50, weighted=False), "rw", "uniform"))
