"""Sums of normalised rows, on every backend."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.nn.functional import layer_norm
from torch.testing import assert_close

from pyg_pool.kernels.norm_sum import norm_sum

GROUP = torch.tensor([2, 0, 2, 2, 0])


def given(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    parts = (torch.randn(5, 6) + 3, torch.rand(6), torch.randn(6))
    return tuple(part.to(dtype).requires_grad_() for part in parts)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_equals_norm_then_sum(dtype: torch.dtype, backend: str) -> None:
    x, scale, shift = given(dtype)
    found = norm_sum(x, scale, shift, 1e-5, GROUP, 4)
    rows = layer_norm(x, (6,), scale, shift, 1e-5)
    wanted = torch.stack([rows[c == GROUP].sum(0) for c in range(4)])
    assert_close(found, wanted)
    assert not found[1].any()
    assert not found[3].any()
    cotangent = torch.randn_like(found)
    mine = torch.autograd.grad(found, (x, scale, shift), cotangent)
    theirs = torch.autograd.grad(wanted, (x, scale, shift), cotangent)
    assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def test_gradients(backend: str) -> None:
    parts = given(torch.float64)
    call = lambda x, scale, shift: norm_sum(x, scale, shift, 1e-5, GROUP, 3)  # noqa: E731
    assert gradcheck(call, parts)
    assert gradgradcheck(call, parts)
    fixed = [part.detach() for part in parts[1:]]
    assert gradgradcheck(lambda x: call(x, *fixed), parts[:1])


def test_nothing_to_add(backend: str) -> None:
    found = norm_sum(
        torch.zeros(0, 3), torch.ones(3), torch.ones(3), 1e-5, GROUP[:0], 2
    )
    assert found.tolist() == [[0.0] * 3] * 2
