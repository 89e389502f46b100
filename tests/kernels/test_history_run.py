"""How groups are cut into blocks."""

from __future__ import annotations

import torch

from pyg_pool.kernels import use_backend
from pyg_pool.kernels.attention_native import AttentionGroups
from pyg_pool.kernels.group_attention_twin import twin_plan
from pyg_pool.kernels.history_run import ROWS, Block, BlockPlan
from pyg_pool.kernels.layer_mix import History


def blocks_of(sizes: list[int]) -> list[Block]:
    index = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    ones, x = torch.ones(len(sizes)), torch.rand(index.numel(), 4)
    groups = AttentionGroups(index, index, len(sizes), ones)
    with use_backend("numba"):
        twin = twin_plan(x, groups)
    assert twin is not None
    history = History(x, (0, 4), index, ones)
    return BlockPlan(history, groups, twin, lambda t: t, True, lambda *_: x).blocks()


def test_blocks_hold_whole_groups_up_to_a_number_of_rows() -> None:
    most = ROWS // 2
    assert blocks_of([0, most, 0, most, 1, 0]) == [
        Block(0, 4, 0, 2 * most),
        Block(4, 6, 2 * most, 2 * most + 1),
    ]
    assert blocks_of([3]) == [Block(0, 1, 0, 3)]
    assert blocks_of([ROWS, ROWS - 1, 1])[1] == Block(1, 3, ROWS, 2 * ROWS)
