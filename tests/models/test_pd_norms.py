"""Norms that take few rows and none."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.models.pd_norms import RowBatchNorm, RowGroupNorm, make_norm


def test_few_rows_in_training() -> None:
    norm = RowBatchNorm(3).train()
    for rows in (0, 1):
        assert norm(torch.ones(rows, 3)).isfinite().all()
    assert norm.running_mean.tolist() == [0.0, 0.0, 0.0]
    out = norm(torch.tensor([[0.0, 1, 2], [2.0, 3, 4]]))
    torch.testing.assert_close(out[0], torch.full((3,), -1.0), atol=1e-4, rtol=0)


def test_rows_are_normalised_inside_groups() -> None:
    norm = RowGroupNorm(2, 4)
    x = torch.tensor([[1.0, 3.0, 5.0, 5.0]])
    torch.testing.assert_close(
        norm(x), torch.tensor([[-1.0, 1, 0, 0]]), atol=1e-4, rtol=0
    )
    assert norm(torch.ones(0, 4)).shape == (0, 4)
    assert RowGroupNorm(4, 4)(torch.ones(1, 4)).tolist() == [[0.0] * 4]


def test_choice() -> None:
    assert isinstance(make_norm("none", 4, 2), torch.nn.Identity)
    assert isinstance(make_norm("batch", 4, 2), RowBatchNorm)
    with pytest.raises(ValueError, match="norm_groups=3"):
        make_norm("group", 4, 3)
