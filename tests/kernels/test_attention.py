"""Attention over edges: sums and softmax on every backend, and their gradients."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from pyg_pool.kernels import use_backend
from pyg_pool.kernels.attention import attend, edge_softmax

EDGES = torch.tensor([[3, 0, 1, 1, 0, 2], [0, 1, 1, 3, 3, 0]])


def by_loop(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for k, (s, t) in enumerate(EDGES.t().tolist()):
        for h in range(x.size(1)):
            out[t, h] += weight[k, h] * x[s, h]
    return out


def test_sum_is_that_of_a_loop(backend: str) -> None:
    x, weight = torch.randn(4, 2, 3).double(), torch.randn(6, 2).double()
    torch.testing.assert_close(attend(x, weight, EDGES), by_loop(x, weight))


def test_softmax_is_that_of_each_target(backend: str) -> None:
    score = torch.randn(6, 2, dtype=torch.double)
    score[0, 0] = score[5, 0] = -torch.inf  # nothing is left for target 0
    out = edge_softmax(score, EDGES[1], 4)
    for target in range(4):
        rows = (EDGES[1] == target).nonzero().view(-1)
        if rows.numel() and target > 0:
            torch.testing.assert_close(out[rows], score[rows].softmax(0))
    assert out[[0, 5], 0].tolist() == [0.0, 0.0]
    score[1, 1] = torch.nan
    out = edge_softmax(score, EDGES[1], 4)
    assert out[1:3, 1].isnan().all()
    assert not out[[0, 3, 4, 5], 1].isnan().any()


def test_gradients(backend: str) -> None:
    x = torch.randn(4, 2, 3, dtype=torch.double, requires_grad=True)
    score = torch.randn(6, 2, dtype=torch.double, requires_grad=True)

    def both(x: torch.Tensor, score: torch.Tensor) -> torch.Tensor:
        return attend(x, edge_softmax(score, EDGES[1], 4), EDGES)

    assert gradcheck(both, (x, score))
    assert gradgradcheck(both, (x, score))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_sums_in_float32(dtype: torch.dtype, backend: str) -> None:
    x = torch.full((2, 1, 1), 1.0, dtype=dtype)
    edges = torch.zeros(2, 4000, dtype=torch.long)
    assert float(attend(x, torch.ones(4000, 1, dtype=dtype), edges)[0]) > 3900
    score = torch.zeros(4000, 1, dtype=dtype)
    share = edge_softmax(score, edges[1], 2)
    assert share.dtype == dtype
    assert float(share[0]) == pytest.approx(1 / 4000, rel=0.01)


def test_nothing_to_sum(backend: str) -> None:
    none = torch.empty(2, 0, dtype=torch.long)
    assert attend(torch.ones(3, 1, 2), torch.ones(0, 1), none).sum() == 0
    assert attend(torch.ones(0, 1, 2), torch.ones(0, 1), none, 0).shape == (0, 1, 2)
    assert edge_softmax(torch.ones(0, 2), none[1], 0).shape == (0, 2)


def test_wrong_shapes() -> None:
    with pytest.raises(ValueError, match="split the rows into heads"):
        attend(torch.ones(3, 2), torch.ones(6, 2), EDGES)
    with pytest.raises(ValueError, match="ids in 0"):
        attend(torch.ones(3, 1, 1), torch.ones(6, 1), EDGES)


def test_memory_holds_no_row_per_edge() -> None:
    x = torch.randn(4, 2, 64, requires_grad=True)
    kept: list[int] = []
    edges = torch.randint(4, (2, 5000))
    weight = torch.rand(5000, 2, requires_grad=True)
    with (
        use_backend("numba"),
        torch.autograd.graph.saved_tensors_hooks(
            lambda t: kept.append(t.numel()) or t, lambda t: t
        ),
    ):
        attend(x, weight, edges)
    assert max(kept) <= 2 * 5000
