r"""A whole GIN layer whose backward pass recomputes what it can.

.. math::
    H' = \mathrm{ReLU}\big( \mathrm{ReLU}(\mathrm{BN}(A W_1 + b_1)) W_2 + b_2 \big),
    \qquad A_v = H_v + \sum_{u \to v} H_u

Kept for the gradient are the input, the rows before the normalisation and the output,
which is the next layer's input: two tables per layer instead of four.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.dispatch import is_traced, runs_numba
from pyg_pool.kernels.gather_sum import summed

__all__ = ["fits_gin_layer", "gin_layer"]


def fits_gin_layer(x: Tensor, edge_index: Tensor) -> bool:
    """Whether the recomputing form takes these rows: floats on the CPU, eager."""
    if is_traced() or x.dtype not in (torch.float32, torch.float64):
        return False
    if torch.is_autocast_enabled("cpu"):
        return False
    return runs_numba("gather_sum", edge_index.size(1) * x.size(1), x, edge_index)


def gin_layer(
    x: Tensor,
    edge_index: Tensor,
    first: tuple[Tensor, Tensor],
    norm: tuple[Tensor, Tensor, float],
    second: tuple[Tensor, Tensor],
) -> tuple[Tensor, Tensor, Tensor]:
    """Runs the layer with the statistics of its rows.

    Args:
        x: Rows.
        edge_index: Source and target of each edge.
        first: Weight and bias of the first linear map.
        norm: Scale, shift and epsilon of the normalisation.
        second: Weight and bias of the second linear map.

    Returns:
        New rows, and mean and biased variance of the rows that were normalised.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; returns ``[N, H]``, ``[H]``, ``[H]``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.gin_layer import gin_layer
        >>> one = torch.eye(2), torch.zeros(2)
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> norm = torch.ones(2), torch.zeros(2), 1e-5
        >>> gin_layer(torch.rand(3, 2), edges, one, norm, one)[0].shape
        torch.Size([3, 2])
    """
    return _GINLayer.apply(x, edge_index, *first, *norm, *second)


class _GINLayer(torch.autograd.Function):
    """The layer with its gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        edge_index: Tensor,
        w1: Tensor,
        b1: Tensor,
        scale: Tensor,
        shift: Tensor,
        eps: float,
        w2: Tensor,
        b2: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        total = summed(x, edge_index, x.size(0), own=True)
        inner = torch.addmm(b1, total, w1.t())
        # Two sums down the columns: torch's own variance is several times slower here.
        mean = inner.sum(0) / max(inner.size(0), 1)
        hidden = inner - mean
        var = hidden.square_().sum(0) / max(inner.size(0), 1)
        factor = (var + eps).rsqrt() * scale
        torch.mul(inner, factor, out=hidden)
        hidden += shift - mean * factor
        hidden.relu_()
        out = torch.addmm(b2, hidden, w2.t()).relu_()
        ctx.save_for_backward(
            x, edge_index, w1, scale, shift, w2, inner, mean, var, out
        )
        ctx.eps = eps
        ctx.mark_non_differentiable(mean, var)
        return out, mean, var

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        x, edges, w1, scale, shift, w2, inner, mean, var, out = ctx.saved_tensors
        size = x.size(0)
        rate = (var + ctx.eps).rsqrt()
        grad = torch.ops.aten.threshold_backward(grad, out, 0.0)
        factor = rate * scale
        hidden = inner * factor
        hidden += shift - mean * factor
        hidden.relu_()
        grad_w2, grad_b2 = grad.t() @ hidden, grad.sum(0)
        grad = torch.ops.aten.threshold_backward(grad @ w2, hidden, 0.0)
        normed = torch.sub(inner, mean, out=hidden)
        normed *= rate
        grad_scale, grad_shift = (grad * normed).sum(0), grad.sum(0)
        grad -= grad_shift / size
        grad -= normed.mul_(grad_scale / size)
        grad *= factor
        del hidden, normed
        total = summed(x, edges, size, own=True)
        grad_w1, grad_b1 = grad.t() @ total, grad.sum(0)
        del total
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = summed(grad @ w1, edges.flip(0), size, own=True)
        return (
            grad_x, None, grad_w1, grad_b1, grad_scale, grad_shift, None,
            grad_w2, grad_b2,
        )  # fmt: skip
