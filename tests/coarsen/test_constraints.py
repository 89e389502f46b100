"""Wishes of the caller, checked."""

from __future__ import annotations

import torch

from pyg_pool.coarsen.constraints import Constraints
from pyg_pool.coarsen.group import ANCHOR, FREE, KEPT
from tests.coarsen.made_graphs import graph

HERE = graph(50)


def test_nothing_asked_for() -> None:
    found = Constraints.of(HERE, None, None, None, None, False)
    assert not found.are_set
    assert found.lock.size == 0


def test_overlapping_groups_become_one() -> None:
    found = Constraints.of(HERE, [[0, 9], [9, 4]], None, None, None, False)
    assert found.linked is not None
    assert found.linked[0] == found.linked[9] == found.linked[4]
    assert found.linked.max() == 47


def test_locks_of_joined_nodes() -> None:
    keep = torch.zeros(50, dtype=torch.bool)
    keep[7] = True
    found = Constraints.of(HERE, [[0, 1]], [[1, 2]], keep, None, False)
    assert found.lock[:3].tolist() == [ANCHOR, ANCHOR, FREE]
    assert found.lock[6] == KEPT
    assert found.are_set
