"""Memory of the readout in blocks; what it computes is compared where it is used."""

from __future__ import annotations

import torch
from torch.testing import assert_close

from pyg_pool import HistographAggregation


def test_blocks_do_not_show() -> None:
    readout = HistographAggregation(8, 16, 2)
    x = torch.randn(1400, 16)
    index = torch.arange(140).repeat_interleave(10)
    whole = readout(x, index, dim_size=140)
    assert whole.grad_fn is not None
    assert whole.grad_fn.name() == "_ReadoutBackward"
    parts = [readout(x[i : i + 10], dim_size=1) for i in range(0, 1400, 10)]
    assert_close(whole, torch.cat(parts), rtol=1e-5, atol=1e-6)
