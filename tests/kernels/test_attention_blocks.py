"""Padded groups: each row once, small groups apart from large ones."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.kernels.attention_blocks import WIDTHS, attention_blocks


def test_every_query_with_a_key_occurs_once() -> None:
    query = torch.randint(9, (60,))
    key = torch.randint(7, (40,))
    seen = []
    for block in attention_blocks(query, key, 9):
        assert (query[block.query] == block.groups[:, None])[block.query_here].all()
        assert (key[block.key] == block.groups[:, None])[block.key_here].all()
        assert block.key_here.any(1).all()
        seen.append(block.query[block.query_here])
    wanted = [i for i in range(60) if (key == query[i]).any()]
    assert sorted(torch.cat(seen).tolist()) == wanted


def test_padding_is_less_than_the_group() -> None:
    sizes = torch.tensor([1, 2, 3, 5, 17, 100, 0, 1000])
    index = torch.repeat_interleave(torch.arange(8), sizes)
    for block in attention_blocks(index, index, 8):
        here = block.key_here.sum(1)
        assert (block.key.size(1) <= 1.5 * here).all()
    assert WIDTHS[:7] == [1, 2, 3, 4, 6, 8, 12]


def test_chunks_cover_the_block() -> None:
    index = torch.zeros(10, dtype=torch.long)
    (block,) = attention_blocks(index, index, 1)
    parts = [chunk.query[chunk.query_here] for chunk in block.chunks(4)]
    assert [len(part) for part in parts] == [4, 4, 2]
    assert torch.cat(parts).tolist() == list(range(10))


@pytest.mark.parametrize("size", [0, 3])
def test_nothing(size: int) -> None:
    empty = torch.zeros(0, dtype=torch.long)
    assert attention_blocks(empty, empty, size) == []
