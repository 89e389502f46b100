r"""One layer of the GIN backbone with its gradient in closed form.

.. math::
    H' = \mathrm{ReLU}\big(\mathrm{BN}(\mathrm{ReLU}(A W_1 + b_1) W_2 + b_2)\big),
    \qquad A_v = (1 + \epsilon) H_v + \sum_{u \to v} H_u

The numbers are those of PyG's ``GINConv``, then ``BatchNorm1d``, then ReLU, from
whose modules the weights are taken. On the small batches of a table most of a step
is spent between operations, of which there are a quarter as many here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import GINConv

from pyg_pool.kernels.gather_sum import gather_sum, summed

__all__ = ["gin_layer"]


def gin_layer(
    conv: GINConv, norm: torch.nn.BatchNorm1d, x: Tensor, edges: Tensor, back: Tensor
) -> Tensor:
    """Run one layer; ``back`` holds the edges with their ends exchanged."""
    first, second = conv.nn[0], conv.nn[2]
    if not norm.training:
        total = gather_sum(x, edges, x.size(0)) + (1 + conv.eps) * x
        rows: Tensor = norm(second(first(total).relu())).relu()
        return rows
    out, mean, var = _Layer.apply(
        x, edges, back, conv.eps, first.weight, first.bias, second.weight,
        second.bias, norm.weight, norm.bias, norm.eps,
    )  # fmt: skip
    with torch.no_grad():
        size = x.size(0)
        norm.num_batches_tracked.add_(1)
        norm.running_mean.lerp_(mean, norm.momentum)
        norm.running_var.lerp_(var * (size / (size - 1)), norm.momentum)
    return out


class _Layer(torch.autograd.Function):
    """Training form, with the statistics of the rows themselves."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, edges: Tensor, back: Tensor, own: Tensor, w1: Tensor,
        b1: Tensor, w2: Tensor, b2: Tensor, scale: Tensor, shift: Tensor, eps: float,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        total = summed(x, edges, x.size(0), own=True)
        total.add_(x, alpha=float(own))
        hidden = torch.addmm(b1, total, w1.t()).relu_()
        normed = torch.addmm(b2, hidden, w2.t())
        mean = normed.sum(0) / normed.size(0)
        normed -= mean
        var = (normed * normed).sum(0) / normed.size(0)
        rate = (var + eps).rsqrt_()
        normed *= rate
        out = torch.addcmul(shift, normed, scale).relu_()
        ctx.save_for_backward(
            x, back, own, w1, w2, scale, total, hidden, normed, rate, out
        )
        ctx.mark_non_differentiable(mean, var)
        return out, mean, var

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        x, back, own, w1, w2, scale, total, hidden, normed, rate, out = (
            ctx.saved_tensors
        )
        size = x.size(0)
        grad = torch.ops.aten.threshold_backward(grad, out, 0.0)
        grad_shift, grad_scale = grad.sum(0), (grad * normed).sum(0)
        grad -= grad_shift / size
        grad.addcmul_(normed, grad_scale, value=-1.0 / size)
        grad *= scale * rate
        grad_w2, grad_b2 = grad.t() @ hidden, grad.sum(0)
        grad = torch.ops.aten.threshold_backward(grad @ w2, hidden, 0.0)
        grad_w1, grad_b1 = grad.t() @ total, grad.sum(0)
        grad = grad @ w1
        grad_own = torch.dot(grad.view(-1), x.reshape(-1)).view_as(own)
        grad_x = summed(grad, back, size, own=True)
        grad_x.add_(grad, alpha=float(own))
        return (
            grad_x, None, None, grad_own, grad_w1, grad_b1, grad_w2, grad_b2,
            grad_scale, grad_shift, None,
        )  # fmt: skip
