"""Sums of products of joined rows on every backend."""

from __future__ import annotations

import torch

from pyg_pool.kernels.join_product import join_product


def test_equals_loops_with_gradients(backend: str) -> None:
    triples = torch.tensor([[2, 0, 0, 2], [1, 0, 1, 1], [0, 2, 2, 3]])
    a = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    b = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    want = torch.zeros(3, 3, dtype=torch.float64)
    for p, i, j in triples.t().tolist():
        want[p] += a[i] * b[j]
    torch.testing.assert_close(join_product(a, b, triples, 3), want)
    assert torch.autograd.gradcheck(lambda a, b: join_product(a, b, triples, 3), (a, b))
    assert torch.autograd.gradgradcheck(
        lambda a, b: join_product(a, b, triples, 3), (a, b)
    )


def test_half_precision() -> None:
    rows = torch.ones(3000, 1, dtype=torch.float16)
    ids = torch.arange(3000)
    out = join_product(rows, rows, torch.stack([ids * 0, ids, ids]), 1)
    assert float(out) == 3000
