"""The fused sum over groups against torch's layers, with all gradients."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import layer_norm, linear
from torch.testing import assert_close

from pyg_pool.kernels import use_backend
from pyg_pool.kernels.deepsets import deepsets

BACKENDS = pytest.mark.parametrize("backend", ["native", "numba"])
GROUP = torch.tensor([0, 2, 2, 0, 1, 4, 4, 4])  # nobody is in group 3


def layers(width, dtype):
    torch.manual_seed(0)
    for _ in range(2):
        made = [torch.randn(width, width) * 0.5, *torch.randn(3, width)]
        yield (*(each.to(dtype).requires_grad_() for each in made), 1e-5)


def plain(x, first, second, group, size, factor):
    def layer(rows, weight, bias, scale, shift, eps):
        rows = rows + linear(rows, weight, bias)
        return layer_norm(rows, rows.shape[-1:], scale, shift, eps)

    rows = layer(x, *first)
    total = rows.new_zeros(size, rows.size(1)).index_add(0, group, rows)
    out = layer(total, *second)
    return out if factor is None else out * factor[:, None]


@BACKENDS
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("has_factor", [True, False])
def test_is_what_the_layers_give(has_factor, dtype, backend):
    first, second = layers(6, dtype)
    x = torch.randn(8, 6, dtype=dtype, requires_grad=True)
    factor = torch.rand(5, dtype=dtype).requires_grad_() if has_factor else None
    leaves = [x, *first[:4], *second[:4], *([factor] if has_factor else [])]
    found = {}
    for name, run in (("ours", deepsets), ("plain", plain)):
        with use_backend(backend):
            out = run(x, first, second, GROUP, 5, factor)
            loss = (out * torch.arange(30).view(5, 6)).sum()
            found[name] = [out, *torch.autograd.grad(loss, leaves)]
    close = {"rtol": 1e-4, "atol": 1e-3} if dtype == torch.float32 else {}
    for ours, other in zip(found["ours"], found["plain"], strict=True):
        assert_close(ours, other, **close)


@BACKENDS
def test_second_derivatives(backend):
    first, second = layers(3, torch.float64)
    x = torch.randn(8, 3, dtype=torch.float64, requires_grad=True)
    factor = torch.rand(5, dtype=torch.float64).requires_grad_()

    def call(x, weight, factor):
        return deepsets(x, (weight, *first[1:]), second, GROUP, 5, factor)

    with use_backend(backend):
        assert torch.autograd.gradcheck(call, (x, first[0], factor))
        assert torch.autograd.gradgradcheck(call, (x, first[0], factor))


@BACKENDS
def test_no_rows_and_rows_without_gradient(backend):
    first, second = layers(4, torch.float32)
    none = torch.empty(0, dtype=torch.int64)
    with use_backend(backend):
        assert deepsets(torch.empty(0, 4), first, second, none, 0).shape == (0, 4)
        out = deepsets(torch.randn(8, 4), first, second, GROUP, 5)
        out.sum().backward()
    assert first[0].grad.abs().sum() > 0


@BACKENDS
def test_half_precision_takes_the_layers(backend):
    first, second = layers(4, torch.bfloat16)
    with use_backend(backend):
        out = deepsets(torch.randn(8, 4).bfloat16(), first, second, GROUP, 5)
    assert out.dtype == torch.bfloat16
    assert out.isfinite().all()
