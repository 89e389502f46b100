"""What is made of the layers, the numbers of edges, and exact shares."""

from __future__ import annotations

import pytest
import torch
from torch.nn import Linear, Module
from torch.nn.functional import cosine_similarity
from torch.testing import assert_close

from pyg_pool.core.token_gnn import edge_numbers, refine, shares

NONE = torch.empty(2, 0, dtype=torch.long)


class Times(Module):
    """Rows times a number, in its own type."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.lin = Linear(2, 2, bias=False)
        self.lin.weight.data = factor * torch.eye(2)

    def forward(self, x, edge_index, edge_attr):
        return self.lin(x)


@pytest.mark.parametrize(
    ("jk", "wanted"),
    [
        ("cat", [1.0, 2.0, 3.0, 6.0, 6.0, 12.0]),
        ("max", [6.0, 12.0]),
        ("mean", [4.5, 9.0]),
        ("last", [6.0, 12.0]),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_jumps(jk: str, wanted: list[float], dtype: torch.dtype) -> None:
    convs = [Times(3.0).to(dtype), Times(2.0).to(dtype)]
    out = refine(convs, torch.tensor([[1.0, 2.0]]), NONE, torch.empty(0, 1), jk=jk)
    assert out.tolist() == [wanted]


def test_dropout_is_behind_each_layer() -> None:
    x = torch.ones(500, 2)
    out = refine([Times(1.0)], x, NONE, torch.empty(0, 1), dropout=0.5)
    assert set(out[:, 2:].flatten().tolist()) == {0.0, 2.0}
    assert (out[:, :2] == 1).all()


def test_edge_numbers() -> None:
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    edges = torch.tensor([[0, 1, 2], [3, 1, 4]])
    ones = edge_numbers(x, edges)
    assert ones.tolist() == [[1.0]] * 3
    assert ones.stride(0) == 0
    cosine = edge_numbers(x, edges, "cosine")
    assert_close(cosine[:, 0], cosine_similarity(x[edges[0]], x[edges[1]]))
    (grad,) = torch.autograd.grad(cosine.square().sum(), x)
    assert grad.abs().max() > 0


def test_shares_are_a_softmax_with_its_gradient() -> None:
    index = torch.tensor([1, 0, 1, 1])
    score = torch.randn(4, dtype=torch.float64, requires_grad=True)
    weight = shares(score, index, 3)
    assert_close(weight[index == 1], score[index == 1].softmax(0))

    def run(score: torch.Tensor) -> torch.Tensor:
        return shares(score, index, 3)

    assert torch.autograd.gradcheck(run, score)
    assert torch.autograd.gradgradcheck(run, score)


def test_equal_gradients_of_any_size_leave_the_scores_still() -> None:
    score = torch.tensor([0.1, 0.7, -0.3], requires_grad=True)
    (shares(score, torch.zeros(3).long(), 1) * 1e30).sum().backward()
    assert score.grad.abs().max() == 0.0
