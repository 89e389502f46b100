"""Any PyG convolution by name, class or function, called with what it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import (
    ChebConv,
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GINEConv,
    GraphConv,
    SAGEConv,
    TransformerConv,
)

from pyg_pool.errors import check_choice
from pyg_pool.models.convs import (
    ColumnStochasticConv,
    MeanSkipConv,
    SymmetricConv,
    edge_weights,
    wide,
)
from pyg_pool.typing import OptTensor

__all__ = [
    "CONVS",
    "add_missing_loops",
    "apply_conv",
    "check_edge_attr",
    "edge_input",
    "make_conv",
]

Conv = str | type | Callable[[int, int], Module]
EdgeInput = Literal["none", "weight", "attr"]

CONVS: dict[str, type] = {
    "cheb": ChebConv,
    "column": ColumnStochasticConv,
    "gat": GATConv,
    "gatv2": GATv2Conv,
    "gcn": GCNConv,
    "gin": GINConv,
    "gine": GINEConv,
    "graph": GraphConv,
    "mean_skip": MeanSkipConv,
    "sage": SAGEConv,
    "symmetric": SymmetricConv,
    "transformer": TransformerConv,
}


def make_conv(
    owner: str,
    conv: Conv,
    in_channels: int,
    out_channels: int,
    *,
    edge_channels: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Module:
    """Builds one convolution from its name, class or factory.

    Args:
        owner: Name of the model, for messages.
        conv: A word of ``CONVS``, a PyG convolution class, or a function
            ``(in_channels, out_channels) -> module``.
        in_channels: Input width.
        out_channels: Output width.
        edge_channels: Width of the edge attributes, for classes with ``edge_dim``.
        options: Further arguments of the class.

    Returns:
        The module.

    Raises:
        ValueError: If the name is unknown, or options come with a function.
        TypeError: If the class does not know an option, or no module comes out.
    """
    if isinstance(conv, str):
        check_choice(owner, "conv", conv, CONVS)
        conv = CONVS[conv]
    extra = dict(options or {})
    if not isinstance(conv, type):
        if extra:
            raise ValueError(
                f"{owner} got conv_options={extra} together with a function as conv, "
                f"expected options for a name or class only; bind them in the "
                f"function."
            )
        module = conv(in_channels, out_channels)
    else:
        module = _from_class(conv, in_channels, out_channels, edge_channels, extra)
    if not isinstance(module, Module):
        raise TypeError(
            f"{owner} got a conv that built a {type(module).__name__}, expected a "
            f"torch.nn.Module; return a PyG convolution."
        )
    return module


def _from_class(
    conv: type,
    in_channels: int,
    out_channels: int,
    edge_channels: int | None,
    extra: dict[str, Any],
) -> Any:
    """A convolution of this class with the widths in their places."""
    names = inspect.signature(conv).parameters
    if edge_channels is not None and "edge_dim" in names:
        extra.setdefault("edge_dim", edge_channels)
    if extra.get("heads", 1) > 1 and "concat" in names:
        # Heads side by side would change the width of the layer.
        extra.setdefault("concat", False)
    if conv is ChebConv:
        extra.setdefault("K", 2)
    if issubclass(conv, (GINConv, GINEConv)):
        mlp = torch.nn.Sequential(
            torch.nn.Linear(in_channels, out_channels),
            torch.nn.ReLU(),
            torch.nn.Linear(out_channels, out_channels),
        )
        return conv(mlp, **extra)
    return conv(in_channels, out_channels, **extra)


def edge_input(conv: Module) -> EdgeInput:
    """What a convolution takes with each edge: a weight, attributes or nothing."""
    names = inspect.signature(conv.forward).parameters
    if "edge_weight" in names:
        return "weight"
    if "edge_attr" in names and getattr(conv, "edge_dim", 0) is not None:
        return "attr"
    return "none"


def apply_conv(
    conv: Module, takes: EdgeInput, x: Tensor, edge_index: Tensor, edge_attr: OptTensor
) -> Tensor:
    """Calls a convolution with as much of the edge attributes as it takes."""
    if isinstance(conv, GCNConv):
        # Without weights PyG forgets the 2 of improved=True, and with half precision
        # it counts degrees in that type, which stops at 256.
        given = edge_attr if takes == "weight" else None
        weight = edge_weights(given, edge_index, wide(x[:0]))
        return conv(x, edge_index, weight).to(x.dtype)
    if takes == "none" or edge_attr is None:
        return conv(x, edge_index)
    if takes == "weight":
        weight = edge_weights(edge_attr, edge_index, x)
        return conv(x, edge_index, edge_weight=weight)
    rows = edge_attr.unsqueeze(-1) if edge_attr.dim() == 1 else edge_attr
    return conv(x, edge_index, edge_attr=rows.to(x.dtype))


def check_edge_attr(
    owner: str, takes: EdgeInput, edge_channels: int | None, edge_attr: OptTensor
) -> None:
    """Raises unless the convolutions can use the edge attributes as given.

    Attributes that no convolution reads would be dropped in silence otherwise.
    """
    if edge_attr is None:
        if edge_channels is not None and takes == "attr":
            raise ValueError(
                f"{owner} got no edge_attr, expected [num_edges, {edge_channels}] "
                f"since it was built with edge_channels={edge_channels}; pass "
                f"edge_attr, or build it without edge_channels."
            )
        return
    width = 1 if edge_attr.dim() == 1 else edge_attr.size(-1)
    shape = list(edge_attr.shape)
    if takes == "none":
        raise ValueError(
            f"{owner} got edge_attr of shape {shape}, but its convolution takes no "
            f"edge weights and no edge attributes, expected none; leave it out, choose "
            f"another conv (with edge_channels={width} where it has edge_dim), or "
            f"build with use_edge_attr=False so that only the pooling sees it."
        )
    if takes == "weight" and width != 1:
        raise ValueError(
            f"{owner} got edge_attr of shape {shape}, expected [E] or [E, 1] because "
            f"its convolution takes scalar weights; choose a conv with edge attributes "
            f"such as 'gat' or 'gine', or build with use_edge_attr=False."
        )
    if takes == "attr" and edge_channels is not None and width != edge_channels:
        raise ValueError(
            f"{owner} got edge_attr of shape {shape}, expected {edge_channels} "
            f"channels; build it with edge_channels={width}."
        )


def add_missing_loops(
    edge_index: Tensor, edge_attr: OptTensor, num_nodes: int
) -> tuple[Tensor, OptTensor]:
    """Appends a self loop, with ones as attributes, to every node without one."""
    loops = edge_index[0].masked_select(edge_index[0] == edge_index[1])
    has_loop = torch.zeros(num_nodes, dtype=torch.bool, device=edge_index.device)
    missing = (~has_loop.index_fill(0, loops, True)).nonzero().view(-1)
    edge_index = torch.cat([edge_index, missing.expand(2, -1)], dim=1)
    if edge_attr is None:
        return edge_index, None
    ones = edge_attr.new_ones([missing.size(0), *edge_attr.shape[1:]])
    return edge_index, torch.cat([edge_attr, ones])
