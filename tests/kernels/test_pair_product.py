"""Products of pairs against gathered rows, and their gradients."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.kernels import use_backend
from pyg_pool.kernels.pair_product import pair_product

PAIRS = torch.tensor([[0, 3, 2, 2, 4, 0], [1, 1, 2, 4, 4, 1]])
BACKENDS = pytest.mark.parametrize("backend", ["native", "numba"])


@BACKENDS
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_is_the_product_of_gathered_rows(dtype, backend):
    x = torch.randn(7, 5).to(dtype).t().contiguous().t()
    with use_backend(backend):
        found = pair_product(x, PAIRS)
        assert pair_product(x, PAIRS[:, :0]).shape == (0, 5)
    assert found.dtype == dtype
    assert torch.equal(found, x[PAIRS[0]] * x[PAIRS[1]])


@BACKENDS
def test_gradients_with_repeats_and_loops(backend):
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    with use_backend(backend):
        assert torch.autograd.gradcheck(lambda rows: pair_product(rows, PAIRS), x)
        assert torch.autograd.gradgradcheck(lambda rows: pair_product(rows, PAIRS), x)


def test_compiles_and_maps():
    compiled = torch.compile(pair_product, backend="eager", fullgraph=True)
    x = torch.randn(2, 5, 3)
    each = torch.func.vmap(pair_product, (0, None))(x, PAIRS)
    assert torch.equal(each, torch.stack([compiled(rows, PAIRS) for rows in x]))
