"""The parts of a graph parsing network: MLPs, blocks of convolutions, its graph.

Layers stand at the places of the authors' program, so that its weights load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import Dropout, LayerNorm, Linear, Module, ModuleList, ReLU, Sequential
from torch_geometric.nn import GCNConv, GINConv

from pyg_pool.core import PoolOutput
from pyg_pool.core.blocks import run_layers
from pyg_pool.kernels import coalesce
from pyg_pool.kernels.pairs import distinct_pairs
from pyg_pool.kernels.propagate import degree_scale, propagate
from pyg_pool.kernels.segment import segment_count
from pyg_pool.models.conv_factory import Conv, apply_conv, edge_input, make_conv
from pyg_pool.models.gpn_forms import OWNER
from pyg_pool.models.layers import reset
from pyg_pool.models.pool_stack import Graph
from pyg_pool.typing import OptTensor

__all__ = ["ConvBlock", "NormMLP", "ParsedLevel", "undirected"]


@dataclass
class ParsedLevel:
    """A graph on the way up, with what its convolutions share.

    Attributes:
        edge_index: Edges in both directions, without loops and repeats.
        edge_attr: Their weights or attributes.
        batch: Graph of each node.
        batch_size: Number of graphs.
        num_nodes: Number of nodes.
    """

    edge_index: Tensor
    edge_attr: OptTensor
    batch: Tensor
    batch_size: int
    num_nodes: int
    _scale: dict[torch.dtype, Tensor] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, out: PoolOutput) -> ParsedLevel:
        """The graph that a pooling made."""
        graph = (out.edge_index, out.edge_attr, out.batch, out.batch_size)
        return cls(*graph, out.x.size(0))

    @property
    def sizes(self) -> Tensor:
        """Number of nodes of each graph."""
        return segment_count(self.batch, self.batch_size)

    def scale(self, dtype: torch.dtype) -> Tensor:
        """Factor of each node in the symmetric normalisation."""
        wide = torch.promote_types(dtype, torch.float32)
        if wide not in self._scale:
            self._scale[wide] = degree_scale(self.edge_index, self.num_nodes, wide)
        return self._scale[wide]


class NormMLP(Module):
    """Linear layers with LayerNorm, ReLU and dropout between them.

    Args:
        in_channels: Width of the input.
        hidden_channels: Width inside.
        out_channels: Width of the output.
        num_layers: Number of linear layers; 0 for the identity.
        dropout: Dropout rate.
        act_final: Whether LayerNorm, ReLU and dropout follow the last layer too;
            never after a single layer.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        dropout: float,
        *,
        act_final: bool = False,
    ) -> None:
        super().__init__()
        layers: list[Module] = []
        width = in_channels
        for step in range(num_layers):
            is_last = step == num_layers - 1
            wanted = out_channels if is_last else hidden_channels
            layers.append(Linear(width, wanted))
            width = wanted
            if not is_last or (act_final and num_layers > 1):
                layers += [LayerNorm(width), ReLU(), Dropout(dropout)]
        self.mlp = Sequential(*layers)

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        for layer in self.mlp:
            reset(layer)

    def forward(self, x: Tensor) -> Tensor:
        """Returns transformed rows."""
        out: Tensor = self.mlp(x)
        return out


class ConvBlock(Module):
    """Convolutions, with ReLU and dropout between them, their input added at the end.

    Args:
        conv: Convolution, as :func:`make_conv` takes it; ``"gin"`` is that of the
            authors, with a ReLU at the end of its MLP.
        channels: Width.
        num_layers: Number of convolutions; 0 for the identity.
        dropout: Dropout rate.
        act_final: Whether ReLU and dropout follow the last one too.
        edge_channels: Width of the edge attributes, where the convolution takes any.
        options: Further arguments of the convolution.
    """

    def __init__(
        self,
        conv: Conv,
        channels: int,
        num_layers: int,
        dropout: float,
        *,
        act_final: bool = False,
        edge_channels: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        layers: list[Module] = []
        for step in range(num_layers):
            layers.append(_conv(conv, channels, edge_channels, options))
            if act_final or step < num_layers - 1:
                layers += [ReLU(), Dropout(dropout)]
        self.gnn = ModuleList(layers)
        self.norm = LayerNorm(channels) if num_layers > 0 else None
        self.takes = edge_input(layers[0]) if layers else "none"

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        for layer in (*self.gnn, self.norm):
            reset(layer)

    def forward(self, x: Tensor, graph: ParsedLevel, use_edge_attr: bool) -> Tensor:
        """Returns new features of the nodes."""
        if self.norm is None:
            return x
        rows, attr = x, graph.edge_attr if use_edge_attr else None
        layers: list[Any] = list(self.gnn)
        for layer in layers:
            if isinstance(layer, (ReLU, Dropout)):
                rows = layer(rows)
            elif attr is None and _is_plain(layer):
                rows = propagate(
                    layer.lin(rows), graph.edge_index, graph.scale(rows.dtype)
                )
                rows = rows if layer.bias is None else rows + layer.bias
            else:
                rows = apply_conv(layer, self.takes, rows, graph.edge_index, attr)
        return run_layers([self.norm], x + rows)


def _conv(
    conv: Conv,
    channels: int,
    edge_channels: int | None,
    options: Mapping[str, Any] | None,
) -> Module:
    """One convolution that keeps the width."""
    if conv == "gin":
        layers = [Linear(channels, channels), ReLU(), Linear(channels, channels)]
        module = GINConv(Sequential(*layers, ReLU()), **dict(options or {}))
        if "eps" in dict(module.named_buffers()):
            # A constant, of which the authors' files know nothing.
            eps = module.eps
            del module.eps
            module.register_buffer("eps", eps, persistent=False)
        return module
    return make_conv(
        OWNER, conv, channels, channels, edge_channels=edge_channels, options=options
    )


def _is_plain(conv: Any) -> bool:
    """Whether this is PyG's GCN with its usual normalisation."""
    return (
        type(conv) is GCNConv
        and conv.normalize
        and conv.add_self_loops
        and not conv.improved
    )


def undirected(graph: Graph, num_nodes: int, symmetrise: bool) -> ParsedLevel:
    """The graph without loops and repeats, each edge there in both directions.

    Args:
        graph: Checked input.
        num_nodes: Number of its nodes.
        symmetrise: Whether edges of one direction get the other one.

    Raises:
        ValueError: If edges have one direction only and are not to be symmetrised.
    """
    edges, attr = _tidied(graph.edge_index, graph.edge_attr, num_nodes)
    expected = 2 * distinct_pairs(edges, num_nodes).size(1)
    if symmetrise and edges.size(1) != expected:
        attr = None if attr is None else torch.cat([attr, attr])
        edges = torch.cat([edges, edges.flip(0)], dim=1)
        edges, attr = coalesce(edges, attr, num_nodes, "mean")
    if edges.size(1) != expected:
        raise ValueError(
            f"{OWNER} got {expected - edges.size(1)} edges without their opposite "
            f"among {edges.size(1)} distinct ones, expected an undirected graph; list "
            f"both directions, or build it with to_undirected=True."
        )
    batch = graph.batch
    if batch is None:
        batch = edges.new_zeros(num_nodes)
    return ParsedLevel(edges, attr, batch, graph.batch_size, num_nodes)


def _tidied(
    edge_index: Tensor, edge_attr: OptTensor, num_nodes: int
) -> tuple[Tensor, OptTensor]:
    """Edges sorted, without loops, parallel ones merged by their mean."""
    kept = (edge_index[0] != edge_index[1]).nonzero().view(-1)
    if kept.size(0) != edge_index.size(1):
        edge_index = edge_index.index_select(1, kept)
        edge_attr = None if edge_attr is None else edge_attr.index_select(0, kept)
    return coalesce(edge_index, edge_attr, num_nodes, "mean")
