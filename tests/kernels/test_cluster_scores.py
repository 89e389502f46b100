"""Scores inside clusters, on every backend."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

from pyg_pool.kernels.cluster_scores import cluster_scores

LINKS = torch.tensor([[0, 1, 0, 3, 5, 6], [1, 2, 4, 4, 5, 6]])
CLUSTER = torch.tensor([0, 0, 0, 1, 1, 2, 1, 3])


def logits(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return (x[LINKS[0]] * x[LINKS[1]]) @ weight + bias


def call(x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    known = logits(x, weight, bias).detach()
    return cluster_scores(x, weight, bias, LINKS, known, CLUSTER, 4)


def given() -> tuple[Tensor, Tensor, Tensor]:
    parts = (torch.randn(8, 3), torch.randn(3), torch.randn(1))
    return tuple(part.double().requires_grad_() for part in parts)


def test_means_by_hand(backend: str) -> None:
    parts = given()
    mean, count = call(*parts)
    score = logits(*parts).sigmoid()
    # Pairs count twice, loops once; (0, 4) joins two clusters; 3 has none inside.
    assert count.tolist() == [4.0, 3.0, 1.0, 1.0]
    wanted = [
        (score[0] + score[1]) / 2, (2 * score[3] + score[5]) / 3, score[4],
        torch.tensor(1.0).double(),
    ]  # fmt: skip
    assert_close(mean, torch.stack(wanted))


def test_gradients(backend: str) -> None:
    parts = given()
    assert gradcheck(lambda *p: call(*p)[0], parts)
    assert gradgradcheck(lambda *p: call(*p)[0], parts)
    mean, _ = call(parts[0], *(part.detach() for part in parts[1:]))
    (grad,) = torch.autograd.grad(mean.sum(), parts[0])
    assert not grad[7].any()
