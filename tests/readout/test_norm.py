"""The norm as a function."""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from pyg_pool.readout import GNPAggregation, gnp

INDEX = torch.tensor([2, 0, 0, 2])


def test_numbers_and_tensors_as_exponents() -> None:
    x = torch.randn(4, 2)
    wanted = gnp(x, 2.0, 0.5, INDEX, dim_size=3)
    rows = torch.tensor([2.0, 2.0]), torch.tensor(0.5)
    assert_close(gnp(x, *rows, INDEX, dim_size=3), wanted)
    assert_close(gnp(x, 2, 0.5, ptr=torch.tensor([0, 1, 4])), gnp(x, 2.0, 0.5, (
        torch.tensor([0, 1, 1, 1])
    )))  # fmt: skip
    own = gnp(x, torch.tensor([2.0, -1.0]), 0.5, INDEX, dim_size=3)
    assert_close(own[:, :1], wanted[:, :1])
    assert_close(own[:, 1], gnp(x, -1.0, 0.5, INDEX, dim_size=3)[:, 1])


def test_equals_the_module() -> None:
    x = torch.randn(3, 4, 2, dtype=torch.double)
    readout = GNPAggregation(mode="pos", p=2.5, q=0.3, negative="split").double()
    found = gnp(x, readout.p[0], readout.q[0], INDEX, dim_size=3, negative="split")
    assert_close(found, readout(x, INDEX, dim_size=3))
    assert found.shape == (3, 3, 2)


def test_gradients_reach_the_exponents() -> None:
    p = torch.tensor(1.5, requires_grad=True)
    q = torch.tensor([0.2, 0.1], requires_grad=True)
    gnp(torch.rand(4, 2), p, q).sum().backward()
    assert p.grad is not None
    assert q.grad is not None
    assert p.grad < 0, "a larger p gives a smaller norm"
    assert (q.grad < 0).all()


@pytest.mark.parametrize("p", [1e-3, -1e-3])
def test_means_with_small_exponents_near_the_geometric_mean(p: float) -> None:
    x = torch.tensor([[1.0], [5.0]], dtype=torch.double)
    assert gnp(x, p, 1 / p).item() == pytest.approx(math.sqrt(5), rel=1e-3)


def test_half_precision() -> None:
    x = torch.full((1000, 1), 300.0, dtype=torch.float16)
    out = gnp(x, 2.0, 0.5)
    assert out.dtype == torch.float16
    assert out.item() == pytest.approx(300, rel=0.01)


def test_zero_is_refused() -> None:
    with pytest.raises(ValueError, match=r"gnp got p=0, expected .* take p=0.05"):
        gnp(torch.ones(2, 2), 0)
