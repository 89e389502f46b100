"""Layers run block by block against the layers they stand for."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Linear, ReLU, Sequential

from pyg_pool.kernels import use_backend
from pyg_pool.kernels.gin_stack import Block, RowPool, fits_gin_stack, gin_stack


def stack(depth: int, width: int) -> list[Sequential]:
    """MLPs with batch norms whose scale and shift are not trivial."""
    out = []
    for layer in range(depth):
        sizes = 3 if layer == 0 else width, width
        mlp = Sequential(
            Linear(*sizes), BatchNorm1d(width), ReLU(), Linear(width, width)
        )
        torch.nn.init.normal_(mlp[1].weight)
        torch.nn.init.normal_(mlp[1].bias)
        out.append(mlp.double())
    return out


def weights_of(mlps: list[Sequential]) -> list[Tensor]:
    """In the order that the stack takes."""
    return [p for mlp in mlps for part in mlp for p in part.parameters()]


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("spare", [False, True])
@pytest.mark.parametrize("needs_input_grad", [False, True])
@pytest.mark.parametrize("pooled", [None, "sum", "mean"])
def test_equals_the_layers(
    depth: int, spare: bool, needs_input_grad: bool, pooled: str | None
) -> None:
    torch.manual_seed(depth)
    mlps = stack(depth, 5)
    edges = [torch.randint(4, (2, 6)), torch.randint(5, (2, 7))]
    x = torch.randn(9, 3, dtype=torch.float64, requires_grad=needs_input_grad)
    weights = weights_of(mlps)
    blocks = [Block(0, 4, *edges[0]), Block(4, 9, *edges[1])]
    owner = torch.tensor([0, 0, 1, 1, 1, 3, 3, 3, 3])
    pool = None if pooled is None else RowPool(owner, 4, pooled == "mean")
    eps = [1e-5] * depth
    out, stats = gin_stack(x, blocks, weights, eps, spare=spare, pool=pool)
    both, want = torch.cat([edges[0], edges[1] + 4], dim=1), x
    for mlp, (mean, var) in zip(mlps, stats, strict=True):
        total = want.index_add(0, both[1], want[both[0]])
        inner = mlp[0](total)
        torch.testing.assert_close(mean, inner.mean(0))
        torch.testing.assert_close(var, inner.var(0, correction=0))
        want = mlp(total).relu()
    if pooled is not None:
        parts = [want[owner == group].sum(0) for group in range(4)]
        want = torch.stack(parts)
    if pooled == "mean":
        want = want / torch.tensor([[2.0], [3.0], [1.0], [4.0]])
    torch.testing.assert_close(out, want)
    weight, asked = torch.randn_like(want), [*weights, *([x] * needs_input_grad)]
    for _ in range(2):  # the second run finds what the first kept unharmed
        got = torch.autograd.grad((out * weight).sum(), asked, retain_graph=True)
    expected = torch.autograd.grad((want * weight).sum(), asked)
    for one, two in zip(got, expected, strict=True):
        torch.testing.assert_close(one, two)


def test_gradients_without_memory_of_their_own() -> None:
    mlps, x = stack(2, 4), torch.randn(6, 3, dtype=torch.float64)
    edges = torch.randint(6, (2, 9))
    out, _ = gin_stack(x, [Block(0, 6, *edges)], weights_of(mlps), [1e-5, 1e-5])
    got = torch.autograd.grad(out.sum(), mlps[0][0].weight)[0]
    for mlp in mlps:
        x = mlp(x.index_add(0, edges[1], x[edges[0]])).relu()
    want = torch.autograd.grad(x.sum(), mlps[0][0].weight)[0]
    torch.testing.assert_close(got, want)


def test_other_types_and_backends_take_the_plain_layers() -> None:
    x = torch.randn(9, 3)
    with use_backend("numba"):
        assert fits_gin_stack(x)
        assert not fits_gin_stack(x.half())
        assert not fits_gin_stack(x[:1])
    with use_backend("native"):
        assert not fits_gin_stack(x)
