"""Where the compiled twins start to pay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pyg_pool.kernels import crossover as room
from pyg_pool.kernels.dispatch import NUMBA_FROM, current_backend, watch_backends

TIMES = {"native": {8: 1.0, 16: 4.0, 32: 9.0}, "numba": {8: 2.0, 16: 3.0, 32: 3.0}}


RECORD = Path(__file__).parents[2] / "benchmarks/results/crossover/crossover.jsonl"


def test_table_is_that_of_the_record() -> None:
    lines = [json.loads(line) for line in RECORD.read_text().splitlines()]
    last = {line["primitive"]: line for line in lines}
    assert set(last) == set(room.STEPS) == set(NUMBA_FROM) - room.ELSEWHERE
    for primitive, line in last.items():
        smallest = line["sizes"][0]
        used = room.size_to_use(primitive, line["measured"], smallest)
        assert NUMBA_FROM[primitive] == line["used"] == used


def test_sizes_below_the_least_are_left_to_torch() -> None:
    assert room.size_to_use("topk", 256) == room.size_to_use("topk", 1024) == 1024
    assert room.size_to_use("topk", 4096) == 4096
    assert room.size_to_use("hop_pairs", 256) == 1
    assert room.size_to_use("hop_pairs", 1024) == 1024
    assert room.size_to_use("topk", None) > room.SIZES[-1]


def test_one_odd_figure_decides_little() -> None:
    sizes = (1, 2, 3, 4)
    assert room._first(sizes, (1.5, 2.0, 0.9, 3.0)) == 1
    assert room._first(sizes, (0.9, 1.0, 0.5, 1.5)) == 4
    assert room._first(sizes, (2.0, 0.4, 0.9, 0.9)) is None


def test_crossover_is_the_size_from_which_all_are_faster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fake(step: Callable[[int], None], size: int, name: str) -> float:
        return TIMES[name][size]

    monkeypatch.setattr(room, "_seconds", fake)
    found = room.measure_crossovers((8, 16, 32))
    assert {each.measured for each in found} == {16}
    assert {each.gain for each in found} == {3.0}
    assert all(each.used == NUMBA_FROM[each.primitive] for each in found)
    assert {each.measured for each in room.measure_crossovers((8,))} == {None}


@pytest.mark.parametrize("primitive", room.STEPS)
@pytest.mark.parametrize("name", ["native", "numba"])
def test_each_step_runs_in_its_backend(primitive: str, name: str) -> None:
    with watch_backends() as seen:
        assert room._seconds(room.STEPS[primitive], 64, name) > 0
    assert (primitive, name) in seen
    assert current_backend() in ("auto", "native", "numba")
