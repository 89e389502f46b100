"""ID-MPNN: a stream of features, a stream of labels, and a network on both.

The two-stream form of Zhou, Wang and Zhang, ICML 2023, without their padding: copies
of different sizes lie one after the other.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn import Embedding, Linear, Module, ModuleList
from torch_geometric.nn import global_add_pool

from pyg_pool.errors import check_batch, check_choice, check_features
from pyg_pool.relational import (
    CopyPooling,
    RelationalPooling,
    ResidualConv,
    residual_mlp,
)
from pyg_pool.relational.blocks import copy_groups
from pyg_pool.relational.checks import check_whole
from pyg_pool.relational.copies import Copies
from pyg_pool.relational.orders import position_orders
from pyg_pool.relational.settings import check_attributes, check_copies
from pyg_pool.relational.tuples import lay_ground
from pyg_pool.typing import OptTensor

__all__ = ["IDMPNN"]

COMBINES = ("add", "hadamard_product", "cat")


class IDMPNN(Module):
    r"""Two-stream label-and-pool network.

    Features :math:`x` pass message passing once per graph; labels pass it once per
    tuple and order of its labels, and both are combined for each tuple.

    Args:
        in_channels: Number of node features.
        hidden_channels: Width of the network.
        out_channels: Size of each output row.
        l: Number of labels.
        domain: Tuples that get labels, see
            :func:`pyg_pool.relational.enumerate_tuples`.
        edge_channels: Width of ``edge_attr``, whose map scales messages; 0 for none.
        num_layers: Layers of the feature stream.
        num_layers_id: Layers of the label stream.
        num_layers_global: Layers on both together.
        num_layers_regression: Layers on the rows of graphs.
        combine: ``"add"``, ``"hadamard_product"`` or ``"cat"``.
        tuple_pool: Pooling over the tuples of a graph.
        drop_perm: Share of the orders of the labels left out by chance in training.
        num_samples: Tuples drawn of each graph in training.
        sample_in_eval: Draw in evaluation too.
        memory_limit: Bytes that may be needed; ``None`` for 80 % of what is free.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; edge_attr: ``[E, D]``; returns
        ``[B, out_channels]``.

    Source:
        C. Zhou, X. Wang, M. Zhang. From Relational Pooling to Subgraph GNNs: A
        Universal Framework for More Expressive Graph Neural Networks. ICML 2023.

    Example:
        >>> import torch
        >>> from pyg_pool.models import IDMPNN
        >>> model = IDMPNN(2, 8, 1, l=2)
        >>> model(torch.ones(3, 2), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([1, 1])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        l: int = 2,  # noqa: E741
        domain: str = "subset",
        edge_channels: int = 0,
        num_layers: int = 5,
        num_layers_id: int = 5,
        num_layers_global: int = 2,
        num_layers_regression: int = 2,
        combine: str = "hadamard_product",
        tuple_pool: str | Module = "mean",
        drop_perm: float = 0.0,
        num_samples: int | None = None,
        sample_in_eval: bool = False,
        memory_limit: int | None = None,
    ) -> None:
        super().__init__()
        check_choice("IDMPNN", "combine", combine, COMBINES)
        widths = {"in_channels": in_channels, "hidden_channels": hidden_channels}
        check_whole("IDMPNN", 1, l=l, out_channels=out_channels, **widths)
        depths = {"num_layers_id": num_layers_id, "num_layers": num_layers}
        depths["num_layers_global"] = num_layers_global
        depths["num_layers_regression"] = num_layers_regression
        check_whole("IDMPNN", edge_channels=edge_channels, **depths)
        self.in_channels, self.l, self.combine = in_channels, l, combine
        width = hidden_channels
        self.node = Linear(in_channels, width, bias=False)
        self.edge = Linear(edge_channels, width, bias=False) if edge_channels else None
        # Row l belongs to nobody, as in the authors' tables; row l + 1 to the rest.
        self.ids = Embedding(l + 2, width)
        self.features = ModuleList(ResidualConv(width) for _ in range(num_layers))
        self.labels = ModuleList(ResidualConv(width) for _ in range(num_layers_id))
        self.joint = ModuleList(ResidualConv(width) for _ in range(num_layers_global))
        self.label_out = Linear(width, width)
        both = 2 * width if combine == "cat" else width
        self.mix = residual_mlp(width, both)
        self.copy_out = Linear(width, width)
        self.rest = ModuleList(
            residual_mlp(width) for _ in range(num_layers_regression)
        )
        self.out = Linear(width, out_channels)
        # It lists the tuples and looks at their cost; its base is this network.
        self.lister = RelationalPooling(
            torch.nn.Identity(),
            l,
            domain=domain,
            tuple_pool=tuple_pool,
            num_samples=num_samples,
            sample_in_eval=sample_in_eval,
            memory_limit=memory_limit,
            perms=True,
            drop_perm=drop_perm,
        )

    @property
    def pooling(self) -> CopyPooling:
        """The pooling over tuples."""
        return self.lister.pooling

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        for module in self.modules():
            if isinstance(module, (Linear, Embedding, torch.nn.LayerNorm)):
                module.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: OptTensor = None,
        *,
        batch: OptTensor = None,
        batch_size: int | None = None,
        copies: Copies | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """Returns one row per graph; ``generator`` draws tuples and orders."""
        x = check_features("IDMPNN", x, self.in_channels)
        size = check_batch("IDMPNN", batch, batch_size, x.size(0))
        ground = lay_ground(edge_index, batch, size, x.size(0))
        edge_index = ground.edge_index
        width = 0 if self.edge is None else self.edge.in_features
        edge_attr = check_attributes("IDMPNN", edge_index, edge_attr, width)
        if copies is None:
            copies = self.lister.make_copies(edge_index, ground.batch, size, generator)
        else:
            check_copies("IDMPNN", copies, ground, self.l)
        scale = None
        if self.edge is not None and edge_attr is not None:
            scale = self.edge(edge_attr.to(x.dtype))
        h = self.node(x)
        for conv in self.features:
            h = conv(h, edge_index, scale)
        orders = position_orders(copies)
        if self.training or self.lister.sample_in_eval:
            orders = self.lister.labeller.kept(orders, generator)
        z = self.label_out(self._label_stream(copies, orders, scale, h)).relu()
        rows = h.index_select(0, copies.pair_node)
        if self.combine == "cat":
            y = torch.cat([rows, z], dim=-1)
        else:
            y = rows + z if self.combine == "add" else rows * z
        y = self.mix(y)
        groups = copy_groups(copies)
        joint: Any = self.joint
        for conv in joint:
            y = conv.on_groups(y, groups, scale)
        number = len(copies.tuples)
        r = self.copy_out(global_add_pool(y, copies.pair_tuple, number)).relu()
        r = self.pooling.from_copies(r, copies)
        for mlp in self.rest:
            r = r + mlp(r)
        out: Tensor = self.out(r)
        return out

    def _label_stream(
        self, copies: Copies, orders: list[Tensor], scale: OptTensor, like: Tensor
    ) -> Tensor:
        """What message passing makes of the labels, mean over their orders."""
        size = copies.num_pairs
        number = self.l + 1
        every = [torch.where(o >= 0, o, number) for o in orders]
        z = self.ids(torch.cat(every)).to(like.dtype)
        count = len(every)
        groups = copy_groups(copies, count)
        labels: Any = self.labels
        for conv in labels:
            z = conv.on_groups(z, groups, scale)
        return z.view(count, size, z.size(1)).mean(0)
