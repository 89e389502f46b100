"""The propagation of the graph convolution, on every backend."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close
from torch_geometric.nn import GCNConv

from pyg_pool.kernels.propagate import degree_scale, propagate

PAIRS = torch.tensor([[0, 1, 1, 4], [1, 2, 4, 5]])
EDGES = torch.cat([PAIRS, PAIRS.flip(0)], dim=1)


def dense(scale: torch.Tensor) -> torch.Tensor:
    out = torch.eye(scale.numel(), dtype=scale.dtype)
    out[tuple(EDGES)] = 1.0
    return scale[:, None] * out * scale


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_equals_the_dense_product(dtype: torch.dtype, backend: str) -> None:
    scale = torch.rand(7, dtype=torch.float64)
    x = torch.randn(7, 5, dtype=torch.float64)
    wide = torch.promote_types(dtype, torch.float32)
    found = propagate(x.to(dtype), EDGES, scale.to(wide))
    assert found.dtype == dtype
    limit = {torch.float64: 1e-12, torch.float32: 1e-6, torch.bfloat16: 3e-2}[dtype]
    assert_close(found.double(), dense(scale) @ x, atol=limit, rtol=limit)


def test_equals_pygs_convolution(backend: str) -> None:
    conv = GCNConv(5, 4).double()
    x = torch.randn(7, 5).double()
    scale = degree_scale(EDGES, 7, torch.float64)
    found = propagate(conv.lin(x), EDGES, scale) + conv.bias
    assert_close(found, conv(x, EDGES))


def test_gradients(backend: str) -> None:
    x = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    scale = degree_scale(EDGES, 7, torch.float64)
    assert gradcheck(lambda x: propagate(x, EDGES, scale), (x,))
    assert gradgradcheck(lambda x: propagate(x, EDGES, scale), (x,))
    rows = x.t().contiguous().t()  # not contiguous
    assert_close(propagate(rows, EDGES, scale), dense(scale) @ x)


def test_nothing_to_do(backend: str) -> None:
    none = EDGES[:, :0]
    assert propagate(torch.zeros(0, 3), none, torch.zeros(0)).shape == (0, 3)
    x = torch.randn(4, 2)
    assert_close(propagate(x, none, degree_scale(none, 4, x.dtype)), x)
