"""Tuples by their rank, and samples of domains too large to list."""

from __future__ import annotations

import itertools

import pytest
import torch

from pyg_pool.relational import find_tuples
from pyg_pool.relational.ranks import LISTED, _choose, _unrank


@pytest.mark.parametrize("length", [1, 2, 3])
def test_ranks_follow_the_lexicographic_order(length: int) -> None:
    want = {
        "all": itertools.product(range(5), repeat=length),
        "distinct": itertools.permutations(range(5), length),
        "subset": itertools.combinations(range(5), length),
    }
    for word, rows in want.items():
        expected = [list(row) for row in rows]
        got = _unrank(torch.arange(len(expected)), 5, length, word)
        assert got.tolist() == expected, word


@pytest.mark.parametrize("domain", ["all", "distinct", "subset"])
def test_large_domains_are_not_listed(domain: str) -> None:
    edges = torch.empty((2, 0), dtype=torch.long)
    batch = torch.tensor([0] * 500 + [1] * 2 + [2] * 700)
    found = find_tuples(edges, batch, 4, domain, num_samples=50, batch_size=4)
    assert found.drawn.tolist() == [50, 16 if domain == "all" else 2, 50, 0]
    first, last = found.index[found.batch == 0], found.index[found.batch == 2]
    assert int(first.max()) < 500
    assert 502 <= int(last.min()) <= int(last.max()) < 1202
    rows = [tuple(row) for row in first.tolist()]
    assert rows == sorted(set(rows))
    if domain != "all":
        assert all(len(set(row)) == 4 for row in rows)
    assert int(found.total[0]) > 10**8


def test_choices_are_different_and_spread() -> None:
    generator = torch.Generator().manual_seed(0)
    picked = _choose(LISTED * 10, 2000, generator)
    assert torch.unique(picked).numel() == 2000
    assert abs(float(picked.float().mean()) / (LISTED * 5) - 1) < 0.05
