"""Norms of groups along any dimension, and the rule for negative numbers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from torch_geometric import set_debug

from pyg_pool.kernels import segment_pnorm
from pyg_pool.kernels.group_pnorm import NEGATIVES, group_pnorm

INDEX = torch.tensor([2, 0, 0, 2, 1])
P = torch.tensor([[2.0, 3.0, 1.5], [-1.0, -2.0, -0.5]])


def norms(x: Tensor, dim: int, negative: str = "abs", p: Tensor = P) -> Tensor:
    groups = INDEX, None, 3, dim
    return group_pnorm("Own", x, p, 0 * p, groups, eps=0.1, negative=negative)


@pytest.mark.parametrize("p", [P, P[:, :1]])
@pytest.mark.parametrize("dim", [1, -2, 0])
def test_each_slice_has_its_own_norms(dim: int, p: Tensor, backend: str) -> None:
    x = torch.randn(4, 5, 3, dtype=torch.double)
    moved = x.transpose(0, 1) if dim == 0 else x
    found = norms(moved, dim, p=p)
    for i, slice_ in enumerate(x):
        wanted = segment_pnorm(slice_, p, 0 * p, INDEX, dim_size=3, eps=0.1)
        assert_close(found[:, :, i] if dim == 0 else found[:, i], wanted)


@pytest.mark.parametrize("negative", NEGATIVES)
def test_negative_numbers(negative: str, backend: str) -> None:
    x = torch.randn(5, 3, dtype=torch.double)
    x = x.abs() if negative == "error" else x
    upper, lower = x.clamp(min=0), (-x).clamp(min=0)
    wanted = {
        "abs": lambda: norms(x.abs(), 0),
        "error": lambda: norms(x, 0),
        "relu": lambda: norms(upper, 0),
        "split": lambda: norms(upper, 0) - norms(lower, 0),
    }[negative]()
    assert_close(norms(x, 0, negative), wanted)


def test_refused_numbers_are_seen() -> None:
    with pytest.raises(ValueError, match=r"Own got x with numbers down to -2, expect"):
        norms(torch.full((5, 3), -2.0), 0, "error")


def test_accelerators_look_at_values_in_debug_mode_only() -> None:
    x = torch.full((5, 3), -2.0, device="meta")
    groups = INDEX.to("meta"), None, 3, 0
    p = P.to("meta")
    out = group_pnorm("Own", x, p, p, groups, eps=0.1, negative="error")
    assert out.shape == (2, 3, 3)
    set_debug(True)
    try:
        with pytest.raises(RuntimeError, match="meta"):
            group_pnorm("Own", x, p, p, groups, eps=0.1, negative="error")
    finally:
        set_debug(False)


@pytest.mark.parametrize(
    ("x", "dim"),
    [
        (torch.ones(5, 3), 1),
        (torch.ones(5), 0),
        (torch.ones(5, 4), 0),
        (torch.ones(5, 3, dtype=torch.long), 0),
    ],
)
def test_elements_are_checked(x: Tensor, dim: int) -> None:
    with pytest.raises(ValueError, match=r"Own got x of shape .* expected floats of"):
        norms(x, dim)


def test_rule_is_checked() -> None:
    with pytest.raises(ValueError, match=r"Own got negative='drop', expected one of"):
        norms(torch.ones(5, 3), 0, "drop")


def test_no_elements() -> None:
    groups = torch.empty(0, dtype=torch.long), None, 2, -2
    out = group_pnorm("Own", torch.ones(4, 0, 3), P, P, groups, eps=0.1, negative="abs")
    assert out.shape == (2, 4, 2, 3)
    assert (out == 0).all()
