"""Cluster numbers."""

from __future__ import annotations

import numpy as np

from pyg_pool.coarsen.labels import checked, compact


def test_compact_numbers_by_first_member() -> None:
    assert compact(np.array([7, 3, 7, 9, 3])).tolist() == [0, 1, 0, 2, 1]
    assert compact(np.empty(0, np.int64)).size == 0


def test_checked_keeps_what_is_dense() -> None:
    label, count = checked("test", [1, 0, 1], 3)
    assert (label.tolist(), count) == ([1, 0, 1], 2)
