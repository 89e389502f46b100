"""Convolutions of the two papers that PyG does not have.

They are a mean over the closed neighbourhood plus a linear skip
(:class:`MeanSkipConv`), a propagation in which every node shares its features out
in equal parts (:class:`ColumnStochasticConv`), and the graph convolution with a loop
of weight 2 on top of those that are there (:class:`SymmetricConv`). A degree of 0 is
never divided by, so that an isolated node gives no NaN.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear
from torch_geometric.nn import Linear, MessagePassing

from pyg_pool.typing import OptTensor

__all__ = ["ColumnStochasticConv", "MeanSkipConv", "SymmetricConv"]


def inverse_or_zero(x: Tensor) -> Tensor:
    """``1 / x``, and 0 with a zero gradient where ``x`` is 0."""
    is_zero = x == 0
    return torch.where(is_zero, 0.0, 1.0 / torch.where(is_zero, 1.0, x))


def wide(x: Tensor) -> Tensor:
    """Half precision as float32, everything else as it is."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def edge_weights(edge_weight: OptTensor, edge_index: Tensor, like: Tensor) -> Tensor:
    """Weights as ``[E]`` in the type of ``like``; ones where there are none."""
    if edge_weight is None:
        return like.new_ones(edge_index.size(1))
    return edge_weight.flatten().to(like.dtype)


class MeanSkipConv(MessagePassing):
    r"""Mean over the closed neighbourhood, plus a linear skip of the node itself.

    .. math::
        X' = \hat{D}^{-1} \hat{A} X \Theta + X \Theta', \qquad \hat{A} = A + I

    Args:
        in_channels: Size of each input row.
        out_channels: Size of each output row.
        bias: Whether to add a bias; the paper has none.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; edge_weight: ``[E]``, ``[E, 1]`` or
        ``None``; returns ``[N, F']``.

    Note:
        Self loops of the input are left out, since the closed neighbourhood counts
        the node once already. With weights it is a weighted mean whose divisor is
        the sum of the weights plus 1; negative weights are not meant. Copies of an
        edge count each. Means of half precision are taken in float32.

    Source:
        Cangea, Veličković, Jovanović, Kipf and Liò, "Towards Sparse Hierarchical
        Graph Classifiers", NeurIPS workshop on Relational Representation Learning,
        2018.

    Example:
        >>> import torch
        >>> from pyg_pool.models import MeanSkipConv
        >>> conv = MeanSkipConv(3, 8)
        >>> conv(torch.randn(4, 3), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([4, 8])
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, bias: bool = False
    ) -> None:
        super().__init__(aggr="sum")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.lin_rel = Linear(
            in_channels,
            out_channels,
            bias=bias,
            weight_initializer="glorot",
            bias_initializer="zeros",
        )
        self.lin_root = Linear(
            in_channels, out_channels, bias=False, weight_initializer="glorot"
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights anew."""
        super().reset_parameters()
        self.lin_rel.reset_parameters()
        self.lin_root.reset_parameters()

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: OptTensor = None
    ) -> Tensor:
        """Returns the new features, ``[N, F']``."""
        rows = wide(x)
        source, target = edge_index[0], edge_index[1]
        weight = edge_weights(edge_weight, edge_index, rows)
        # Masking instead of filtering keeps the shapes static.
        weight = weight * (source != target)
        total = rows.new_ones(x.size(0)).index_add(0, target, weight)
        summed = rows + self.propagate(edge_index, x=rows, edge_weight=weight)
        mean = (summed * inverse_or_zero(total).unsqueeze(-1)).to(x.dtype)
        out: Tensor = self.lin_rel(mean) + self.lin_root(x)
        return out

    def message(self, x_j: Tensor, edge_weight: Tensor) -> Tensor:
        """The weighted features of the source node."""
        return edge_weight.unsqueeze(-1) * x_j

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, "
            f"bias={self.lin_rel.bias is not None})"
        )


class _Propagation(MessagePassing):
    """Features times a matrix of the graph, then a linear layer."""

    def __init__(self, in_channels: int, out_channels: int, bias: bool) -> None:
        super().__init__(aggr="sum")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.lin = Linear(
            in_channels,
            out_channels,
            bias=bias,
            weight_initializer="glorot",
            bias_initializer="zeros",
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights anew; biases are 0."""
        super().reset_parameters()
        self.lin.reset_parameters()

    def spread(self, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
        """The matrix times ``x``."""
        raise NotImplementedError(
            f"{type(self).__name__} does not say how it spreads features, expected a "
            f"method spread(x, edge_index, weight); write it."
        )

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: OptTensor = None
    ) -> Tensor:
        """Returns the new features, ``[N, F']``."""
        # Spread in the narrower of the two widths.
        first = self.out_channels < self.in_channels
        rows = wide(linear(x, self.lin.weight) if first else x)
        weight = edge_weights(edge_weight, edge_index, rows)
        out = self.spread(rows, edge_index, weight).to(x.dtype)
        if not first:
            return self.lin(out)
        return out if self.lin.bias is None else out + self.lin.bias

    def message(self, x_j: Tensor, edge_weight: Tensor) -> Tensor:
        """The weighted features of the source node."""
        return edge_weight.unsqueeze(-1) * x_j

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, "
            f"bias={self.lin.bias is not None})"
        )


class ColumnStochasticConv(_Propagation):
    r"""Every node shares its features out among the nodes it points to.

    .. math::
        X' = G X W^\top + b, \qquad G = B D^{-1}, \quad D_{jj} = \sum_i B_{ij}

    Here :math:`B_{ij}` is the weight of the edge from j to i. Columns of G sum to 1,
    or to 0 for a node without outgoing edges.

    Args:
        in_channels: Size of each input row.
        out_channels: Size of each output row.
        bias: Whether to add a bias.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; edge_weight: ``[E]``, ``[E, 1]`` or
        ``None``; returns ``[N, F']``.

    Note:
        Adds no self loops: :class:`GraphUNet` does in its preset ``"authors"``. Sums
        of half precision are taken in float32.

    Source:
        Gao and Ji, "Graph U-Nets", ICML 2019, in the form of the authors' program for
        graph classification. Departure: a node of degree 0 gives a zero column here,
        NaN there.

    Example:
        >>> import torch
        >>> from pyg_pool.models import ColumnStochasticConv
        >>> conv = ColumnStochasticConv(3, 8)
        >>> conv(torch.randn(4, 3), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([4, 8])
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, bias: bool = True
    ) -> None:
        super().__init__(in_channels, out_channels, bias)

    def spread(self, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
        """``B D^{-1} x``."""
        total = x.new_zeros(x.size(0)).index_add(0, edge_index[0], weight)
        share = weight * inverse_or_zero(total).index_select(0, edge_index[0])
        return self.propagate(edge_index, x=x, edge_weight=share)


class SymmetricConv(_Propagation):
    r"""Graph convolution with a loop of fixed weight added to every node.

    .. math::
        X' = D^{-1/2} (A + c I) D^{-1/2} X W^\top + b,
        \quad D_{ii} = c + \sum_j A_{ij}

    Args:
        in_channels: Size of each input row.
        out_channels: Size of each output row.
        self_weight: Weight c of the loop; the paper has 2.
        bias: Whether to add a bias.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; edge_weight: ``[E]``, ``[E, 1]`` or
        ``None``; returns ``[N, F']``.

    Note:
        Loops of the input, such as those of a squared adjacency, keep their weight
        and c comes on top; PyG's ``GCNConv`` adds a loop only where there is none.
        A node whose weights sum to 0 or less receives and gives nothing. Sums of half
        precision are taken in float32.

    Source:
        Gao and Ji, "Graph U-Nets", ICML 2019.

    Example:
        >>> import torch
        >>> from pyg_pool.models import SymmetricConv
        >>> conv = SymmetricConv(3, 8)
        >>> conv(torch.randn(4, 3), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([4, 8])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        self_weight: float = 2.0,
        bias: bool = True,
    ) -> None:
        super().__init__(in_channels, out_channels, bias)
        self.self_weight = self_weight

    def spread(self, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
        """``D^{-1/2} (A + c I) D^{-1/2} x``."""
        total = x.new_full((x.size(0),), self.self_weight)
        total = total.index_add(0, edge_index[1], weight)
        is_positive = total > 0
        root = torch.where(is_positive, torch.where(is_positive, total, 1.0).rsqrt(), 0)
        x = x * root.unsqueeze(-1)
        out = self.propagate(edge_index, x=x, edge_weight=weight)
        return (out + self.self_weight * x) * root.unsqueeze(-1)
