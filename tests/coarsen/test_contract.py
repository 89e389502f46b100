"""Compiled contraction against SciPy."""

from __future__ import annotations

import numpy as np
import pytest

from pyg_pool.coarsen import contract as room
from pyg_pool.coarsen.contract import contract
from pyg_pool.coarsen.multilevel import narrow
from pyg_pool.coarsen.state import plain_state, state_of
from pyg_pool.coarsen.threads import Threads
from tests.coarsen.made_graphs import graph


@pytest.mark.parametrize("kernel", ["rw", "normalized"])
@pytest.mark.parametrize("threads", [1, 3])
def test_equals_scipy(
    kernel: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "PIECE", 500)
    state = state_of(graph(1000, weighted=True), kernel)
    label = np.random.default_rng(0).permutation(1000) % 60
    with Threads(threads) as pool:
        found = contract(narrow(state), label.astype(np.int32), 60, pool)
    expected = plain_state(state, label, 60)
    np.testing.assert_allclose(found.to_dense(), expected.to_dense(), rtol=1e-5)
    np.testing.assert_allclose(found.mass, expected.mass)
    assert found.indices.dtype == np.int32
