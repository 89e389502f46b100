r"""Rows picked, scored and gated in one step, with a gradient in closed form.

The gate of a row depends on that row only, so nothing is computed, stored or
differentiated for the rows that are not picked.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.dispatch import is_traced, runs_numba
from pyg_pool.typing import OptTensor

__all__ = ["gate_of", "gated_rows", "project", "unit"]

CODES = {"identity": 0, "sigmoid": 1, "tanh": 2}
GATES = tuple(CODES)
# Rows handled at once by the native gradient on a CPU.
BLOCK_ROWS = 2048


def gated_rows(
    x: Tensor, index: Tensor, vector: Tensor, bias: OptTensor, gate: str
) -> tuple[Tensor, Tensor]:
    r"""Picks distinct rows and multiplies each by the gate of its projection.

    .. math::
        s_k = \sigma(x_{i_k} \cdot p + b), \qquad y_k = s_k\, x_{i_k}

    Args:
        x: Rows.
        index: Rows to pick, distinct.
        vector: Projection, in float32 at least.
        bias: Number added to the projection.
        gate: ``"sigmoid"``, ``"tanh"`` or ``"identity"``.

    Returns:
        The gated rows in the type of ``x``, and the gates in that of ``vector``.

    Shapes:
        x: ``[N, F]``; index: ``[K]`` int64; vector: ``[F]``; bias: ``[1]``; returns
        ``[K, F]``, ``[K]``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.gate import gated_rows
        >>> x = torch.tensor([[1.0, 0.0], [2.0, 3.0]])
        >>> gated_rows(x, torch.tensor([1]), torch.tensor([1.0, 0.0]), None, "identity")
        (tensor([[4., 6.]]), tensor([2.]))
    """
    if is_traced():
        rows = x.index_select(0, index)
        score = gate_of(project(rows, vector, bias), gate)
        return (rows * score.unsqueeze(-1)).to(x.dtype), score
    out: tuple[Tensor, Tensor] = _GatedRows.apply(x, index, vector, bias, gate)
    return out


class _GatedRows(torch.autograd.Function):
    """Written in differentiable operations, so that it has second derivatives."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, index: Tensor, vector: Tensor, bias: OptTensor, gate: str
    ) -> tuple[Tensor, Tensor]:
        ctx.gate = gate
        ctx.numba = _takes_numba(x, index, vector)
        if ctx.numba:
            pooled, score = _numba_forward(x, index, vector, bias, gate)
        else:
            rows = x.index_select(0, index)
            score = gate_of(project(rows, vector, bias), gate)
            if rows.dtype == score.dtype:  # in place: no second copy of the rows
                pooled = rows.mul_(score.unsqueeze(-1))
            else:
                pooled = (rows * score.unsqueeze(-1)).to(x.dtype)
        ctx.save_for_backward(x, index, vector, bias, score)
        return pooled, score

    @staticmethod
    def backward(
        ctx: Any, grad: Tensor, grad_score: Tensor
    ) -> tuple[Tensor | None, None, Tensor | None, OptTensor, None]:
        x, index, vector, bias, score = ctx.saved_tensors
        # With second derivatives asked for, only differentiable operations will do.
        if torch.is_grad_enabled():
            run = _native_backward
        else:
            run = _numba_backward if ctx.numba else _blockwise_backward
        grad_x, grad_vector, slope = run(
            x, index, vector, score, ctx.gate, grad, grad_score
        )
        grad_bias = slope.sum().view_as(bias) if ctx.needs_input_grad[3] else None
        return grad_x, None, grad_vector, grad_bias, None


def _takes_numba(x: Tensor, index: Tensor, vector: Tensor) -> bool:
    size = index.numel() * vector.numel()
    same = x.dtype == vector.dtype and x.is_contiguous()
    return same and runs_numba("gated_rows", size, x, index)


def _native_backward(
    x: Tensor,
    index: Tensor,
    vector: Tensor,
    score: Tensor,
    gate: str,
    grad: Tensor,
    grad_score: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the rows, the vector and the projections."""
    rows = x.index_select(0, index).to(vector.dtype)
    grad = grad.to(vector.dtype)
    slope = ((grad * rows).sum(-1) + grad_score) * _slope(score, gate)
    grad_rows = grad * score.unsqueeze(-1) + slope.unsqueeze(-1) * vector
    grad_x = torch.zeros_like(x).index_copy(0, index, grad_rows.to(x.dtype))
    return grad_x, project(rows.t(), slope), slope


def _blockwise_backward(
    x: Tensor,
    index: Tensor,
    vector: Tensor,
    score: Tensor,
    gate: str,
    grad: Tensor,
    grad_score: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The same numbers without a record, in blocks that stay in a CPU's cache."""
    grad_x, grad_vector = torch.zeros_like(x), torch.zeros_like(vector)
    slope = torch.empty_like(score)
    size = BLOCK_ROWS if x.is_cpu else max(1, index.numel())
    parts = (t.split(size) for t in (index, grad, score, grad_score, slope))
    for nodes, up, gated, up_gated, out in zip(*parts, strict=True):
        rows = x.index_select(0, nodes).to(vector.dtype)
        up = up.to(vector.dtype)
        dots = torch.bmm(up.unsqueeze(1), rows.unsqueeze(2)).view(-1)
        torch.mul(dots.add_(up_gated), _slope(gated, gate), out=out)
        grad_vector.addmv_(rows.t(), out)
        torch.mul(up, gated.unsqueeze(-1), out=rows).addr_(out, vector)
        grad_x.index_add_(0, nodes, rows.to(x.dtype))
    return grad_x, grad_vector, slope


def _numba_forward(
    x: Tensor, index: Tensor, vector: Tensor, bias: OptTensor, gate: str
) -> tuple[Tensor, Tensor]:
    from pyg_pool.kernels import gate_numba

    pooled, score = x.new_empty(index.numel(), x.size(1)), x.new_empty(index.numel())
    shift = vector.new_zeros(1) if bias is None else bias.to(vector.dtype)
    gate_numba.forward(
        x.detach().numpy(), index.numpy(), vector.detach().numpy(),
        shift.detach().numpy(), CODES[gate], pooled.numpy(), score.numpy(),
    )  # fmt: skip
    return pooled, score


def _numba_backward(
    x: Tensor,
    index: Tensor,
    vector: Tensor,
    score: Tensor,
    gate: str,
    grad: Tensor,
    grad_score: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    from pyg_pool.kernels import gate_numba

    grad_x, slope = torch.zeros_like(x), torch.empty_like(score)
    grad_vector = torch.zeros_like(vector)
    gate_numba.backward(
        x.detach().numpy(), index.numpy(), vector.detach().numpy(),
        score.detach().numpy(), CODES[gate], grad.contiguous().numpy(),
        grad_score.contiguous().numpy(), grad_x.numpy(), grad_vector.numpy(),
        slope.numpy(),
    )  # fmt: skip
    return grad_x, grad_vector, slope


def project(x: Tensor, vector: Tensor, bias: OptTensor = None) -> Tensor:
    """The projection of each row in the type of ``vector``, autocast or not.

    Args:
        x: ``[N, F]`` rows.
        vector: ``[F]`` projection.
        bias: ``[1]`` number added to each.

    Returns:
        ``[N]`` projections.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.gate import project
        >>> project(torch.tensor([[1.0, 2.0]]), torch.tensor([3.0, 4.0]))
        tensor([11.])
    """
    with torch.autocast(x.device.type, enabled=False):
        out = x.to(vector.dtype) @ vector
    return out if bias is None else out + bias.to(out.dtype)


def gate_of(score: Tensor, gate: str) -> Tensor:
    """The gate of a projection.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.gate import gate_of
        >>> gate_of(torch.zeros(1), "sigmoid")
        tensor([0.5000])
    """
    if gate == "sigmoid":
        return score.sigmoid()
    return score.tanh() if gate == "tanh" else score


def _slope(score: Tensor, gate: str) -> Tensor | float:
    """Derivative of the gate, by its value."""
    if gate == "sigmoid":
        return score * (1.0 - score)
    return 1.0 - score * score if gate == "tanh" else 1.0


def unit(vector: Tensor) -> Tensor:
    r"""The vector divided by its length; a zero vector stays zero.

    Scaling by the largest entry first keeps squares from over- and underflowing.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.gate import unit
        >>> unit(torch.tensor([3e30, 4e30]))
        tensor([0.6000, 0.8000])
    """
    if is_traced():
        return _unit(vector)[0]
    out: Tensor = _Unit.apply(vector)
    return out


def _unit(vector: Tensor) -> tuple[Tensor, Tensor]:
    """The unit vector and what the vector was divided by."""
    top = torch.linalg.vector_norm(vector.detach(), torch.inf)
    top = top.masked_fill(top == 0, 1.0)
    scaled = vector / top
    length = torch.linalg.vector_norm(scaled)
    length = length.masked_fill(length == 0, 1.0)
    return scaled / length, length * top


class _Unit(torch.autograd.Function):
    """Normalisation with the gradient (g - u (u g)) / length."""

    @staticmethod
    def forward(ctx: Any, vector: Tensor) -> Tensor:
        out, length = _unit(vector)
        ctx.save_for_backward(vector, out, length)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        vector, out, length = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivatives: record the length too
            out, length = _unit(vector)
        return (grad - out * (out * grad).sum()) / length
