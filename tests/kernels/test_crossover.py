"""Where the compiled twins start to pay."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyg_pool.kernels import crossover as room
from pyg_pool.kernels.dispatch import NUMBA_FROM, current_backend, watch_backends

TIMES = {"native": {8: 1.0, 16: 4.0, 32: 9.0}, "numba": {8: 2.0, 16: 3.0, 32: 3.0}}


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
