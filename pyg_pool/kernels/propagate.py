"""One step of the graph convolution's propagation, without a list of messages."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.dispatch import is_traced, runs_numba
from pyg_pool.kernels.segment import segment_count

__all__ = ["degree_scale", "propagate"]


def degree_scale(edge_index: Tensor, num_nodes: int, dtype: torch.dtype) -> Tensor:
    """One over the root of each node's degree, its own loop counted.

    Shapes:
        edge_index: ``[2, E]`` int64, without loops; returns ``[num_nodes]``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.propagate import degree_scale
        >>> degree_scale(torch.tensor([[0], [1]]), 2, torch.float64)
        tensor([0.7071, 1.0000], dtype=torch.float64)
    """
    return (segment_count(edge_index[0], num_nodes) + 1).to(dtype).rsqrt()


def propagate(x: Tensor, edge_index: Tensor, scale: Tensor) -> Tensor:
    r"""Multiplies features by the scaled adjacency of an undirected graph.

    .. math::
        y_i = s_i \Bigl(s_i x_i + \sum_{j \in \mathcal{N}(i)} s_j x_j\Bigr)

    Args:
        x: Features.
        edge_index: Edges in both directions, without loops; any order, though
            sorted ones are read faster.
        scale: Factor s of each node, a constant.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]`` int64; scale: ``[N]``; returns
        ``[N, F]``.

    Note:
        The matrix is symmetric, so the gradient is the same product. Memory is that
        of the result on the CPU, that of one message per edge elsewhere.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.propagate import propagate
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> propagate(torch.tensor([[1.0], [2.0]]), edges, torch.tensor([1.0, 3.0]))
        tensor([[ 7.],
                [21.]])
    """
    if is_traced():
        return _native(x, edge_index, scale)
    out: Tensor = _Propagate.apply(x, edge_index, scale)
    return out


class _Propagate(torch.autograd.Function):
    """The product, its own transpose."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, edge_index: Tensor, scale: Tensor) -> Tensor:
        ctx.save_for_backward(edge_index, scale)
        known = x.dtype in (torch.float32, torch.float64) and x.dtype == scale.dtype
        size = edge_index.size(1) * x.size(1)
        if not (known and runs_numba("propagate", size, x, edge_index, scale)):
            return _native(x, edge_index, scale)
        from pyg_pool.kernels import propagate_numba

        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        propagate_numba.propagate(
            x.detach().contiguous().numpy(), edge_index.contiguous().numpy(),
            scale.detach().numpy(), out.numpy(),
        )  # fmt: skip
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return propagate(grad, *ctx.saved_tensors), None, None


def _native(x: Tensor, edge_index: Tensor, scale: Tensor) -> Tensor:
    """The same from torch's operations; half precision is summed in float32."""
    factor = scale.unsqueeze(-1)
    rows = x.to(torch.promote_types(x.dtype, scale.dtype)) * factor
    summed = rows.index_add(0, edge_index[0], rows.index_select(0, edge_index[1]))
    return (summed * factor).to(x.dtype)
