"""Colours are equal exactly where rows and multisets are."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_pool.relational.colors import Colors, ExactColors, HashColors, mix, rename

ENGINES = [ExactColors(), HashColors()]


@pytest.mark.parametrize("colors", ENGINES, ids=["exact", "hash"])
@given(groups=st.lists(st.lists(st.integers(0, 2), max_size=6), max_size=12))
def test_multisets(colors: Colors, groups: list[list[int]]) -> None:
    flat = torch.tensor([c for group in groups for c in group], dtype=torch.long)
    index = torch.tensor([i for i, group in enumerate(groups) for _ in group]).long()
    order = torch.randperm(flat.numel())
    got = colors.multiset(flat[order], index[order], len(groups)).tolist()
    names = [tuple(sorted(group)) for group in groups]
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            assert (got[i] == got[j]) == (a == b)


@pytest.mark.parametrize("colors", ENGINES, ids=["exact", "hash"])
@given(rows=st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=1, max_size=20))
def test_rows(colors: Colors, rows: list[tuple[int, int, int]]) -> None:
    got = colors.combine(*torch.tensor(rows).unbind(1))
    assert colors.count(got) == len(set(rows))
    by_row: dict[tuple[int, int, int], int] = {}
    for row, color in zip(rows, got.tolist(), strict=True):
        assert by_row.setdefault(row, color) == color


def test_mixing_is_one_to_one_and_known() -> None:
    # The first numbers of SplitMix64 with seed 0 are the finaliser of its counter.
    counter = torch.tensor([0x9E3779B97F4A7C15 - 2**64])
    assert int(mix(counter)) == 0xE220A8397B1DCDAF - 2**64
    values = mix(torch.arange(-5000, 5000))
    assert torch.unique(values).numel() == 10000


def test_names_start_at_zero() -> None:
    assert rename(torch.tensor([7, -2, 7])).tolist() == [1, 0, 1]
