"""Triton twin of ``gather_sum.py``: a program sums up the rows a target gathers."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from pyg_pool.kernels.layout_triton import blocks, kind_of

__all__ = ["by_target", "gather_sum"]

LANES = 32


@triton.jit
def _gather_kernel(
    x, source, edge_ptr, out, width, own: tl.constexpr, lanes: tl.constexpr,
    columns: tl.constexpr, kind: tl.constexpr,
):  # fmt: skip
    t = tl.program_id(0).to(tl.int64)
    f = tl.program_id(1) * columns + tl.arange(0, columns)
    total = tl.zeros([columns], kind)
    if own:
        total += tl.load(x + t * width + f, f < width, 0.0).to(kind)
    last = tl.load(edge_ptr + t + 1)
    for e in range(tl.load(edge_ptr + t), last, lanes):
        at = e + tl.arange(0, lanes)
        row = tl.load(source + at, at < last, 0)
        mask = (at < last)[:, None] & (f < width)[None, :]
        tile = tl.load(x + row[:, None] * width + f[None, :], mask, 0.0)
        total += tl.sum(tile.to(kind), 0)
    tl.store(out + t * width + f, total, f < width)


def by_target(edge_index: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Sources in the order of their targets, and the first edge of each target."""
    target, order = torch.sort(edge_index[1], stable=True)
    ids = torch.arange(size + 1, device=target.device)
    source = edge_index[0].index_select(0, order)
    return source, torch.searchsorted(target, ids)


@torch.library.custom_op("pyg_pool::gather_sum", mutates_args=())
def gather_sum(x: Tensor, edge_index: Tensor, size: int, own: bool) -> Tensor:
    """Sums of the rows at the sources of each target, with its own row or without."""
    x = x.contiguous()
    out = x.new_empty(size, x.size(1))
    if out.numel() == 0:
        return out
    source, edge_ptr = by_target(edge_index, size)
    columns = blocks(x.size(1))[1]
    _gather_kernel[(size, triton.cdiv(x.size(1), columns))](
        x, source, edge_ptr, out, x.size(1), own, LANES, columns, kind_of(x)
    )
    return out


@gather_sum.register_fake
def _(x: Tensor, edge_index: Tensor, size: int, own: bool) -> Tensor:
    return x.new_empty(size, x.size(1))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, edge_index, _, ctx.own = inputs
    ctx.rows = x.size(0)
    ctx.save_for_backward(edge_index)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
    flipped = ctx.saved_tensors[0].flip(0)
    return gather_sum(grad, flipped, ctx.rows, ctx.own), None, None, None


gather_sum.register_autograd(_backward, setup_context=_keep)
