"""Cutting work into spans and running them."""

from __future__ import annotations

import threading

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_pool.kernels import threads as room


@given(st.integers(0, 200), st.integers(1, 5), st.sampled_from([1, 16]))
def test_spans_cover_the_range(length: int, count: int, step: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "get_num_threads", lambda: count)
        parts = room.spans(length, room.PARALLEL_FROM, step=step)
    assert len(parts) <= count
    assert [i for start, stop in parts for i in range(start, stop)] == [*range(length)]
    assert all(start % step == 0 for start, _ in parts)


def test_small_work_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    assert room.spans(100, room.PARALLEL_FROM - 1) == [(0, 100)]
    assert len(room.spans(100, room.PARALLEL_FROM)) == 4


def test_spans_run_in_several_threads() -> None:
    seen: dict[tuple[int, int], int] = {}
    gate = threading.Barrier(2, timeout=30)

    def work(start: int, stop: int) -> None:
        gate.wait()  # passes only if both run at once
        seen[start, stop] = threading.get_ident()

    room.run_spans(work, [(0, 2), (2, 5)])
    assert set(seen) == {(0, 2), (2, 5)}
    assert len(set(seen.values())) == 2


def test_errors_of_threads_come_out() -> None:
    def work(start: int, stop: int) -> None:
        if start > 0:
            raise KeyError(start)

    with pytest.raises(KeyError):
        room.run_spans(work, [(0, 1), (1, 2)])
