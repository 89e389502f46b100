"""Sum of products of joined rows, without the products being kept."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.dispatch import is_traced, runs_numba

__all__ = ["join_product"]


def join_product(a: Tensor, b: Tensor, triples: Tensor, size: int) -> Tensor:
    r"""Adds up products of rows of two tables.

    .. math::
        y_p = \sum_{(p, i, j)} a_i \odot b_j

    Args:
        a: Rows of the first factor.
        b: Rows of the second factor.
        triples: Target, row of ``a``, row of ``b``, in any order.
        size: Number of targets.

    Shapes:
        a, b: ``[Q, F]``; triples: ``[3, R]`` int64; returns ``[size, F]``.

    Note:
        Half precision is added up in float32. The compiled form keeps no table of R
        rows, in either direction; native torch does.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.join_product import join_product
        >>> rows = torch.tensor([[2.0], [3.0]])
        >>> join_product(rows, rows, torch.tensor([[0, 0], [0, 1], [1, 1]]), 1)
        tensor([[15.]])
    """
    wide = torch.promote_types(a.dtype, torch.float32)
    if _fits(a, b, triples):
        return _JoinProduct.apply(a, b, triples, size)
    left = a.index_select(0, triples[1]).to(wide)
    right = b.index_select(0, triples[2]).to(wide)
    out = left.new_zeros((size, a.size(1)))
    return out.index_add(0, triples[0], left * right).to(a.dtype)


def _fits(a: Tensor, b: Tensor, triples: Tensor) -> bool:
    """Whether the compiled form takes these rows."""
    if is_traced() or a.dtype != b.dtype:
        return False
    if a.dtype not in (torch.float32, torch.float64):
        return False
    return runs_numba("join_product", triples.size(1) * a.size(1), a, b, triples)


class _JoinProduct(torch.autograd.Function):
    """The compiled form with its gradient."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, triples: Tensor, size: int) -> Tensor:
        from pyg_pool.kernels import join_product_numba

        ctx.save_for_backward(a, b, triples)
        out = a.new_zeros((size, a.size(1)))
        join_product_numba.add(_array(a), _array(b), triples.numpy(), out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        a, b, triples = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivatives: torch's own operations
            rows = grad.index_select(0, triples[0])
            one = rows * b.index_select(0, triples[2])
            two = rows * a.index_select(0, triples[1])
            grad_a = torch.zeros_like(a).index_add(0, triples[1], one)
            return grad_a, torch.zeros_like(b).index_add(0, triples[2], two), None, None
        from pyg_pool.kernels import join_product_numba

        grad_a, grad_b = torch.zeros_like(a), torch.zeros_like(b)
        join_product_numba.add_gradient(
            _array(a),
            _array(b),
            triples.numpy(),
            _array(grad),
            grad_a.numpy(),
            grad_b.numpy(),
        )
        return grad_a, grad_b, None, None


def _array(x: Tensor) -> Any:
    return x.detach().contiguous().numpy()
