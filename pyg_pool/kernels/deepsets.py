r"""Two residual layers around a sum over groups, as one operation.

.. math::
    y_c = m_c \, \mathrm{LN}_2\bigl(s_c + W_2 s_c + b_2\bigr), \qquad
    s_c = \sum_{i \in c} \mathrm{LN}_1\bigl(x_i + W_1 x_i + b_1\bigr)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from pyg_pool.kernels.derive import gradients
from pyg_pool.kernels.dispatch import is_traced, runs_numba
from pyg_pool.kernels.norm_sum import norm_sum

__all__ = ["Residual", "deepsets"]

# Weight and bias of the linear map, scale, shift and epsilon of the normalisation.
Residual = tuple[Tensor, Tensor, Tensor, Tensor, float]


def deepsets(
    x: Tensor,
    first: Residual,
    second: Residual,
    group: Tensor,
    num_groups: int,
    factor: Tensor | None = None,
) -> Tensor:
    """Returns one row per group.

    Args:
        x: Rows.
        first: The layer in front of the sum, in the type of ``x``.
        second: The layer behind it.
        group: Group of each row.
        num_groups: Number of groups.
        factor: Number by which each group's row is multiplied.

    Shapes:
        x: ``[N, F]``; weights: ``[F, F]``; biases, scales, shifts: ``[F]``; group:
        ``[N]`` int64; factor: ``[K]``; returns ``[K, F]``.

    Note:
        On the CPU the rows before each normalisation are kept, and two numbers for
        each of them; second derivatives compute all of it again.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.deepsets import deepsets
        >>> layer = torch.eye(2), torch.zeros(2), torch.ones(2), torch.zeros(2), 0.0
        >>> x, group = torch.tensor([[1.0, 3.0], [5.0, 9.0]]), torch.tensor([0, 0])
        >>> deepsets(x, layer, layer, group, 1, torch.tensor([3.0]))
        tensor([[-3.,  3.]])
    """
    tensors = [x, *first[:4], *second[:4], *([] if factor is None else [factor])]
    known = x.dtype in (torch.float32, torch.float64)
    known = known and all(each.dtype == x.dtype for each in tensors)
    if (
        is_traced()
        or not (known and runs_numba("norm_sum", x.numel(), x, group))
        or torch.is_autocast_enabled("cpu")
    ):
        return _native(x, first, second, group, num_groups, factor)
    out: Tensor = _DeepSets.apply(x, *first, *second, group, num_groups, factor)
    return out


def _native(
    x: Tensor, first: Residual, second: Residual, group: Tensor, size: int,
    factor: Tensor | None,
) -> Tensor:  # fmt: skip
    weight, bias, scale, shift, eps = first
    rows = torch.addmm(bias, x, _raised(weight).t())
    rows = norm_sum(rows, scale, shift, eps, group, size)
    weight, bias, scale, shift, eps = second
    rows = torch.addmm(bias, rows, _raised(weight).t())
    rows = layer_norm(rows, rows.shape[-1:], scale, shift, eps)
    return rows if factor is None else rows * factor.unsqueeze(-1)


def _raised(weight: Tensor) -> Tensor:
    """The weight plus the identity: one product instead of a product and a sum."""
    return weight + torch.eye(weight.size(0), dtype=weight.dtype, device=weight.device)


class _DeepSets(torch.autograd.Function):
    """Keeps the rows in front of both normalisations."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor, w1: Tensor, b1: Tensor, scale1: Tensor, shift1: Tensor, eps1: float,
        w2: Tensor, b2: Tensor, scale2: Tensor, shift2: Tensor, eps2: float,
        group: Tensor, size: int, factor: Tensor | None,
    ) -> Tensor:  # fmt: skip
        from pyg_pool.kernels import deepsets_numba, norm_sum_numba

        rows = torch.addmm(b1, x, _raised(w1).t())
        group, width = group.contiguous(), x.size(1)
        zeros = x.new_zeros(size * (width + 1))
        count, sums = zeros[:size], zeros[size:].view(size, width)
        kept, inner = x.new_empty(2, x.size(0)), x.new_empty(size, width)
        norm_sum_numba.norm_sum(
            rows.numpy(), scale1.detach().numpy(), shift1.detach().numpy(), eps1,
            group.numpy(), kept.numpy(), sums.numpy(), count.numpy(), inner.numpy(),
        )  # fmt: skip
        outer = torch.addmm(b2, inner, _raised(w2).t())
        times = x.new_ones(size) if factor is None else factor.detach().contiguous()
        out, spread = torch.empty_like(outer), x.new_empty(2, size)
        deepsets_numba.norm_rows(
            outer.numpy(), scale2.detach().numpy(), shift2.detach().numpy(), eps2,
            times.numpy(), spread.numpy(), out.numpy(),
        )  # fmt: skip
        ctx.save_for_backward(
            x, w1, b1, scale1, shift1, w2, b2, scale2, shift2, group, factor,
            rows, kept, sums, count, inner, outer, spread, times,
        )  # fmt: skip
        ctx.eps, ctx.size = (eps1, eps2), size
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            return _again(ctx, grad)
        from pyg_pool.kernels import deepsets_numba, norm_sum_numba

        x, w1, _, scale1, _, w2, _, scale2, shift2, group, factor = ctx.saved_tensors[
            :11
        ]
        rows, kept, sums, count, inner, outer, spread, times = ctx.saved_tensors[11:]
        width = x.size(1)
        lower, slopes = torch.empty_like(outer), x.new_zeros(3, width)
        steep = torch.empty_like(times)
        deepsets_numba.norm_rows_backward(
            grad.contiguous().numpy(), outer.numpy(), scale2.detach().numpy(),
            shift2.detach().numpy(), times.numpy(), spread.numpy(), lower.numpy(),
            slopes.numpy(), steep.numpy(),
        )  # fmt: skip
        grad_w2 = lower.t() @ inner
        lower = lower @ _raised(w2.detach())
        grad_rows, sides = torch.empty_like(rows), x.new_zeros(3, width)
        deepsets_numba.norm_sides(
            lower.numpy(), sums.numpy(), count.numpy(), scale1.detach().numpy(),
            sides.numpy(),
        )  # fmt: skip
        norm_sum_numba.norm_sum_backward(
            rows.numpy(), group.numpy(), kept.numpy(), lower.numpy(), grad_rows.numpy()
        )
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_rows @ _raised(w1.detach())
        return (
            grad_x, grad_rows.t() @ x.detach(), grad_rows.sum(0), sides[0], sides[1],
            None, grad_w2, slopes[2], slopes[0], slopes[1], None, None, None,
            None if factor is None else steep,
        )  # fmt: skip


def _again(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients from torch's operations, which have second derivatives."""
    x, w1, b1, scale1, shift1, w2, b2, scale2, shift2, group, factor = (
        ctx.saved_tensors[:11]
    )
    first = (w1, b1, scale1, shift1, ctx.eps[0])
    second = (w2, b2, scale2, shift2, ctx.eps[1])
    out = _native(x, first, second, group, ctx.size, factor)
    parts = (x, *first[:4], *second[:4], *(() if factor is None else (factor,)))
    found = gradients(out, parts, grad)
    last = None if factor is None else found[9]
    return (*found[:5], None, *found[5:9], None, None, None, last)
