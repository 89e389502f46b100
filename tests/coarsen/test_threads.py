"""The pool of threads."""

from __future__ import annotations

import threading
from itertools import pairwise

from pyg_pool.coarsen.threads import Threads


def test_results_keep_their_order() -> None:
    with Threads(3) as threads:
        assert threads.map(lambda x: x * x, range(50)) == [x * x for x in range(50)]


def test_one_thread_starts_none() -> None:
    with Threads(1) as threads:
        names = threads.map(lambda _: threading.current_thread().name, range(3))
    assert set(names) == {threading.current_thread().name}


def test_ranges_cover_everything() -> None:
    ranges = Threads(4).ranges(100_000)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == 100_000
    assert all(a[1] == b[0] for a, b in pairwise(ranges))
    assert Threads(4).ranges(0) == []
