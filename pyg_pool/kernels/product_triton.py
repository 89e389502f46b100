"""Triton twin of ``product.py``: values and keys of all contributing pairs at once.

Pairs are sorted by torch's radix sort and summed up by the segment sums.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from pyg_pool.kernels.layout_triton import kind_of, wide
from pyg_pool.kernels.segment_triton import sums

__all__ = ["pair_products"]

BLOCK = 512


@triton.jit
def _product_kernel(
    a, b, left, right, out, length, block: tl.constexpr, kind: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = i < length
    x = tl.load(a + tl.load(left + i, inside, 0), inside, 0.0).to(kind)
    y = tl.load(b + tl.load(right + i, inside, 0), inside, 0.0).to(kind)
    tl.store(out + i, x * y, inside)


@torch.library.custom_op("pyg_pool::pair_products", mutates_args=())
def pair_products(a: Tensor, b: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Products ``a[left] * b[right]``, in float32 at least."""
    out = a.new_empty(left.numel(), dtype=wide(a))
    if out.numel() > 0:
        grid = (triton.cdiv(out.numel(), BLOCK),)
        args = [t.contiguous() for t in (a, b, left, right)]
        _product_kernel[grid](*args, out, out.numel(), BLOCK, kind_of(a))
    return out


@pair_products.register_fake
def _(a: Tensor, b: Tensor, left: Tensor, right: Tensor) -> Tensor:
    return a.new_empty(left.numel(), dtype=wide(a))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
    a, b, left, right = ctx.saved_tensors
    each = torch.arange(left.numel(), device=left.device)
    for_a = pair_products(grad, b.to(grad.dtype), each, right).unsqueeze(1)
    for_b = pair_products(grad, a.to(grad.dtype), each, left).unsqueeze(1)
    grad_a = sums(for_a, left, a.numel()).view(-1).to(a.dtype)
    grad_b = sums(for_b, right, b.numel()).view(-1).to(b.dtype)
    return grad_a, grad_b, None, None


pair_products.register_autograd(_backward, setup_context=_keep)
