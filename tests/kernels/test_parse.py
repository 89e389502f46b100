"""Dominant links and their components, on every backend."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyg_pool.kernels import connected_components, use_backend
from pyg_pool.kernels.parse import dominant_links, link_components, parse
from pyg_pool.testing import Watch, as_on_device

PATH = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
NAN, INF = float("nan"), float("inf")


def best_neighbour(edges: Tensor, score: Tensor, size: int) -> list[int]:
    """Node by node: the best edge, the lowest neighbour among equals."""
    out = []
    for node in range(size):
        found = [
            (-float(s), int(v))
            for u, v, s in zip(*edges.tolist(), score.tolist(), strict=True)
            if u == node and v != node and s == s
        ]
        out.append(min(found)[1] if found else node)
    return out


@settings(max_examples=60)
@given(st.integers(1, 12), st.integers(0, 30), st.integers(1, 5), st.integers(0, 999))
def test_equals_a_loop(size: int, edges: int, levels: int, seed: int) -> None:
    chance = torch.Generator().manual_seed(seed)
    index = torch.randint(size, (2, edges), generator=chance)
    score = torch.randint(levels, (edges,), generator=chance).float()
    score = score.masked_fill(torch.rand(edges, generator=chance) < 0.1, NAN)
    both = torch.cat([index, index.flip(0)], 1)
    for name in ("native", "numba"):
        with use_backend(name):
            link = dominant_links(index, score, size)
            assert link.tolist() == best_neighbour(index, score, size)
            twice = dominant_links(index, score, size, both_ways=True)
            wanted = dominant_links(both, torch.cat([score, score]), size)
            assert torch.equal(twice, wanted)
            group, count = link_components(link)
        joined = torch.stack([torch.arange(size), link])
        assert torch.equal(group, connected_components(joined, size))
        assert count == int(group.max()) + 1


@pytest.mark.parametrize(
    ("score", "loops", "wanted"),
    [
        ([1, 1, 2, 2, 3, 3], None, [1, 2, 3, 2]),
        ([2, 2, 2, 2, 2, 2], None, [1, 0, 1, 2]),
        ([2, 2, 2, 2, 2, 2], [3, 2, NAN, 2], [0, 0, 1, 2]),
        ([NAN, NAN, 2, 2, NAN, NAN], None, [0, 2, 1, 3]),
        ([-INF, -INF, -INF, -INF, 1, 1], None, [1, 0, 3, 2]),
        ([INF, INF, 1, 1, INF, INF], None, [1, 0, 3, 2]),
    ],
)
def test_ties_loops_and_odd_numbers(score, loops, wanted, backend: str) -> None:
    own = None if loops is None else torch.tensor(loops, dtype=torch.float64)
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        given = torch.tensor(score, dtype=torch.float64).to(dtype)
        own = None if own is None else own.to(dtype)
        assert dominant_links(PATH, given, 4, own).tolist() == wanted


def test_listed_loops_are_passed_over(backend: str) -> None:
    edges = torch.tensor([[0, 1, 0, 2], [1, 0, 0, 2]])
    link = dominant_links(edges, torch.tensor([1.0, 1.0, 9.0, 9.0]), 3)
    assert link.tolist() == [1, 0, 2]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 1000])
def test_a_long_cycle_is_one_group(size: int, backend: str) -> None:
    group, count = link_components((torch.arange(size) + 1) % max(size, 1))
    assert group.tolist() == [0] * size
    assert count == min(size, 1)


def test_a_chain_of_a_million_nodes(backend: str) -> None:
    size = 2**20
    group, count = link_components(torch.arange(1, size + 1).clamp(max=size - 1))
    assert count == 1
    assert not group.any()


def test_waits_for_nothing_and_takes_few_steps() -> None:
    link = torch.arange(1, 1001).clamp(max=999)
    score = torch.rand(6)
    with as_on_device(), Watch() as watch:
        dominant_links(PATH, score, 4, torch.rand(4))
        link_components(link)
    assert watch.reads == []
    assert watch.calls["sort"] == 0
    assert watch.total < 80


def test_parse_refuses_what_does_not_fit() -> None:
    score = torch.rand(6)
    with pytest.raises(ValueError, match=r"score of shape \[6, 1\], expected \[6\]"):
        parse(PATH, score.view(6, 1), 4)
    with pytest.raises(ValueError, match=r"loop_score of shape \[3\], expected \[4\]"):
        parse(PATH, score, 4, loop_score=torch.rand(3))
    with pytest.raises(ValueError, match=r"batch of shape \[2\], expected \[4\]"):
        parse(PATH, score, 4, torch.zeros(2).long())
    with pytest.raises(ValueError, match=r"edge \[1, 2\] between graphs \[0, 1\]"):
        parse(PATH, score, 4, torch.tensor([0, 0, 1, 1]))
    with pytest.raises(ValueError, match=r"node ids 0 to 3 for 3 nodes"):
        parse(PATH, score, 3)
