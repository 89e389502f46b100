"""Sums of neighbours' rows on every backend."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.kernels.gather_sum import gather_sum


@pytest.mark.parametrize("own", [True, False])
def test_equals_a_matrix_product(own: bool, backend: str) -> None:
    edges = torch.tensor([[0, 2, 2, 4, 1], [1, 1, 1, 0, 3]])
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    dense = torch.zeros(5, 5, dtype=torch.float64)
    for u, v in edges.t().tolist():
        dense[v, u] += 1
    if own:
        dense += torch.eye(5)
    torch.testing.assert_close(gather_sum(x, edges, 5, own=own), dense @ x)
    assert torch.autograd.gradcheck(lambda x: gather_sum(x, edges, 5, own=own), x)
    assert torch.autograd.gradgradcheck(lambda x: gather_sum(x, edges, 5, own=own), x)


def test_half_precision_is_added_up_in_float32() -> None:
    x = torch.ones(5000, 1, dtype=torch.float16)
    edges = torch.stack([torch.arange(5000), torch.zeros(5000, dtype=torch.long)])
    out = gather_sum(x, edges, 1)
    assert out.dtype == torch.float16
    assert float(out) == 5000
