"""Bounded clusters against a slow walk through the links, best first."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.kernels import use_backend
from pyg_pool.kernels.parse import dominant_links, link_components
from pyg_pool.kernels.parse_bounded import bounded_components


def random_pairs(seed: int, levels: int | None):
    chance = torch.Generator().manual_seed(seed)
    ends = torch.combinations(torch.arange(20)).t()
    pairs = ends[:, torch.rand(ends.size(1), generator=chance) < 0.15]
    if levels is None:
        score = torch.rand(pairs.size(1), generator=chance)
    else:
        score = torch.randint(levels, (pairs.size(1),), generator=chance).float()
    return pairs, score, dominant_links(pairs, score, 20, both_ways=True)


def slow(link, pairs, score, most):
    worth = dict(zip(map(tuple, pairs.t().tolist()), score.tolist(), strict=True))
    steps = [
        (-worth[min(u, v), max(u, v)], u, v)
        for u, v in enumerate(link.tolist())
        if u != v
    ]
    groups = [{u} for u in range(link.numel())]
    for _, u, v in sorted(steps):
        a = next(g for g in groups if u in g)
        b = next(g for g in groups if v in g)
        if a is not b and len(a) + len(b) <= most:
            groups.remove(b)
            a |= b
    groups = sorted(map(sorted, groups))
    number = {u: k for k, group in enumerate(groups) for u in group}
    return [number[u] for u in range(link.numel())]


@pytest.mark.parametrize("levels", [2, None])
@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_equals_the_slow_walk(most: int, levels: int | None, backend: str) -> None:
    for seed in range(20):
        pairs, score, link = random_pairs(seed, levels)
        group, count = bounded_components(link, pairs, score, most)
        assert group.tolist() == slow(link, pairs, score, most)
        assert count == int(group.max()) + 1
        assert int(torch.bincount(group).max()) <= most


def test_large_bound_changes_nothing(backend: str) -> None:
    pairs, score, link = random_pairs(0, None)
    group, count = bounded_components(link, pairs, score, 20)
    wanted, number = link_components(link)
    assert torch.equal(group, wanted)
    assert count == number
    nothing = link[:0]
    assert bounded_components(nothing, pairs[:, :0], score[:0], 2)[0].shape == (0,)


def test_a_long_path() -> None:
    nodes = torch.arange(2**16 - 1)
    path = torch.stack([nodes, nodes + 1])
    score = nodes.double()
    with use_backend("numba"):
        link = dominant_links(path, score, 2**16, both_ways=True)
        group, count = bounded_components(link, path, score, 4)
    assert count == 2**14
    assert torch.equal(torch.bincount(group), torch.full((2**14,), 4))
