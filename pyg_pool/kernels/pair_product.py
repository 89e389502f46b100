"""Products of the features of pairs of nodes, with no gathered rows kept."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.dispatch import is_traced, runs_numba

__all__ = ["pair_product"]


def pair_product(x: Tensor, pairs: Tensor) -> Tensor:
    r"""Multiplies the rows of each pair, feature by feature.

    .. math::
        y_{ij} = x_i \odot x_j

    Args:
        x: Rows.
        pairs: Pairs of rows, in any order.

    Shapes:
        x: ``[N, F]``; pairs: ``[2, P]`` int64; returns ``[P, F]``.

    Note:
        The rows of the pairs are read where they are; only ``x`` is kept for the
        gradient.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.pair_product import pair_product
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> pair_product(x, torch.tensor([[0], [1]]))
        tensor([[3., 8.]])
    """
    known = x.dtype in (torch.float32, torch.float64)
    size = pairs.size(1) * x.size(1)
    if is_traced() or not (known and runs_numba("pair_logits", size, x, pairs)):
        return x.index_select(0, pairs[0]) * x.index_select(0, pairs[1])
    out: Tensor = _PairProduct.apply(x, pairs)
    return out


class _PairProduct(torch.autograd.Function):
    """Reads the rows again for the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, pairs: Tensor) -> Tensor:
        from pyg_pool.kernels import pairs_numba

        pairs = pairs.contiguous()
        ctx.save_for_backward(x, pairs)
        out = x.new_empty(pairs.size(1), x.size(1))
        rows = x.detach().contiguous().numpy()
        pairs_numba.product(rows, pairs.numpy(), out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        x, pairs = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivatives
            first = grad * x.index_select(0, pairs[1])
            second = grad * x.index_select(0, pairs[0])
            out = torch.zeros_like(x).index_add(0, pairs[0], first)
            return out.index_add(0, pairs[1], second), None
        from pyg_pool.kernels import pairs_numba

        rows = x.detach().contiguous()
        out = torch.zeros_like(rows)
        pairs_numba.product_backward(
            rows.numpy(), pairs.numpy(), grad.contiguous().numpy(), out.numpy()
        )
        return out, None
