"""Sums over the layers of a history, beside loops."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

from pyg_pool.kernels.layer_mix import (
    History,
    group_scale,
    layer_dots,
    mixed_rows,
)

STARTS = (0, 2, 3, 6)
INDEX = torch.tensor([3, 0, 0, 1, 3])


def history(x: Tensor) -> History:
    scale = torch.tensor([1.0, 0.5, 1.0, 0.25], dtype=x.dtype)
    return History(x, STARTS, INDEX, scale)


def looped_dots(r: Tensor, given: History) -> Tensor:
    out = torch.zeros(4, 3, dtype=r.dtype)
    for i, group in enumerate(given.index.tolist()):
        for layer in range(3):
            part = slice(STARTS[layer], STARTS[layer + 1])
            product = (r[i, part] * given.x[i, part]).sum() + r[i, 6 + layer]
            out[group, layer] += given.scale[group] * product
    return out


def looped_mix(weights: Tensor, given: History) -> Tensor:
    rows = []
    for i, group in enumerate(given.index.tolist()):
        weight = weights[group] * given.scale[group]
        parts = [
            weight[layer] * given.x[i, STARTS[layer] : STARTS[layer + 1]]
            for layer in range(3)
        ]
        rows.append(torch.cat([*parts, weight]))
    return torch.stack(rows)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_like_loops(dtype: torch.dtype, backend: str) -> None:
    given = history(torch.randn(5, 6, dtype=dtype))
    r, weights = torch.randn(5, 9, dtype=dtype), torch.randn(4, 3, dtype=dtype)
    assert_close(layer_dots(r, given), looped_dots(r, given))
    unit = torch.eye(9, dtype=dtype)
    assert_close(mixed_rows(weights, given, unit), looped_mix(weights, given))


def test_derivatives(backend: str) -> None:
    x = torch.randn(5, 6, dtype=torch.float64).requires_grad_()
    r = torch.randn(5, 9, dtype=torch.float64).requires_grad_()
    weights = torch.randn(4, 3, dtype=torch.float64).requires_grad_()
    for check in (gradcheck, gradgradcheck):
        assert check(lambda r, x: layer_dots(r, history(x)), (r, x))
        maps = torch.randn(2, 9, dtype=torch.float64).requires_grad_()
        assert check(lambda w, x, m: mixed_rows(w, history(x), m), (weights, x, maps))


def test_mixed_rows_are_a_product(backend: str) -> None:
    given = history(torch.randn(5, 6))
    weights, maps = torch.randn(4, 3), torch.randn(2, 9)
    wanted = looped_mix(weights, given) @ maps.t()
    assert_close(mixed_rows(weights, given, maps), wanted)


def test_gradient_of_one_factor_only(backend: str) -> None:
    x = torch.randn(5, 6).requires_grad_()
    rows = mixed_rows(torch.ones(4, 3), history(x), torch.eye(9))
    rows[:, :6].sum().backward()
    scale = history(x).scale[INDEX].unsqueeze(-1)
    assert_close(x.grad, scale.expand(5, 6))


def test_scale_of_groups(backend: str) -> None:
    x = torch.tensor([[1.0, -2.0], [2.0**30, 0.0], [0.0, 0.0], [3.0, torch.nan]])
    scale = group_scale(x, torch.tensor([0, 1, 3, 4]), 5)
    assert scale[:4].tolist() == [1.0, 2.0**-10, 1.0, 1.0]
    assert scale[4].isnan()
    huge = group_scale(torch.tensor([[-1e30]]), torch.tensor([0]), 1)
    assert 2**18 < float(huge) * 1e30 <= 2**20
    assert (
        group_scale(x.double(), torch.tensor([0, 1, 3, 4]), 5)[:4].tolist() == [1.0] * 4
    )
