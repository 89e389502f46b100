"""Tuples by their rank, and samples of domains too large to list."""

from __future__ import annotations

import itertools
from typing import Any

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


@pytest.mark.parametrize("domain", ["all", "distinct", "subset"])
def test_domains_beyond_64_bits_are_sampled(domain: str) -> None:
    edges = torch.empty((2, 0), dtype=torch.long)
    generator = torch.Generator().manual_seed(1)
    batch = torch.tensor([0] * 70 + [1] * 40)
    given: dict[str, Any] = {"num_samples": 5, "generator": generator}
    found = find_tuples(edges, batch, 35, domain, **given)
    assert found.drawn.tolist() == [5, 5]
    assert found.index.shape == (10, 35)
    for rows, low, high in ((found.index[:5], 0, 70), (found.index[5:], 70, 110)):
        assert low <= int(rows.min()) <= int(rows.max()) < high
        assert rows.tolist() == sorted(rows.tolist())
        if domain != "all":
            assert all(len(set(row)) == 35 for row in rows.tolist())
        if domain == "subset":
            assert torch.equal(rows, rows.sort(1).values)
    # Few tuples hold each node equally often.
    found = find_tuples(edges, batch[:70], 20, domain, **{**given, "num_samples": 500})
    count = torch.bincount(found.index.view(-1), minlength=70).float()
    assert abs(float(count[:35].sum() / count.sum()) - 0.5) < 0.02


def test_choices_are_different_and_spread() -> None:
    generator = torch.Generator().manual_seed(0)
    picked = _choose(LISTED * 10, 2000, generator)
    assert torch.unique(picked).numel() == 2000
    assert abs(float(picked.float().mean()) / (LISTED * 5) - 1) < 0.05
