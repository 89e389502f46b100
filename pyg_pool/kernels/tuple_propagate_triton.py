"""Triton twin of ``tuple_propagate.py``: a program sums up a span of pairs."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from pyg_pool.kernels.gather_sum_triton import by_target
from pyg_pool.kernels.layout_triton import blocks, kind_of
from pyg_pool.kernels.tuple_propagate import pair_ptr

__all__ = ["propagate"]


@triton.jit
def _propagate_kernel(
    x, source, edge_ptr, first, count, base, out, width, axis: tl.constexpr,
    rows: tl.constexpr, columns: tl.constexpr, kind: tl.constexpr,
):  # fmt: skip
    t = tl.program_id(0).to(tl.int64)
    other = tl.program_id(1) * rows + tl.arange(0, rows)
    f = tl.program_id(2) * columns + tl.arange(0, columns)
    p, n, start = tl.load(first + t), tl.load(count + t), tl.load(base + t)
    mask = (other < n)[:, None] & (f < width)[None, :]
    # A step of a whole row of pairs, or of a single one.
    if axis == 0:
        far, place = n, start + other
    else:
        far, place = n * 0 + 1, start + other * n
    place = place[:, None] * width + f[None, :]
    total = tl.zeros([rows, columns], kind)
    for e in range(tl.load(edge_ptr + t), tl.load(edge_ptr + t + 1)):
        shift = (tl.load(source + e) - p) * far * width
        total += tl.load(x + place + shift, mask, 0.0).to(kind)
    tl.store(out + place + (t - p) * far * width, total, mask)


@torch.library.custom_op("pyg_pool::tuple_propagate", mutates_args=())
def propagate(x: Tensor, edge_index: Tensor, ptr: Tensor, axis: int) -> Tensor:
    """Sums of the rows of the pairs an edge away."""
    x, size = x.contiguous(), ptr.diff()
    out = torch.zeros_like(x)
    if x.numel() == 0 or edge_index.numel() == 0:
        return out
    number = int(ptr[-1])
    source, edge_ptr = by_target(edge_index, number)
    each = {"output_size": number}
    first, count, base = (
        torch.repeat_interleave(t, size, **each)
        for t in (ptr[:-1], size, pair_ptr(ptr)[:-1])
    )
    width, (rows, columns) = x.size(1), blocks(x.size(1))
    grid = (
        number, triton.cdiv(int(size.max()), rows), triton.cdiv(width, columns)
    )  # fmt: skip
    _propagate_kernel[grid](
        x, source, edge_ptr, first, count, base, out, width, axis, rows, columns,
        kind_of(x),
    )  # fmt: skip
    return out


@propagate.register_fake
def _(x: Tensor, edge_index: Tensor, ptr: Tensor, axis: int) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, edge_index, ptr, ctx.axis = inputs
    ctx.save_for_backward(edge_index, ptr)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
    edge_index, ptr = ctx.saved_tensors
    return propagate(grad, edge_index.flip(0), ptr, ctx.axis), None, None, None


propagate.register_autograd(_backward, setup_context=_keep)
