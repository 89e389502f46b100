"""Option words are the same for type checkers and for the code that checks them."""

from __future__ import annotations

from typing import get_args

from pyg_pool import typing
from pyg_pool.kernels import dispatch, segment
from pyg_pool.kernels.coalesce import REDUCES as EDGE_REDUCES


def test_words_agree() -> None:
    assert get_args(typing.SegmentReduce) == segment.REDUCES
    assert get_args(typing.EdgeReduce) == (*EDGE_REDUCES, "none")
    assert set(dispatch.BACKENDS) <= set(get_args(typing.Backend))
