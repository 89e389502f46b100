"""Convolutions for graphs with very many edges per node, such as token graphs.

They compute what PyG's ``GATConv`` and ``GCNConv`` do and keep their names of weights,
but hold no row of features per edge. They work in the type of their input.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor
from torch.nn import Module, Parameter
from torch.nn.functional import leaky_relu, linear
from torch_geometric.nn import Linear
from torch_geometric.nn.inits import glorot, zeros

from pyg_pool.kernels.attention import attend, edge_softmax
from pyg_pool.kernels.segment import segment_reduce
from pyg_pool.typing import OptTensor

__all__ = ["GATLayer", "GCNLayer"]


def _with_loops(edge_index: Tensor, num_nodes: int) -> Tensor:
    """The edges, followed by a loop at every node."""
    nodes = torch.arange(num_nodes, device=edge_index.device)
    return torch.cat([edge_index, nodes.expand(2, -1)], 1)


def _less_own(target: Tensor, num_edges: int, grad: OptTensor) -> OptTensor:
    """Gradients of shares, less that of the target's own loop.

    A softmax takes no notice of a number added to all. Without it, equal rows of 1e30
    leave a rounding error of 1e23 where the gradient is 0.
    """
    if grad is None:  # in second derivatives
        return None
    return grad - grad[num_edges:].index_select(0, target)


class GATLayer(Module):
    r"""Graph attention with one number per edge.

    .. math::
        h'_j = \sum_i \mathrm{softmax}_i \big( \mathrm{leaky}(a_s \cdot W h_i + a_t
        \cdot W h_j + a_e \cdot w_e e_{ij}) \big)\, W h_i + b

    Args:
        in_channels: Width of the input.
        out_channels: Width of the output, that of all heads together.
        heads: Number of heads, which divides the output.
        negative_slope: Slope of the leaky function below 0.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; edge_attr: ``[E, 1]``; returns
        ``[N, F']``.

    Note:
        Loops are replaced by one at each node, whose attribute is the mean of those of
        the other edges into it, 0 if there are none.

    Example:
        >>> import torch
        >>> from pyg_pool.core.token_convs import GATLayer
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> GATLayer(3, 4)(torch.ones(2, 3), edges, torch.ones(2, 1)).shape
        torch.Size([2, 4])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        negative_slope: float = 0.2,
    ) -> None:
        super().__init__()
        self.heads, self.negative_slope = heads, negative_slope
        width = out_channels // heads
        self.lin = Linear(
            in_channels, out_channels, bias=False, weight_initializer="glorot"
        )
        self.att_src = Parameter(torch.empty(1, heads, width))
        self.att_dst = Parameter(torch.empty(1, heads, width))
        self.att_edge = Parameter(torch.empty(1, heads, width))
        self.lin_edge = Linear(1, out_channels, bias=False, weight_initializer="glorot")
        self.bias = Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights anew; the bias is 0."""
        self.lin.reset_parameters()
        self.lin_edge.reset_parameters()
        for weight in (self.att_src, self.att_dst, self.att_edge):
            glorot(weight)
        zeros(self.bias)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """Returns the new rows."""
        size, (source, target) = x.size(0), edge_index
        h = linear(x, self.lin.weight.to(x.dtype)).view(size, *self.att_src.shape[1:])
        given = self.lin_edge.weight.view_as(self.att_edge) * self.att_edge
        slope = given.sum(-1).to(x.dtype)
        from_source = (h * self.att_src.to(x.dtype)).sum(-1)
        to_target = (h * self.att_dst.to(x.dtype)).sum(-1)
        # Loops are masked instead of dropped, which keeps the shapes static.
        is_loop = (source == target).unsqueeze(1)
        attr = edge_attr.masked_fill(is_loop, 0.0)
        ends = from_source.index_select(0, source) + to_target.index_select(0, target)
        score = leaky_relu(ends + attr * slope, self.negative_slope)
        count = segment_reduce((~is_loop).to(x.dtype), target, dim_size=size)
        mean = segment_reduce(attr, target, dim_size=size) / count.clamp(min=1)
        own = leaky_relu(from_source + to_target + mean * slope, self.negative_slope)
        score = torch.cat([score.masked_fill(is_loop, -torch.inf), own])
        edges = _with_loops(edge_index, size)
        weight = edge_softmax(score, edges[1], size)
        if weight.requires_grad and not torch.compiler.is_compiling():
            weight.register_hook(partial(_less_own, edges[1], source.size(0)))
        return attend(h, weight, edges).flatten(1) + self.bias.to(x.dtype)


class GCNLayer(Module):
    r"""Symmetrically normalised sum over neighbours.

    .. math::
        h'_j = \sum_i \frac{e_{ij}}{\sqrt{d_i d_j}} W h_i + b, \qquad
        d_j = \sum_i e_{ij}

    Args:
        in_channels: Width of the input.
        out_channels: Width of the output.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; edge_attr: ``[E, 1]``; returns
        ``[N, F']``.

    Note:
        Nodes without a loop get one of weight 1. Where the weights into a node add up
        to 0 (within rounding) or less, its edges count nothing.

    Example:
        >>> import torch
        >>> from pyg_pool.core.token_convs import GCNLayer
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> GCNLayer(3, 4)(torch.ones(2, 3), edges, torch.ones(2, 1)).shape
        torch.Size([2, 4])
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin = Linear(
            in_channels, out_channels, bias=False, weight_initializer="glorot"
        )
        self.bias = Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights anew; the bias is 0."""
        self.lin.reset_parameters()
        zeros(self.bias)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """Returns the new rows."""
        size, (source, target) = x.size(0), edge_index
        h = linear(x, self.lin.weight.to(x.dtype))
        loops = (source == target).to(x.dtype)
        own = 1 - segment_reduce(loops, target, dim_size=size).clamp(max=1)
        edges = _with_loops(edge_index, size)
        weight = torch.cat([edge_attr.view(-1).to(x.dtype), own])
        degree = segment_reduce(weight, edges[1], dim_size=size)
        # Below its own rounding error a sum of both signs is 0.
        terms = segment_reduce(weight.detach().abs(), edges[1], dim_size=size)
        is_there = degree > 16 * torch.finfo(x.dtype).eps * terms
        factor = degree.masked_fill(~is_there, 1.0).rsqrt() * is_there
        ends = factor.index_select(0, edges.reshape(-1)).view(2, -1)
        weight = (ends[0] * weight * ends[1]).unsqueeze(1)
        return attend(h.unsqueeze(1), weight, edges).squeeze(1) + self.bias.to(x.dtype)
