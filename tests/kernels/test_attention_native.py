"""The padded form of attention inside groups."""

from __future__ import annotations

import torch
from torch.testing import assert_close

from pyg_pool.kernels.attention_native import (
    AttentionGroups,
    blocks_of,
    native_backward,
    native_forward,
    slope_limit,
)

QUERY = torch.tensor([1, 0, 1, 1, 0])
KEY = torch.tensor([0, 1, 1])


def test_gradients_in_closed_form_are_those_of_the_formula() -> None:
    given = AttentionGroups(QUERY, KEY, 2, torch.rand(2).double(), 2, chunk_size=2)
    q, k, v = (torch.randn(n, 4).double().requires_grad_() for n in (5, 3, 3))
    blocks = blocks_of(given)
    out = native_forward(q, k, v, given, blocks)
    cotangent = torch.randn_like(out)
    wanted = torch.autograd.grad(out, (q, k, v), cotangent)
    with torch.no_grad():
        found = native_backward(q, k, v, cotangent, given, blocks)
    for grad, reference in zip(found, wanted, strict=True):
        assert_close(grad, reference)


def test_no_chunk_holds_more_weights_than_asked_for() -> None:
    index = torch.zeros(64, dtype=torch.long)
    sizes = []
    softmax = torch.Tensor.softmax

    def noted(x: torch.Tensor, dim: int) -> torch.Tensor:
        sizes.append(x.numel())
        return softmax(x, dim)

    given = AttentionGroups(index, index, 1, torch.ones(1), heads=4, chunk_size=16)
    q, k, v = torch.randn(3, 64, 8)
    torch.Tensor.softmax = noted  # type: ignore[method-assign,assignment]
    try:
        native_forward(q, k, v, given, blocks_of(given))
    finally:
        torch.Tensor.softmax = softmax  # type: ignore[method-assign]
    assert max(sizes) == 64 * 16


def test_slopes_are_cut_far_beyond_what_is_met() -> None:
    assert 1e15 < slope_limit(torch.float32) < 1e16
    assert slope_limit(torch.float64) > 1e100
