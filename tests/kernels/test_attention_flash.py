"""Attention by torch's kernel beside the padded form, for each kind of group."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from pyg_pool.kernels import attention_flash, use_backend
from pyg_pool.kernels.attention_blocks import LARGE
from pyg_pool.kernels.attention_flash import (
    flash_backward,
    flash_blocks,
    flash_forward,
    takes_flash,
)
from pyg_pool.kernels.attention_native import (
    AttentionGroups,
    blocks_of,
    native_backward,
    native_forward,
)
from pyg_pool.kernels.group_attention import self_attention

SIZES = torch.tensor([3, LARGE + 9, 0, 1, 20, LARGE + 40])


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("factor", [[0.5] * 6, [0.5, 0.25, 1.0, 3.0, 0.5, 7.0]])
def test_like_the_padded_form(factor: list[float], is_sorted: bool) -> None:
    index = torch.repeat_interleave(torch.arange(6), SIZES)
    index = index if is_sorted else index[torch.randperm(len(index))]
    given = AttentionGroups(index, index, 6, torch.tensor(factor).double(), 2)
    qkv = torch.randn(len(index), 12).double()
    parts, grad = qkv.chunk(3, 1), torch.randn(len(index), 4).double()
    blocks = flash_blocks(given)
    assert sum(len(b.groups) == 1 and b.query.size(1) > LARGE for b in blocks) >= 2
    wanted = native_forward(*parts, given, blocks_of(given))
    slopes = native_backward(*parts, grad, given, blocks_of(given))
    for given_parts in ([qkv], parts):
        out, kept = flash_forward(given_parts, given, blocks)
        assert_close(out, wanted)
        found = flash_backward(given_parts, grad, out, kept, given, blocks)
        assert_close(torch.cat(found, 1), torch.cat(slopes, 1))


def test_more_keys_than_queries() -> None:
    key = torch.repeat_interleave(torch.arange(6), SIZES)
    query = torch.tensor([5, 1, 1, 4, 2])
    given = AttentionGroups(query, key, 6, torch.full((6,), 0.3), 1)
    q, k, v = (torch.randn(n, 4) for n in (5, len(key), len(key)))
    out, _ = flash_forward([q, k, v], given, flash_blocks(given))
    assert (out[4] == 0).all(), "the group has no key"
    assert_close(out, native_forward(q, k, v, given, blocks_of(given)))


def test_who_takes_it() -> None:
    index, x = torch.zeros(2, dtype=torch.long), torch.ones(2, 4)
    given = AttentionGroups(index, index, 1, torch.ones(1))
    assert takes_flash(x, given)
    assert not takes_flash(x.half(), given)
    dropped = AttentionGroups(index, index, 1, torch.ones(1), dropout=0.5)
    assert not takes_flash(x, dropped)
    with use_backend("native"):
        assert not takes_flash(x, given)


@pytest.mark.parametrize("missing", ["", "_backward"])
def test_torch_without_the_kernel(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = torch.repeat_interleave(torch.arange(6), SIZES)
    given = AttentionGroups(index, index, 6, torch.full((6,), 0.3).double(), 2)
    qkv = torch.randn(len(index), 12).double().requires_grad_()

    def results() -> list[torch.Tensor]:
        out = self_attention(qkv, given)
        return [out, *torch.autograd.grad((out * out.detach()).sum(), qkv)]

    assert takes_flash(qkv, given)
    wanted, find = results(), attention_flash.find_kernel
    gone = f"{attention_flash.NAME}{missing}"
    monkeypatch.setattr(
        attention_flash, "find_kernel", lambda n: None if n == gone else find(n)
    )
    attention_flash.kernel_pair.cache_clear()
    try:
        assert not takes_flash(qkv, given)
        for found, each in zip(results(), wanted, strict=True):
            assert_close(found, each)
    finally:
        monkeypatch.undo()
        attention_flash.kernel_pair.cache_clear()


def test_kernels_of_another_form_are_not_taken() -> None:
    assert attention_flash.find_kernel("no_such_kernel") is None
    assert attention_flash.find_kernel("mm") is None
    assert attention_flash.find_kernel(attention_flash.NAME) is not None
