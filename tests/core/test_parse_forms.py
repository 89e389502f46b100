"""Attributes that are scored and attributes of coarse edges."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.core.parse_forms import coarse_attr, scored_attr

PLACE = torch.tensor([0, 2, 0, 1])  # two coarse edges; the second edge is inside


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ("binary", [1.0, 1.0]),
        ("count", [2.0, 1.0]),
        ("sum", [4.0, 4.0]),
        ("mean", [2.0, 4.0]),
        ("max", [3.0, 4.0]),
    ],
)
def test_coarse_attributes(how, wanted) -> None:
    attr = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert coarse_attr(attr, PLACE, 2, how).tolist() == wanted
    column = coarse_attr(attr.view(-1, 1), PLACE, 2, how)
    assert column.tolist() == [[each] for each in wanted]
    if how == "count":
        assert coarse_attr(None, PLACE, 2, how).tolist() == wanted
    else:
        assert coarse_attr(None, PLACE, 2, how) is None
    if how in ("binary", "count"):
        with pytest.raises(ValueError, match=r"\[4, 3\], expected \[E\] or \[E, 1\]"):
            coarse_attr(torch.ones(4, 3), PLACE, 2, how)


def test_scored_attributes() -> None:
    assert scored_attr(torch.ones(4), None) is None
    assert scored_attr(torch.ones(4), 1).shape == (4, 1)
    assert scored_attr(torch.ones(4, 2), 2).shape == (4, 2)
    for wrong in (None, torch.ones(4), torch.ones(4, 3)):
        with pytest.raises(ValueError, match=r"expected \[E, 2\] with edge_channels=2"):
            scored_attr(wrong, 2)
