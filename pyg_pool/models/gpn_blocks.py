"""The parts of a graph parsing network: MLPs and blocks of convolutions.

Layers stand at the places of the authors' program, so that its weights load.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.nn import Identity, LayerNorm, Linear, Module, ModuleList, ReLU, Sequential
from torch.nn.functional import linear
from torch_geometric.nn import GCNConv, GINConv

from pyg_pool.core.blocks import ReLUDropout, activation, run_layers
from pyg_pool.core.graph_level import GraphLevel
from pyg_pool.models.conv_factory import Conv, apply_conv, edge_input, make_conv
from pyg_pool.models.gpn_forms import OWNER
from pyg_pool.models.layers import reset

__all__ = ["ConvBlock", "NormMLP"]


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
                layers += [LayerNorm(width), *activation(dropout)]
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
                layers += activation(dropout)
        self.gnn = ModuleList(layers)
        self.norm = LayerNorm(channels) if num_layers > 0 else None
        self.takes = edge_input(layers[0]) if layers else "none"

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        for layer in (*self.gnn, self.norm):
            reset(layer)

    def forward(self, x: Tensor, graph: GraphLevel, use_edge_attr: bool) -> Tensor:
        """Returns new features of the nodes."""
        if self.norm is None:
            return x
        rows, attr = x, graph.edge_attr if use_edge_attr else None
        layers: list[Any] = list(self.gnn)
        for layer in layers:
            if isinstance(layer, (ReLUDropout, Identity)):
                rows = layer(rows)
            elif attr is None and _is_plain(layer):
                rows = linear(graph.propagate(rows), layer.lin.weight, layer.bias)
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
