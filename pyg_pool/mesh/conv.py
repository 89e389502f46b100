"""Primal-dual convolution: attention between edges decides how faces mix.

Milano et al., "Primal-Dual Mesh Convolutional Neural Networks", NeurIPS 2020, after
Monti et al., "Dual-Primal Graph Convolutional Networks". Departure from the authors'
program: the attention that is returned is that before dropout, so that a pooling
layer does not rank noise.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import Module, Parameter
from torch.nn.functional import dropout, leaky_relu

from pyg_pool.core.attention import attend, edge_softmax
from pyg_pool.errors import check_edges, check_features

__all__ = ["PrimalDualConv", "PrimalDualConvOutput"]

OWNER = "PrimalDualConv"


class PrimalDualConvOutput(NamedTuple):
    """What a primal-dual convolution returns.

    Args:
        x: ``[F, H Op]`` (``[F, Op]`` without ``concat``) features of the faces.
        x_dual: ``[D, H Od]`` features of the dual nodes.
        attention: ``[2P, H]`` attention of each edge, before dropout.
    """

    x: Tensor
    x_dual: Tensor
    attention: Tensor


class PrimalDualConv(Module):
    r"""Attention on the dual graph, and by its outcome attention on the primal one.

    .. math::
        \mathbf{d}'_t &= \mathrm{ReLU}\Bigl(\sum_{s \to t} \mathrm{softmax}_s
        \bigl(\sigma(\mathbf{a}_1^\top \mathbf{W}_d \mathbf{d}_t
        + \mathbf{a}_2^\top \mathbf{W}_d \mathbf{d}_s)\bigr)
        \mathbf{W}_d \mathbf{d}_s\Bigr)

        \mathbf{x}'_i &= \mathrm{ReLU}\Bigl(\sum_{j \to i} \mathrm{softmax}_j
        \bigl(\sigma(\mathbf{c}^\top \mathbf{d}'_{ji})\bigr)
        \mathbf{W}_p \mathbf{x}_j\Bigr)

    where :math:`\sigma` is the leaky ReLU, for each head by itself.

    Args:
        in_channels: Number of features of a face.
        in_channels_dual: Number of features of a dual node.
        out_channels: Features of a face per head.
        out_channels_dual: Features of a dual node per head; ``None`` takes
            ``out_channels``.
        heads: Number of heads H.
        concat: Whether the heads of the faces are joined, or averaged.
        concat_dual: The same for the dual nodes; averaging needs one head.
        bias: Whether both parts add a bias.
        negative_slope: Slope of the leaky ReLU.
        dropout: Rate at which attention is dropped, in training.
        dual_self_loops: Whether a dual node attends to itself. Loops among the given
            edges never count.

    Shapes:
        x: ``[F, Cp]``; x_dual: ``[D, Cd]``; edge_index: ``[2, 2P]`` int64;
        edge_index_dual: ``[2, Q]`` int64; edge_to_dual: ``[2P]`` int64.

    Raises:
        ValueError: If options or shapes do not fit.

    Note:
        A face never sees its own features within one layer; one without neighbours
        gives relu(bias). The softmax is computed in float32 for half precision.
        Cost: two products with weights, and O((Q + 2P) H C) for the sums, with no row
        per edge held on the CPU.

    Source:
        Milano, Loquercio, Rosinol, Scaramuzza and Carlone, "Primal-Dual Mesh
        Convolutional Neural Networks", NeurIPS 2020, section 3.2.

    Example:
        >>> import torch
        >>> from pyg_pool.mesh import PrimalDualConv
        >>> row = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])  # three faces
        >>> dual, links = torch.tensor([0, 0, 1, 1]), torch.tensor([[0, 1], [1, 0]])
        >>> conv = PrimalDualConv(1, 7, 8, heads=3)
        >>> out = conv(torch.ones(3, 1), torch.ones(2, 7), row, links, dual)
        >>> out.x.shape, out.x_dual.shape, out.attention.shape
        (torch.Size([3, 24]), torch.Size([2, 24]), torch.Size([4, 3]))
    """

    def __init__(
        self,
        in_channels: int,
        in_channels_dual: int,
        out_channels: int,
        out_channels_dual: int | None = None,
        *,
        heads: int = 1,
        concat: bool = True,
        concat_dual: bool = True,
        bias: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        dual_self_loops: bool = False,
    ) -> None:
        super().__init__()
        if not concat_dual and heads > 1:
            raise ValueError(
                f"{OWNER} got concat_dual=False with heads={heads}, expected one head, "
                f"as every head of the faces reads its own head of the dual nodes; "
                f"pass heads=1 or leave concat_dual out."
            )
        width_dual = out_channels if out_channels_dual is None else out_channels_dual
        self.in_channels, self.in_channels_dual = in_channels, in_channels_dual
        self.heads, self.negative_slope = heads, negative_slope
        self.dual_self_loops = dual_self_loops
        self.dual = _DualPart(in_channels_dual, width_dual, heads, bias)
        self.primal = _PrimalPart(in_channels, out_channels, width_dual, heads, bias)
        self.primal.concat = concat
        if bias and not concat:
            self.primal.bias = Parameter(torch.zeros(out_channels))
        self.out_channels = out_channels * (heads if concat else 1)
        self.out_channels_dual = width_dual * heads
        for part in (self.dual, self.primal):
            part.negative_slope, part.dropout = negative_slope, dropout

    def reset_parameters(self) -> None:
        """Draws weights by Glorot and Bengio's rule; biases are 0."""
        self.dual.reset_parameters()
        self.primal.reset_parameters()

    def forward(
        self,
        x: Tensor,
        x_dual: Tensor,
        edge_index: Tensor,
        edge_index_dual: Tensor,
        edge_to_dual: Tensor,
    ) -> PrimalDualConvOutput:
        """Returns features of faces and dual nodes, and the attention of the edges.

        Args:
            x: Features of the faces.
            x_dual: Features of the dual nodes.
            edge_index: Adjacent faces, both directions.
            edge_index_dual: Links between dual nodes.
            edge_to_dual: Dual node of each edge.
        """
        x = check_features(OWNER, x, self.in_channels)
        x_dual = check_features(OWNER, x_dual, self.in_channels_dual)
        edge_index = check_edges(OWNER, edge_index, edge_to_dual, x.size(0))
        links = check_edges(OWNER, edge_index_dual, None, x_dual.size(0))
        is_loop = links[0] == links[1]
        if self.dual_self_loops:
            own = torch.arange(x_dual.size(0), device=x.device)
            links = torch.cat([links, own.expand(2, -1)], dim=1)
            is_loop = torch.cat([is_loop, torch.zeros_like(own, dtype=torch.bool)])
        x_dual = self.dual(x_dual, links, is_loop)
        x, attention = self.primal(x, x_dual, edge_index, edge_to_dual)
        return PrimalDualConvOutput(x, x_dual, attention)

    def extra_repr(self) -> str:
        """Widths and heads."""
        return (
            f"{self.in_channels}, {self.in_channels_dual}, {self.out_channels}, "
            f"{self.out_channels_dual}, heads={self.heads}"
        )


class _Part(Module):
    """Weight, attention vector and bias of one of the two graphs."""

    def __init__(
        self, in_channels: int, width: int, attention: int, heads: int, bias: bool
    ) -> None:
        super().__init__()
        self.heads, self.width = heads, width
        self.negative_slope, self.dropout = 0.2, 0.0
        self.weight = Parameter(torch.empty(in_channels, heads * width))
        self.att = Parameter(torch.empty(1, heads, attention))
        self.bias: Parameter | None = None
        if bias:
            self.bias = Parameter(torch.zeros(heads * width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights anew."""
        for weight in (self.weight, self.att):
            # Not of one head: the limit counts rows and columns as they are stored.
            limit = (6.0 / (weight.size(-2) + weight.size(-1))) ** 0.5
            torch.nn.init.uniform_(weight, -limit, limit)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def weigh(
        self, score: Tensor, rows: Tensor, edges: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Weighted sums ``[N, H, C]``, and the weights before dropout."""
        score = leaky_relu(score, self.negative_slope)
        alpha = edge_softmax(score, edges[1], rows.size(0))
        used = dropout(alpha, self.dropout, self.training)
        rows = rows.view(-1, self.heads, self.width)
        return attend(rows, used.to(rows.dtype), edges), alpha

    def finish(self, out: Tensor) -> Tensor:
        """Bias and ReLU."""
        return (out if self.bias is None else out + self.bias).relu_()


class _DualPart(_Part):
    """Graph attention between the dual nodes."""

    def __init__(self, in_channels: int, width: int, heads: int, bias: bool) -> None:
        super().__init__(in_channels, width, 2 * width, heads, bias)

    def forward(self, x: Tensor, edges: Tensor, is_loop: Tensor) -> Tensor:
        """Returns the new features, heads side by side."""
        # a . (W x) as (W a) . x: no copy of the rows for the scores.
        by_head = self.weight.view(-1, self.heads, 1, self.width)
        vectors = (by_head * self.att.view(self.heads, 2, self.width)).sum(-1)
        node = (x @ vectors.flatten(1)).view(-1, self.heads, 2)
        at_target, at_source = node.unbind(-1)
        score = at_target.index_select(0, edges[1])
        score = score + at_source.index_select(0, edges[0])
        score = score.masked_fill(is_loop.unsqueeze(-1), -torch.inf)
        out, _ = self.weigh(score, x @ self.weight, edges)
        return self.finish(out.flatten(1))


class _PrimalPart(_Part):
    """Attention between the faces, scored by the dual nodes between them."""

    def __init__(
        self, in_channels: int, width: int, width_dual: int, heads: int, bias: bool
    ) -> None:
        super().__init__(in_channels, width, width_dual, heads, bias)
        self.concat = True

    def forward(
        self, x: Tensor, x_dual: Tensor, edges: Tensor, edge_to_dual: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns the new features and the attention."""
        # One column per head, zero elsewhere: a plain product without a copy of rows.
        own = torch.eye(self.heads, dtype=self.att.dtype, device=self.att.device)
        vectors = (self.att[0].unsqueeze(-1) * own.unsqueeze(1)).flatten(0, 1)
        node = x_dual @ vectors
        score = node.index_select(0, edge_to_dual)
        out, alpha = self.weigh(score, x @ self.weight, edges)
        out = out.flatten(1) if self.concat else out.mean(1)
        return self.finish(out), alpha
