"""The native sums behind the norms."""

from __future__ import annotations

import math

import torch
from torch.testing import assert_close

from pyg_pool.kernels.pnorm_native import log_max, native_sums


def test_sums_leave_the_largest_term_out() -> None:
    x, p = torch.tensor([[1.0], [-2.0], [2.0], [0.5]]), torch.tensor([[2.0]])
    index = torch.tensor([0, 0, 0, 2])
    top, rest, moment = native_sums(x, p, index, 3, 0.0, "abs")
    assert top.flatten().tolist() == [2.0, 0.0, 0.5]
    assert_close(rest.flatten(), torch.tensor([1.25, 0.0, 0.0]))
    wanted = 0.25 * 2 * math.log(0.5)
    assert_close(moment.flatten(), torch.tensor([wanted, 0.0, 0.0]))


def test_exponentials_below_the_cut_are_finite() -> None:
    for kind in (torch.float32, torch.float64):
        edge = torch.tensor(log_max(torch.ones(1, dtype=kind)), dtype=kind)
        assert edge.exp().isfinite()
        assert (edge + 1.01).exp().isinf()
