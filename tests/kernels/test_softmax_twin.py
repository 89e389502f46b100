"""The compiled CPU twin of the softmax and of one column of it."""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from pyg_pool.kernels import segment_softmax, use_backend
from pyg_pool.kernels import softmax_twin as room

INDEX = torch.cat([torch.zeros(70), torch.arange(60) % 3, torch.full((5,), 4)]).long()


def scores_of(width: int) -> torch.Tensor:
    scores = 20 * torch.randn(INDEX.numel(), width, generator=torch.manual_seed(3))
    scores[INDEX == 2] = -math.inf
    scores[-1] = 1e30
    return scores


@pytest.mark.parametrize("width", [1, 2, 40])
def test_weights_are_those_of_float64(width: int) -> None:
    scores = scores_of(width)
    found = room.softmax_of(scores, INDEX, 6, "test")
    with use_backend("native"):
        wanted = segment_softmax(scores.double(), INDEX, dim_size=6).float()
    assert_close(found, wanted, rtol=1e-5, atol=1e-7)
    assert not found[INDEX == 2].any()


def test_a_column_is_as_it_is_beside_others() -> None:
    scores = scores_of(1)
    scores[3], scores[75] = math.nan, math.inf
    alone = room.softmax_of(scores, INDEX, 6, "test")
    beside = room.softmax_of(scores.expand(-1, 3).contiguous(), INDEX, 6, "test")
    assert_close(alone, beside[:, 1:2], equal_nan=True)
    assert alone[INDEX == 0].isnan().all()
    assert not alone[INDEX == 4].isnan().any()


@pytest.mark.parametrize("width", [1, 3])
def test_rows_outside_all_segments_are_explained(width: int) -> None:
    for index in (torch.tensor([0, 2]), torch.tensor([-1, 0])):
        with pytest.raises(IndexError, match=r"test got segments .* expected 0 to 1"):
            room.softmax_of(torch.ones(2, width), index, 2, "test")


def test_logsumexp_and_slopes_by_hand() -> None:
    index, rows = torch.tensor([1, 1]), torch.tensor([[0.0], [math.log(3.0)]])
    top, total = room.powers_of(rows, index, 2, "test")
    assert_close(top, torch.tensor([[-math.inf], [math.log(3.0)]]))
    assert_close(total, torch.tensor([[0.0], [4 / 3]]))
    weight = room.weights_of(rows, index, top, total)
    assert_close(weight, torch.tensor([[0.25], [0.75]]))
    slope = room.softmax_slope(weight, torch.tensor([[1.0], [0.0]]), index, 2)
    assert_close(slope, torch.tensor([[0.1875], [-0.1875]]))
