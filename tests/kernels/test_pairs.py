"""Unordered pairs and what is computed for them, on every backend."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from pyg_pool.kernels import coalesce, pairs, use_backend
from pyg_pool.kernels.pairs import (
    distinct_pairs,
    link_scores,
    pair_logits,
    pair_numbers,
)
from pyg_pool.testing import Watch, random_batch


@settings(max_examples=60)
@given(st.integers(1, 9), st.integers(0, 30), st.booleans(), st.integers(0, 999))
def test_each_pair_once_in_order(size: int, edges: int, tidy: bool, seed: int) -> None:
    chance = torch.Generator().manual_seed(seed)
    index = torch.randint(size, (2, edges), generator=chance)
    if tidy:  # sorted, undirected, without repeats
        index = coalesce(torch.cat([index, index.flip(0)], 1), num_nodes=size)[0]
    listed = {(min(e), max(e)) for e in index.t().tolist() if e[0] != e[1]}
    for name in ("native", "numba"):
        with use_backend(name):
            found = distinct_pairs(index, size)
        assert found.shape == (2, len(listed))
        assert [tuple(pair) for pair in found.t().tolist()] == sorted(listed)
    found, number = pair_numbers(index, size)
    for (a, b), slot in zip(index.t().tolist(), number.tolist(), strict=True):
        assert (slot == -1) == (a == b)
        assert a == b or found[:, slot].tolist() == [min(a, b), max(a, b)]


@pytest.mark.parametrize(
    "columns",
    [
        [(0, 1), (1, 0), (1, 2)],
        [(0, 1), (0, 1), (1, 0)],
        [(1, 0), (0, 1)],
        [(0, 1), (1, 2), (2, 0)],
        [(1, 0), (2, 1)],
        [(0, 1), (0, 2), (1, 0), (2, 1)],
    ],
)
def test_only_tidy_lists_take_the_short_way(columns) -> None:
    from pyg_pool.kernels import pairs_numba

    edges = torch.tensor(columns).t().contiguous()
    out = np.empty((2, 9), np.int64)
    assert pairs_numba.sorted_pairs(*edges.numpy(), 3, out) == -1
    tidy = coalesce(torch.cat([edges, edges.flip(0)], 1), num_nodes=3)[0]
    size = tidy.size(1) // 2
    assert pairs_numba.sorted_pairs(*tidy.numpy(), 3, out) == size
    assert (out[0, :size] < out[1, :size]).all()
    loop = np.zeros(1, np.int64)
    assert pairs_numba.sorted_pairs(loop, loop, 3, out) == -1


def test_logits_have_gradients(backend: str) -> None:
    x = torch.randn(4, 3, dtype=torch.double, requires_grad=True)
    weight = torch.randn(3, dtype=torch.double, requires_grad=True)
    ends = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 2, 0, 1]])
    wanted = (x[ends[0]] * x[ends[1]] * weight).sum(1)
    torch.testing.assert_close(pair_logits(x, ends, weight), wanted)

    def run(x, weight):
        return pair_logits(x, ends, weight)

    assert gradcheck(run, (x, weight))
    assert gradgradcheck(run, (x, weight))
    assert pair_logits(x, ends[:, :0], weight).shape == (0,)


def test_products_are_cut_into_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_batch([50], 4)
    ends = distinct_pairs(graph.edge_index, 50)
    weight = torch.randn(4, dtype=torch.double, requires_grad=True)
    results = []
    for limit in (1 << 22, 40):
        monkeypatch.setattr(pairs, "CHUNK", limit)
        x = graph.x.clone().requires_grad_()
        with use_backend("native"), Watch() as watch:
            out = pair_logits(x, ends, weight)
            out.square().sum().backward()
        results.append((out.detach(), x.grad, weight.grad.clone()))
        weight.grad = None
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b)
    assert watch.calls["mul"] > 5


def test_scores_inside_clusters() -> None:
    edges = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 3]])
    score = torch.tensor([0.2, 0.4, 0.9, 0.9, 0.5], dtype=torch.double)
    score.requires_grad_()
    cluster = torch.tensor([0, 0, 1, 2, 3])
    mean, count = link_scores(edges, score, cluster, 4)
    torch.testing.assert_close(mean, torch.tensor([0.3, 1.0, 0.5, 1.0]).double())
    assert count.tolist() == [2, 1, 1, 1]
    times = torch.tensor([2, 1, 1, 1, 1])
    mean, count = link_scores(edges, score, cluster, 4, times=times)
    torch.testing.assert_close(mean[0], torch.tensor(0.8 / 3).double())
    assert count.tolist() == [3, 1, 1, 1]
    (grad,) = torch.autograd.grad((mean * count).sum(), score)
    assert grad.tolist() == [2, 1, 0, 0, 1]
