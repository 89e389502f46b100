"""The pairs behind a sparse product, and the blocks they are listed in."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyg_pool.kernels import product_pairs
from pyg_pool.kernels.product_pairs import (
    Problem,
    blocks,
    merge,
    pairs_of,
    sorted_rows,
    unpack,
)

ENTRIES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=9)


def problem(
    a: list[tuple[int, int]], b: list[tuple[int, int]], drop: bool = False
) -> Problem:
    index = [torch.tensor(e, dtype=torch.long).view(-1, 2).t() for e in (a, b)]
    return Problem(index[0], index[1], (4, 4, 4), drop, None)


@settings(derandomize=True, max_examples=80, deadline=None)
@given(ENTRIES, ENTRIES, st.booleans(), st.integers(1, 6))
def test_blocks_list_every_pair_once(
    a: list[tuple[int, int]], b: list[tuple[int, int]], drop: bool, limit: int
) -> None:
    task = problem(a, b, drop)
    rows = sorted_rows(task)
    wanted = [
        (i, j)
        for i, (row, v) in enumerate(a)
        for j, (w, col) in enumerate(b)
        if v == w and not (drop and row == col)
    ]
    found: list[tuple[int, int]] = []
    seen_rows: list[int] = []
    end = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(product_pairs, "BLOCK_PAIRS", limit)
        for block in blocks(task, rows):
            assert block.start == end, "blocks follow each other"
            end = block.stop
            left, right, key = pairs_of(task, rows, block)
            found += zip(left.tolist(), right.tolist(), strict=True)
            for i, j, k in zip(
                left.tolist(), right.tolist(), key.tolist(), strict=True
            ):
                assert k == a[i][0] * 4 + b[j][1]
            here = sorted({a[i][0] for i in rows.order_a[block].tolist()})
            assert not seen_rows or here[0] > seen_rows[-1], "a block ends with a row"
            listed = int(rows.pairs[block].sum())
            assert listed <= limit or len(here) == 1
            seen_rows += here
    assert end == len(a)
    assert sorted(found) == sorted(wanted)


def test_merge_sums_equal_keys() -> None:
    key, value = merge(torch.tensor([5, 2, 5]), torch.tensor([1.0, 2.0, 4.0]))
    assert (key.tolist(), value.tolist()) == ([2, 5], [2.0, 5.0])
    key, value = merge(torch.empty(0).long(), torch.empty(0))
    assert (key.numel(), value.numel()) == (0, 0)


def test_unpack_undoes_the_key() -> None:
    assert unpack(torch.tensor([0, 7, 11]), 4).tolist() == [[0, 1, 2], [0, 3, 3]]
    assert unpack(torch.empty(0).long(), 0).shape == (2, 0)
