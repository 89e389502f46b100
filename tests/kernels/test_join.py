"""Pairs with equal keys against two loops."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyg_pool.kernels.join import join

KEYS = st.lists(st.integers(0, 4), max_size=7)


@settings(derandomize=True, max_examples=80, deadline=None)
@given(KEYS, KEYS)
def test_equals_two_loops(left: list[int], right: list[int]) -> None:
    a, b = join(torch.tensor(left).long(), torch.tensor(right).long(), 5)
    wanted = [(i, j) for i, x in enumerate(left) for j, y in enumerate(right) if x == y]
    assert list(zip(a.tolist(), b.tolist(), strict=True)) == wanted


def test_compiled_equals_eager() -> None:
    def run(left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return join(left, right, 5)

    fast = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    for size in (4, 9):
        keys = torch.randint(0, 5, (size,)), torch.randint(0, 5, (size,))
        for got, wanted in zip(fast(*keys), run(*keys), strict=True):
            assert got.equal(wanted)
