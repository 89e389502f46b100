"""Wishes of the caller, checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from pyg_pool.coarsen import graph_from_edges
from pyg_pool.coarsen.constraints import Constraints, read_groups
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


def test_groups_of_a_file(tmp_path: Path) -> None:
    path, here = tmp_path / "a.txt", graph_from_edges([0, 4], [4, 0])
    path.write_text("# pairs\n3 1\n\n4,0;2\n")
    assert read_groups(path, here) == [[3, 1], [4, 0, 2]]
    here.ids = np.array([2, 3, 5, 7, 2**62])
    path.write_text(f"{2**62} 3\n")
    assert read_groups(path, here) == [[4, 1]]
    path.write_text("3\n5 4\n")
    with pytest.raises(ValueError, match="names the node '4'"):
        read_groups(path, here)
    path.write_text("3 x\n")
    with pytest.raises(ValueError, match="names the node 'x'"):
        read_groups(path, here)
    here.ids = np.array(["Graz", "Lyon, FR", "New York", "Oslo", "Rom"])
    path.write_text('New York\tRom\n"Lyon, FR",Oslo\n')
    assert read_groups(path, here) == [[2, 4], [1, 3]]
    path.write_text("")
    assert read_groups(path, here) == []
    with pytest.raises(FileNotFoundError, match="one group"):
        read_groups(tmp_path / "none.txt", here)
