"""The local counting network: labels on a root and some of its neighbours."""

from __future__ import annotations

from torch import Tensor
from torch.nn import Embedding, Linear, Module, ModuleList
from torch_geometric.nn import global_add_pool

from pyg_pool.relational import ResidualConv, lay_ground, local_stars
from pyg_pool.relational.checks import check_whole
from pyg_pool.relational.orders import position_orders

__all__ = ["LocalKLGNN"]


class LocalKLGNN(Module):
    r"""Counts patterns from the subgraphs of a root and ``l - 1`` of its neighbours.

    The network runs on the labelled nodes only, for every order of the neighbours'
    labels; a root with fewer neighbours takes all of them.

    Args:
        hidden_channels: Width of the network.
        out_channels: Size of each output row.
        l: Number of labels.
        num_layers: Number of layers.

    Shapes:
        edge_index: ``[2, E]``; batch: ``[N]``; returns ``[B, out_channels]``.

    Source:
        C. Zhou, X. Wang, M. Zhang. ICML 2023, the model for substructure counting.

    Example:
        >>> import torch
        >>> from pyg_pool.models import LocalKLGNN
        >>> LocalKLGNN(8, 1, l=3)(torch.tensor([[0, 1], [1, 2]]), num_nodes=3).shape
        torch.Size([1, 1])
    """

    def __init__(
        self,
        hidden_channels: int,
        out_channels: int,
        *,
        l: int = 3,  # noqa: E741
        num_layers: int = 2,
    ) -> None:
        super().__init__()
        widths = {"hidden_channels": hidden_channels, "out_channels": out_channels}
        check_whole("LocalKLGNN", 1, l=l, num_layers=num_layers, **widths)
        self.l = l
        self.ids = Embedding(l, hidden_channels)
        self.convs = ModuleList(
            ResidualConv(hidden_channels) for _ in range(num_layers)
        )
        self.order_out = Linear(hidden_channels, hidden_channels)
        self.copy_out = Linear(hidden_channels, hidden_channels)
        self.out = Linear(hidden_channels, out_channels)

    def forward(
        self,
        edge_index: Tensor,
        *,
        batch: Tensor | None = None,
        batch_size: int | None = None,
        num_nodes: int | None = None,
    ) -> Tensor:
        """Returns one row per graph."""
        ground = lay_ground(edge_index, batch, batch_size, num_nodes)
        size = ground.start.numel() - 1
        copies = local_stars(ground.edge_index, ground.batch, self.l, size)
        number = len(copies.tuples)
        total = self.order_out.weight.new_zeros((number, self.order_out.out_features))
        orders = position_orders(copies, keep_root=True)
        for order in orders:
            z = self.ids(order)
            for conv in self.convs:
                z = conv(z, copies.edge_index)
            pooled = global_add_pool(z, copies.pair_tuple, number)
            total = total + self.order_out(pooled).relu()
        r = self.copy_out(total / len(orders)).relu()
        out: Tensor = self.out(global_add_pool(r, copies.tuples.batch, size))
        return out
