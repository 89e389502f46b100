"""Isomorphism convolutions for graphs with very many edges per node.

They compute what PyG's ``GINConv`` and ``GINEConv`` do with an MLP of two layers and
keep their names of weights, but hold no row of features per edge. They work in the
type of their input.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.functional import batch_norm, linear
from torch.utils.checkpoint import checkpoint
from torch_geometric.nn import MLP, Linear

from pyg_pool.kernels.attention import attend
from pyg_pool.kernels.segment import segment_reduce

__all__ = ["GINELayer", "GINLayer"]

# Entries of the messages that are held at once.
CHUNK = 1 << 22


class GINLayer(Module):
    r"""An MLP of the node and the sum of its neighbours.

    .. math::
        h'_j = \mathrm{MLP}\big( (1 + \epsilon) h_j + \textstyle\sum_i h_i \big)

    The MLP is linear, BatchNorm, ReLU, linear.

    Args:
        in_channels: Width of the input.
        out_channels: Width of the output.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; edge_attr: not used; returns
        ``[N, F']``.

    Note:
        Loops among the edges count, so that the node counts twice. A single row is
        normalised by the running statistics in training too.

    Example:
        >>> import torch
        >>> from pyg_pool.core.token_gin import GINLayer
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> GINLayer(3, 4)(torch.ones(2, 3), edges, torch.ones(2, 1)).shape
        torch.Size([2, 4])
    """

    eps: Tensor

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.nn = MLP([in_channels, out_channels, out_channels])
        self.register_buffer("eps", torch.zeros(1))

    def reset_parameters(self) -> None:
        """Draws the weights anew, and forgets the running statistics."""
        self.nn.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """Returns the new rows."""
        # The first linear layer comes before the sum: its rows are narrower.
        h = linear(x, self.nn.lins[0].weight.to(x.dtype))
        ones = h.new_ones(edge_index.size(1), 1)
        total = attend(h.unsqueeze(1), ones, edge_index).squeeze(1)
        return self._rest((1 + self.eps.to(x.dtype)) * h + total)

    def _rest(self, h: Tensor) -> Tensor:
        """The MLP behind the weights of its first layer."""
        first, last = self.nn.lins
        h = _normalised(self.nn.norms[0].module, h + first.bias.to(h.dtype)).relu()
        return linear(h, last.weight.to(h.dtype), last.bias.to(h.dtype))


class GINELayer(GINLayer):
    r"""As :class:`GINLayer`, with messages that know the edge.

    .. math::
        h'_j = \mathrm{MLP}\big( (1 + \epsilon) h_j + \textstyle\sum_i
        \mathrm{relu}(h_i + w_e e_{ij} + b_e) \big)

    Args:
        in_channels: Width of the input.
        out_channels: Width of the output.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; edge_attr: ``[E, 1]``; returns
        ``[N, F']``.

    Note:
        Messages are held for a part of the edges only, and computed again for the
        gradient; where all attributes are one expanded number, once per node.

    Example:
        >>> import torch
        >>> from pyg_pool.core.token_gin import GINELayer
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> GINELayer(3, 4)(torch.ones(2, 3), edges, torch.rand(2, 1)).shape
        torch.Size([2, 4])
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels)
        self.lin = Linear(1, in_channels)

    def reset_parameters(self) -> None:
        """Draws the weights anew, and forgets the running statistics."""
        super().reset_parameters()
        self.lin.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """Returns the new rows."""
        weight, bias = (t.to(x.dtype) for t in (self.lin.weight, self.lin.bias))
        if edge_attr.stride(0) == 0:  # one number for all edges
            messages = (x + linear(edge_attr[:1], weight, bias)).relu()
            ones = x.new_ones(edge_index.size(1), 1)
            total = attend(messages.unsqueeze(1), ones, edge_index).squeeze(1)
        else:
            total = torch.zeros_like(x)
            size = max(CHUNK // max(x.size(1), 1), 1)
            parts = edge_index.split(size, 1), edge_attr.split(size)
            for edges, attr in zip(*parts, strict=True):
                total = total + _again(_messages, x, edges, attr, weight, bias)
        h = (1 + self.eps.to(x.dtype)) * x + total
        return self._rest(linear(h, self.nn.lins[0].weight.to(x.dtype)))


def _messages(
    x: Tensor, edges: Tensor, attr: Tensor, weight: Tensor, bias: Tensor
) -> Tensor:
    """The sum of the messages of some edges."""
    rows = (x.index_select(0, edges[0]) + linear(attr, weight, bias)).relu()
    return segment_reduce(rows, edges[1], dim_size=x.size(0))


def _again(function: Any, *args: Tensor) -> Tensor:
    """Calls a function that is called again for the gradient instead of kept."""
    if not torch.is_grad_enabled() or torch.compiler.is_compiling():
        return function(*args)
    out: Tensor = checkpoint(function, *args, use_reentrant=False)
    return out


def _normalised(norm: Any, x: Tensor) -> Tensor:
    """BatchNorm in the type of ``x``, which also takes a single row in training."""
    is_training = norm.training and x.size(0) > 1
    mean, variance = norm.running_mean.to(x.dtype), norm.running_var.to(x.dtype)
    weight, bias = norm.weight.to(x.dtype), norm.bias.to(x.dtype)
    out = batch_norm(
        x, mean, variance, weight, bias, is_training, norm.momentum, norm.eps
    )
    if is_training:
        with torch.no_grad():
            for kept, new in ((norm.running_mean, mean), (norm.running_var, variance)):
                if kept is not new:  # half precision: the update went into a copy
                    kept.copy_(new)
            norm.num_batches_tracked += 1
    return out
