"""The native formulas where the doors do not reach them."""

from __future__ import annotations

import torch

from pyg_pool.kernels import use_backend
from pyg_pool.kernels.segment_native import native_extreme, segment_count


def test_count() -> None:
    assert segment_count(torch.tensor([2, 0, 2]), 4).tolist() == [1, 0, 2, 0]


def test_extreme_gives_rows_on_demand() -> None:
    x = torch.tensor([1.0, 5.0, 5.0])
    with use_backend("native"):
        best, row = native_extreme(x, torch.tensor([0, 1, 1]), 3, "max", with_rows=True)
    assert best.tolist() == [1.0, 5.0, 0.0]
    assert row.tolist() == [0, 1, 3]
