"""ReLU and dropout in one pass, with no mask to draw, keep and multiply by."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import dropout

from pyg_pool.kernels.dispatch import is_traced, runs_numba

__all__ = ["relu_dropout"]


def relu_dropout(x: Tensor, rate: float, *, training: bool = True) -> Tensor:
    r"""Cuts off what is negative, then drops entries at random.

    .. math::
        y = \frac{m}{1 - p} \odot \max(x, 0), \qquad m \sim \mathrm{Bernoulli}(1 - p)

    Args:
        x: Values.
        rate: Probability p of an entry to become 0.
        training: Whether to drop any.

    Shapes:
        x: any; returns the same.

    Note:
        On the CPU one number is drawn from torch's generator and hashed with the
        position of each entry, many times faster than a draw for each. The gradient
        is read off the result: nothing else is kept.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.relu_dropout import relu_dropout
        >>> relu_dropout(torch.tensor([-1.0, 2.0]), 0.5, training=False)
        tensor([0., 2.])
    """
    if not training or rate == 0.0:
        return x.relu()
    known = x.dtype in (torch.float32, torch.float64) and rate < 1.0
    if is_traced() or not (known and runs_numba("relu_dropout", x.numel(), x)):
        return dropout(x.relu(), rate)
    out: Tensor = _ReLUDropout.apply(x, rate)
    return out


class _ReLUDropout(torch.autograd.Function):
    """Keeps the result, which the next layer keeps as its input anyway."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float) -> Tensor:
        from pyg_pool.kernels import relu_dropout_numba

        x = x.detach().contiguous()
        out = torch.empty_like(x)
        seed = int(torch.empty((), dtype=torch.int64).random_())
        relu_dropout_numba.forward(
            x.view(-1).numpy(), seed, int(rate * 2**53), 1.0 / (1.0 - rate),
            out.view(-1).numpy(),
        )  # fmt: skip
        ctx.save_for_backward(out)
        ctx.rate = rate
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (out,) = ctx.saved_tensors
        factor = 1.0 / (1.0 - ctx.rate)
        if torch.is_grad_enabled():
            return (grad * factor).masked_fill(out <= 0, 0.0), None
        from pyg_pool.kernels import relu_dropout_numba

        found = torch.empty_like(out)
        relu_dropout_numba.backward(
            grad.contiguous().view(-1).numpy(), out.view(-1).numpy(), factor,
            found.view(-1).numpy(),
        )  # fmt: skip
        return found, None
