"""Sum of neighbours' rows, without the gathered rows being kept or even made."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.dispatch import chosen, is_traced, runs_numba

__all__ = ["gather_sum"]


def gather_sum(
    x: Tensor, edge_index: Tensor, size: int, *, own: bool = False
) -> Tensor:
    r"""Adds up the rows at the sources of each target's edges.

    .. math::
        y_v = [\mathrm{own}]\, x_v + \sum_{(u, v)} x_u

    Args:
        x: Rows.
        edge_index: Source and target of each edge, in any order.
        size: Number of targets.
        own: Add each target's own row.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]`` int64; returns ``[size, F]``.

    Note:
        Half precision is added up in float32.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.gather_sum import gather_sum
        >>> gather_sum(torch.tensor([[1.0], [2.0]]), torch.tensor([[0, 1], [1, 1]]), 2)
        tensor([[0.],
                [3.]])
    """
    if x.is_floating_point() and chosen("gather_sum", x, edge_index):
        from pyg_pool.kernels import gather_sum_triton

        found: Tensor = gather_sum_triton.gather_sum(x, edge_index, size, own)
        return found
    is_wide = x.dtype in (torch.float32, torch.float64)
    if (
        is_wide
        and not is_traced()
        and runs_numba("gather_sum", edge_index.size(1) * x.size(1), x, edge_index)
    ):
        return _GatherSum.apply(x, edge_index, size, own)
    return _native(x, edge_index, size, own)


def _native(x: Tensor, edge_index: Tensor, size: int, own: bool) -> Tensor:
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    out = wide if own else wide.new_zeros((size, x.size(1)))
    rows = wide.index_select(0, edge_index[0])
    return out.index_add(0, edge_index[1], rows).to(x.dtype)


class _GatherSum(torch.autograd.Function):
    """The compiled form; its gradient is the same sum against the edges."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, edge_index: Tensor, size: int, own: bool
    ) -> Tensor:
        ctx.save_for_backward(edge_index)
        ctx.own, ctx.rows = own, x.size(0)
        return summed(x, edge_index, size, own)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        (edge_index,) = ctx.saved_tensors
        flipped = edge_index.flip(0)
        if torch.is_grad_enabled():  # second derivatives
            return gather_sum(grad, flipped, ctx.rows, own=ctx.own), None, None, None
        return summed(grad, flipped, ctx.rows, ctx.own), None, None, None


def summed(x: Tensor, edge_index: Tensor, size: int, own: bool) -> Tensor:
    """The sum itself, on the CPU, without a gradient."""
    from pyg_pool.kernels import gather_sum_numba

    rows = x.detach().contiguous()
    out = rows.clone() if own else rows.new_zeros((size, rows.size(1)))
    edges = edge_index.contiguous().numpy()
    gather_sum_numba.add(rows.numpy(), edges[0], edges[1], out.numpy())
    return out
