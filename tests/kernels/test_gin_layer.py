"""The recomputing layer against the layers it stands for."""

from __future__ import annotations

import torch
from torch.nn import BatchNorm1d, Linear

from pyg_pool.kernels import use_backend
from pyg_pool.kernels.gin_layer import fits_gin_layer, gin_layer


def test_equals_the_layers_with_gradients() -> None:
    torch.manual_seed(0)
    edges = torch.randint(9, (2, 25))
    x = torch.randn(9, 3, dtype=torch.float64, requires_grad=True)
    first, norm, second = Linear(3, 4), BatchNorm1d(4), Linear(4, 4)
    torch.nn.init.normal_(norm.weight)
    torch.nn.init.normal_(norm.bias)
    parts = [module.double() for module in (first, norm, second)]
    weights = [p for part in parts for p in part.parameters()]
    out, mean, var = gin_layer(
        x,
        edges,
        (first.weight, first.bias),
        (norm.weight, norm.bias, norm.eps),
        (second.weight, second.bias),
    )
    total = x.index_add(0, edges[1], x[edges[0]])
    inner = first(total)
    want = second(norm(inner).relu()).relu()
    torch.testing.assert_close(out, want)
    torch.testing.assert_close(mean, inner.mean(0))
    torch.testing.assert_close(var, inner.var(0, correction=0))
    weight = torch.randn_like(out)
    got = torch.autograd.grad((out * weight).sum(), [x, *weights])
    expected = torch.autograd.grad((want * weight).sum(), [x, *weights])
    for one, two in zip(got, expected, strict=True):
        torch.testing.assert_close(one, two)


def test_other_types_and_backends_take_the_plain_layers() -> None:
    edges, x = torch.randint(9, (2, 25)), torch.randn(9, 3)
    with use_backend("numba"):
        assert fits_gin_layer(x, edges)
        assert not fits_gin_layer(x.half(), edges)
    with use_backend("native"):
        assert not fits_gin_layer(x, edges)
