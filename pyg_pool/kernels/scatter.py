"""Taking distinct rows out of a matrix and putting them back.

Both directions know that no row is used twice, so neither needs an accumulating
scatter: the gradient of one is the other.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.dispatch import is_traced

__all__ = ["put_rows", "take_rows"]


class _TakeRows(torch.autograd.Function):
    """Rows of a matrix at distinct positions."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.num_rows = x.size(0)
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        return put_rows(grad, index, ctx.num_rows), None


class _PutRows(torch.autograd.Function):
    """A zero matrix with rows written at distinct positions."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, num_rows: int) -> Tensor:
        ctx.save_for_backward(index)
        return x.new_zeros([num_rows, *x.shape[1:]]).index_copy_(0, index, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (index,) = ctx.saved_tensors
        return take_rows(grad, index), None, None


def take_rows(x: Tensor, index: Tensor) -> Tensor:
    """Returns ``x[index]`` for an index without repeats.

    Args:
        x: ``[N, *]`` tensor.
        index: ``[K]`` int64, distinct values.

    Returns:
        ``[K, *]`` tensor. The gradient is written, not accumulated.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels import take_rows
        >>> take_rows(torch.tensor([10.0, 20.0, 30.0]), torch.tensor([2, 0]))
        tensor([30., 10.])
    """
    if is_traced():
        return x.index_select(0, index)
    out: Tensor = _TakeRows.apply(x, index)
    return out


def put_rows(x: Tensor, index: Tensor, num_rows: int) -> Tensor:
    """Returns zeros with row ``i`` of ``x`` at position ``index[i]``.

    Args:
        x: ``[K, *]`` tensor.
        index: ``[K]`` int64, distinct values below ``num_rows``.
        num_rows: Rows of the result.

    Returns:
        ``[num_rows, *]`` tensor.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels import put_rows
        >>> put_rows(torch.tensor([1.0, 2.0]), torch.tensor([2, 0]), 4)
        tensor([2., 0., 1., 0.])
    """
    if is_traced():
        return x.new_zeros([num_rows, *x.shape[1:]]).index_copy(0, index, x)
    out: Tensor = _PutRows.apply(x, index, num_rows)
    return out
