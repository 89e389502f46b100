"""Sums of normalised rows over groups, without the normalised rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from pyg_pool.kernels.derive import gradients
from pyg_pool.kernels.dispatch import is_traced, runs_numba

__all__ = ["norm_sum"]


def norm_sum(
    x: Tensor, scale: Tensor, shift: Tensor, eps: float, group: Tensor, num_groups: int
) -> Tensor:
    r"""Sums layer-normalised rows over groups.

    .. math::
        y_c = \sum_{i \in c} \Bigl( \gamma \odot \frac{x_i - \mu_i}{\sqrt{\sigma_i^2 +
        \epsilon}} + \beta \Bigr)

    Args:
        x: Rows.
        scale: Factor of each feature, in the type of ``x``.
        shift: Offset of each feature.
        eps: Added to the variance.
        group: Group of each row.
        num_groups: Number of groups.

    Shapes:
        x: ``[N, F]``; scale, shift: ``[F]``; group: ``[N]`` int64; returns
        ``[num_groups, F]``.

    Note:
        On the CPU two numbers per row are kept for the gradient, elsewhere the
        normalised rows. Second derivatives recompute the sums.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.norm_sum import norm_sum
        >>> x, group = torch.tensor([[1.0, 3.0], [5.0, 9.0]]), torch.tensor([0, 0])
        >>> norm_sum(x, torch.ones(2), torch.zeros(2), 0.0, group, 1)
        tensor([[-2.,  2.]])
    """
    known = x.dtype in (torch.float32, torch.float64)
    same = x.dtype == scale.dtype == shift.dtype
    if is_traced() or not (
        known and same and runs_numba("norm_sum", x.numel(), x, group)
    ):
        return _native(x, scale, shift, eps, group, num_groups)
    out: Tensor = _NormSum.apply(x, scale, shift, eps, group, num_groups)
    return out


def _native(
    x: Tensor, scale: Tensor, shift: Tensor, eps: float, group: Tensor, size: int
) -> Tensor:
    rows = layer_norm(x, x.shape[-1:], scale, shift, eps)
    return rows.new_zeros(size, x.size(1)).index_add(0, group, rows)


class _NormSum(torch.autograd.Function):
    """Keeps mean and inverse deviation of each row."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, scale: Tensor, shift: Tensor, eps: float,
        group: Tensor, size: int,
    ) -> Tensor:  # fmt: skip
        from pyg_pool.kernels import norm_sum_numba

        x = x.contiguous()
        sums, kept = x.new_zeros(size, x.size(1)), x.new_empty(2, x.size(0))
        count, out = x.new_zeros(size), torch.empty_like(sums)
        norm_sum_numba.norm_sum(
            x.detach().numpy(), scale.detach().contiguous().numpy(),
            shift.detach().contiguous().numpy(), eps, group.contiguous().numpy(),
            kept.numpy(), sums.numpy(), count.numpy(), out.numpy(),
        )  # fmt: skip
        ctx.save_for_backward(x, scale, shift, group, kept, sums, count)
        ctx.eps, ctx.size = eps, size
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, scale, shift, group, kept, sums, count = ctx.saved_tensors
        if torch.is_grad_enabled():
            # Second derivatives are asked for: torch's operations have them.
            parts = (x, scale, shift)
            out = _native(*parts, ctx.eps, group, ctx.size)
            return (*gradients(out, parts, grad), None, None, None)
        from pyg_pool.kernels import norm_sum_numba

        grad_x = torch.empty_like(x)
        norm_sum_numba.norm_sum_backward(
            x.detach().numpy(), group.contiguous().numpy(), kept.numpy(),
            (grad * scale).detach().numpy(), grad_x.numpy(),
        )  # fmt: skip
        return grad_x, (grad * sums).sum(0), count @ grad, None, None, None
