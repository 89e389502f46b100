"""Triton twin of ``topk.py``: keys in one pass, and the first rows of each graph.

The sort between the two is torch's: its radix sort is what a device has best.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["first_of_each", "sort_keys"]

BLOCK = 512


@triton.jit
def _key_kernel(bits, batch, out, length, block: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    word = tl.load(bits + i, i < length, 0)
    is_nan = (word & 0x7FFFFFFF) > 0x7F800000
    word = tl.where((word & 0x7FFFFFFF) == 0, 0, word)  # no negative zero
    up = tl.where(word < 0, word ^ 0x7FFFFFFF, word).to(tl.int64)
    down = tl.where(is_nan, 2147483647, -1 - up)
    graph = tl.load(batch + i, i < length, 0)
    tl.store(out + i, graph * 4294967296 + down + 2147483648, i < length)


@triton.jit
def _first_kernel(
    order, key, start, keep, place, out, length, block: tl.constexpr
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = i < length
    graph = tl.load(key + i, inside, 0) >> 32
    rank = i - tl.load(start + graph, inside, 0)
    kept = inside & (rank < tl.load(keep + graph, inside, 0))
    row = tl.load(order + i, inside, 0)
    tl.store(out + tl.load(place + graph, inside, 0) + rank, row, kept)


@torch.library.custom_op("pyg_pool::topk_keys", mutates_args=())
def sort_keys(score: Tensor, batch: Tensor) -> Tensor:
    """Integers in the order of graphs, then of descending scores, NaN last."""
    bits = score.detach().float().contiguous().view(torch.int32)
    out = torch.empty_like(batch, memory_format=torch.contiguous_format)
    if out.numel() > 0:
        grid = (triton.cdiv(out.numel(), BLOCK),)
        _key_kernel[grid](bits, batch.contiguous(), out, out.numel(), BLOCK)
    return out


@sort_keys.register_fake
def _(score: Tensor, batch: Tensor) -> Tensor:
    return torch.empty_like(batch, memory_format=torch.contiguous_format)


@torch.library.custom_op("pyg_pool::topk_first", mutates_args=())
def first_of_each(order: Tensor, key: Tensor, sizes: Tensor, keep: Tensor) -> Tensor:
    """The first ``keep`` rows of each graph."""
    place = keep.cumsum(0)
    out = order.new_empty(int(place[-1]) if keep.numel() > 0 else 0)
    if out.numel() > 0:
        start, place = sizes.cumsum(0) - sizes, place - keep
        grid = (triton.cdiv(order.numel(), BLOCK),)
        _first_kernel[grid](order, key, start, keep, place, out, order.numel(), BLOCK)
    return out


@first_of_each.register_fake
def _(order: Tensor, key: Tensor, sizes: Tensor, keep: Tensor) -> Tensor:
    return order.new_empty(torch.library.get_ctx().new_dynamic_size())
