"""Attention over edges: a softmax over those into a node, and the weighted sum.

The compiled CPU twin copies no row per edge, so memory is that of the rows and of one
number per edge and head.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_pool.errors import check_edges
from pyg_pool.kernels.dispatch import is_traced, runs_numba
from pyg_pool.kernels.segment import segment_reduce, segment_softmax

__all__ = ["attend", "edge_softmax"]

TWINS = (torch.float32, torch.float64)


def edge_softmax(score: Tensor, target: Tensor, num_targets: int) -> Tensor:
    r"""Softmax of scores over the edges into each target, head by head.

    .. math::
        \alpha_e = \exp(s_e) \Big/ \sum_{f:\ t_f = t_e} \exp(s_f)

    Args:
        score: One score per edge and head; ``-inf`` takes an edge out.
        target: Target of each edge, in any order.
        num_targets: Number of targets.

    Shapes:
        score: ``[E, H]``; target: ``[E]`` int64; returns ``[E, H]``.

    Note:
        Half precision is computed in float32. A target whose scores are all ``-inf``
        gets zeros; NaN stays with its target and head.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.attention import edge_softmax
        >>> edge_softmax(torch.zeros(3, 1), torch.tensor([0, 1, 0]), 2).view(-1)
        tensor([0.5000, 1.0000, 0.5000])
    """
    if score.dtype in TWINS and runs_numba("attend", score.numel(), score, target):
        out: Tensor = _EdgeSoftmax.apply(score, target, num_targets)
        return out
    return segment_softmax(score, target, dim_size=num_targets)


def attend(
    x: Tensor, weight: Tensor, edge_index: Tensor, num_targets: int | None = None
) -> Tensor:
    r"""Sums the rows of the sources into the targets, weighted per edge and head.

    .. math::
        y_{t h} = \sum_{e:\ s \to t} w_{e h}\, x_{s h}

    Args:
        x: Rows, split into heads.
        weight: Weight of each edge and head, in the type of ``x``.
        edge_index: Edges from source to target, in any order.
        num_targets: Number of targets; ``None`` means as many as rows.

    Shapes:
        x: ``[N, H, C]``; weight: ``[E, H]``; edge_index: ``[2, E]`` int64; returns
        ``[num_targets, H, C]``.

    Raises:
        ValueError: If shapes or ids do not fit.

    Note:
        Half precision is summed in float32. The CPU twin needs no memory beyond its
        output; elsewhere one row per edge is held.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.attention import attend
        >>> x = torch.tensor([[[1.0]], [[2.0]], [[4.0]]])
        >>> edges = torch.tensor([[1, 2], [0, 0]])
        >>> attend(x, torch.tensor([[0.5], [0.5]]), edges).view(-1)
        tensor([3., 0., 0.])
    """
    if x.dim() != 3 or list(weight.shape) != [edge_index.size(-1), x.size(1)]:
        raise ValueError(
            f"attend got x of shape {list(x.shape)} and weight of shape "
            f"{list(weight.shape)} for {edge_index.size(-1)} edges, expected [N, H, C] "
            f"and [E, H]; split the rows into heads and give a weight for each."
        )
    size = x.size(0) if num_targets is None else num_targets
    edge_index = check_edges("attend", edge_index, weight, max(size, x.size(0)))
    if is_traced():
        return _native(x, weight, edge_index, size)
    out: Tensor = _Attend.apply(x, weight, edge_index, size)
    return out


def _native(x: Tensor, weight: Tensor, edge_index: Tensor, size: int) -> Tensor:
    """The sum in plain operations."""
    rows = x.index_select(0, edge_index[0]) * weight.unsqueeze(-1)
    return segment_reduce(rows, edge_index[1], dim_size=size).to(x.dtype)


def _takes_numba(x: Tensor, weight: Tensor, edge_index: Tensor) -> bool:
    size = weight.numel() * x.size(-1)
    known = x.dtype in TWINS and weight.dtype == x.dtype
    return known and runs_numba("attend", size, x, weight, edge_index)


class _Attend(torch.autograd.Function):
    """Keeps rows and weights for the gradient, but nothing of the size of edges x C."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, edge_index: Tensor, size: int
    ) -> Tensor:
        ctx.save_for_backward(x, weight, edge_index)
        if not _takes_numba(x, weight, edge_index):
            return _native(x, weight, edge_index, size)
        from pyg_pool.kernels import attention_numba

        out = x.new_zeros([size, x.size(1), x.size(2)])
        source, target = (row.contiguous().numpy() for row in edge_index)
        attention_numba.attend(
            x.detach().contiguous().numpy(), weight.detach().contiguous().numpy(),
            source, target, out.numpy(),
        )  # fmt: skip
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        x, weight, edge_index = ctx.saved_tensors
        # With second derivatives asked for, only torch's operations will do.
        if torch.is_grad_enabled() or not _takes_numba(x, weight, edge_index):
            rows = grad.index_select(0, edge_index[1])
            own = x.index_select(0, edge_index[0])
            up = rows * weight.unsqueeze(-1)
            grad_x = segment_reduce(up, edge_index[0], dim_size=x.size(0))
            grad_weight = (rows * own).sum(-1)
            return grad_x.to(x.dtype), grad_weight.to(weight.dtype), None, None
        from pyg_pool.kernels import attention_numba

        rows_grad = torch.zeros_like(x, memory_format=torch.contiguous_format)
        weight_grad = torch.empty_like(weight, memory_format=torch.contiguous_format)
        source, target = (row.contiguous().numpy() for row in edge_index)
        attention_numba.attend_backward(
            x.detach().contiguous().numpy(), weight.detach().contiguous().numpy(),
            source, target, grad.contiguous().numpy(),
            rows_grad.numpy(), weight_grad.numpy(),
        )  # fmt: skip
        return rows_grad, weight_grad, None, None


class _EdgeSoftmax(torch.autograd.Function):
    """The softmax of the CPU twin."""

    @staticmethod
    def forward(ctx: Any, score: Tensor, target: Tensor, size: int) -> Tensor:
        from pyg_pool.kernels import attention_numba

        found = attention_numba.softmax(
            score.detach().contiguous().numpy(), target.contiguous().numpy(), size
        )
        out = torch.from_numpy(found)
        ctx.save_for_backward(out, target)
        ctx.size = size
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        out, target = ctx.saved_tensors
        if torch.is_grad_enabled():
            inner = segment_reduce(out * grad, target, dim_size=ctx.size)
            return out * (grad - inner.index_select(0, target)), None, None
        from pyg_pool.kernels import attention_numba

        found = attention_numba.softmax_backward(
            out.detach().numpy(), target.contiguous().numpy(),
            grad.contiguous().numpy(), ctx.size,
        )  # fmt: skip
        return torch.from_numpy(found), None, None
