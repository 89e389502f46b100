"""Graphs of similar rows against all pairs, and their size in memory."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.library import opcheck
from torch.nn.functional import cosine_similarity

from pyg_pool.kernels import similarity
from pyg_pool.kernels.similarity import similar_pairs, unit_rows
from pyg_pool.testing import Watch


def slow(
    x: Tensor,
    index: Tensor,
    tau: float,
    *,
    limit: int | None = None,
    window: int | None = None,
    loops: bool = True,
) -> list[tuple[int, int]]:
    """Target and source of every edge, pair by pair."""
    found = []
    for target in range(len(x)):
        group = (index == index[target]).nonzero().view(-1).tolist()
        place = group.index(target)
        others = []
        for at, source in enumerate(group):
            cosine = float(cosine_similarity(x[target], x[source], dim=0))
            near = window is None or abs(at - place) <= window
            if cosine > tau and near and source != target:
                others.append((-cosine, source))
            if cosine > tau and source == target and loops:
                found.append((target, source))
        found += [(target, source) for _, source in sorted(others)[:limit]]
    return sorted(found)


def pairs(edges: Tensor) -> list[tuple[int, int]]:
    return [(int(target), int(source)) for source, target in edges.t()]


@pytest.mark.parametrize("chunk", [None, 1, 5, 1000])
@pytest.mark.parametrize(
    "options",
    [{}, {"limit": 2}, {"window": 2}, {"limit": 3, "window": 4}, {"loops": False}],
    ids=str,
)
def test_agrees_with_all_pairs(options, chunk: int | None) -> None:
    x = torch.randn(40, 3, dtype=torch.float64)
    index = torch.randint(5, (40,)) * 2
    for tau in (-2.0, 0.0, 0.7):
        found = similar_pairs(
            x, index, 10, tau, max_neighbors=options.get("limit"),
            window=options.get("window"), self_loops=options.get("loops", True),
            chunk_size=chunk,
        )  # fmt: skip
        # Sorted by target, then source, as slow() sorts.
        assert pairs(found) == slow(x, index, tau, **options)


def test_small_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x, index = torch.randn(90, 4), torch.randint(7, (90,))
    wanted = similar_pairs(x, index, 7, 0.3)
    monkeypatch.setattr(similarity, "ENTRIES", 30)
    assert torch.equal(similar_pairs(x, index, 7, 0.3), wanted)


def test_threshold_is_strict_and_zero_rows_have_no_edges() -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0], [torch.nan, 1.0]])
    index = torch.zeros(4, dtype=torch.long)
    assert pairs(similar_pairs(x, index, 1, 0.0)) == [(0, 0), (1, 1)]
    assert similar_pairs(x[:2], index[:2], 1, -0.1).size(1) == 4
    x = torch.randn(100, 3)  # rounding takes some of them beyond 1
    assert similar_pairs(x, torch.zeros(100).long(), 1, 1.0).size(1) == 0
    assert similar_pairs(x[:0], index[:0], 3, 0.0).shape == (2, 0)
    assert similar_pairs(x[:0], index[:0], 0, 0.0).shape == (2, 0)


def test_lowest_among_ties() -> None:
    x = torch.ones(6, 2)
    edges = similar_pairs(x, torch.zeros(6).long(), 1, 0.5, max_neighbors=2)
    sources = {t: edges[0, edges[1] == t].tolist() for t in range(6)}
    assert sources[0] == [0, 1, 2]
    assert sources[1] == [0, 1, 2]
    assert sources[5] == [0, 1, 5]


@pytest.mark.parametrize("scale", [1e-30, 1e-9, 1e30])
def test_lengths_neither_vanish_nor_overflow(scale: float) -> None:
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]]) * scale
    found = unit_rows(x.requires_grad_())
    size = max(5 * scale, 1e-8)
    wanted = torch.tensor([[3 * scale / size, 4 * scale / size], [0.0, 0.0]])
    torch.testing.assert_close(found, wanted)
    (grad,) = torch.autograd.grad(found.sum(), x)
    assert grad.isfinite().all()


def test_unit_rows_gradient() -> None:
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(unit_rows, x)
    assert torch.autograd.gradgradcheck(unit_rows, x)


def test_memory_is_that_of_a_block() -> None:
    x = torch.randn(4000, 16)
    with Watch() as watch:
        edges = similar_pairs(
            x, torch.zeros(4000).long(), 1, 0.5, max_neighbors=4, chunk_size=32
        )
    assert edges.size(1) == 5 * 4000
    # All similarities would take 64 MB, rows for all pairs 1 GB.
    assert watch.largest <= 4 * 32 * 4096 * 4


def test_many_groups_take_few_steps() -> None:
    calls = []
    for number in (30, 300):
        index = torch.arange(number).repeat_interleave(torch.arange(number) % 6)
        with Watch() as watch:
            similar_pairs(torch.randn(index.numel(), 4), index, number, 0.3)
        calls.append(watch.total)
    assert calls[1] <= calls[0] + 5


def test_groups_do_not_see_each_other() -> None:
    x = torch.randn(50, 32)
    index = torch.zeros(50, dtype=torch.long)
    alone = similar_pairs(x, index, 1, 0.1)
    more = torch.cat([torch.randn(300, 32), x, torch.randn(77, 32)])
    groups = torch.cat([torch.arange(300) % 9 + 1, index, torch.full((77,), 12)])
    found = similar_pairs(more, groups, 13, 0.1)
    mine = found[:, groups[found[1]] == 0] - 300
    assert torch.equal(mine, alone)


def test_operation_of_traced_graphs_keeps_torch_s_rules() -> None:
    x, index = torch.randn(9, 3), torch.arange(9) // 4
    given = x, index, 3, 0.2, 2, None, None, True
    opcheck(similarity._pairs_op, given)
    wanted = similar_pairs(x, index, 3, 0.2, max_neighbors=2)
    assert torch.equal(similarity._pairs_op(*given), wanted)
