"""KLGNN: labels on l nodes, a base network of power k on every copy, pooling.

Zhou, Wang and Zhang, "From Relational Pooling to Subgraph GNNs", ICML 2023. In their
joint form the message passing of the last stage does nothing; here all layers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Generator, Tensor
from torch.nn import Dropout, Linear, Module, ReLU, Sequential

from pyg_pool.errors import check_features
from pyg_pool.models.id_mpnn import IDMPNN
from pyg_pool.models.kl_options import check_kl_options, taken_of
from pyg_pool.models.layers import reset
from pyg_pool.relational import (
    ContextGIN,
    CopyGIN,
    FWLNet,
    RelationalPooling,
    preset_options,
)
from pyg_pool.relational.copies import Copies
from pyg_pool.relational.gin import gin_mlp
from pyg_pool.relational.labeller import Labeller
from pyg_pool.relational.settings import check_attributes
from pyg_pool.typing import OptTensor

__all__ = ["KLGNN"]


class KLGNN(Module):
    r"""Network of the power of k,l-WL, for graphs or nodes.

    .. math::
        y_G = \mathrm{head}\Big( \mathop{\mathrm{pool}}_{t}\ \mathrm{mlp}\big(
        \mathop{\mathrm{pool}}_{u}\ \mathrm{base}(G^t)_u \big) \Big)

    The map between the poolings is a linear one, the norm and ReLU; with ``l=0`` there
    is none.

    Args:
        in_channels: Number of node features.
        hidden_channels: Width of the network.
        out_channels: Size of each output row.
        num_layers: Layers of the base network.
        k: 1 for message passing (GIN), 2 for a 2-FWL network on pairs of nodes.
        l: Number of labels.
        streams: ``"joint"``: one network on features and labels. ``"two"``: features
            once per graph, labels per tuple, see :class:`IDMPNN`.
        domain: Tuples that get labels, see
            :func:`pyg_pool.relational.enumerate_tuples`.
        ordered: Whether labels are told apart.
        encoding: ``"mark"``, ``"spd"``, ``"resistance"``, ``"learned"`` for a learned
            row per label, ``"given"`` for the ``label`` of each call, or ``"none"``.
        dmax: Largest distance of ``encoding="spd"``.
        label_channels: Width of learned and given labels.
        label_join: ``"cat"``, ``"add"`` or ``"multiply"`` for these.
        ego: Radius of the balls that copies are cut to; ``None`` for whole graphs.
        ego_mode: ``"root"``, ``"union"`` or ``"intersection"``.
        readout: ``"tuple"``, ``"node"``, ``"root"`` or ``"labelled"``.
        level: ``"graph"`` or ``"node"``.
        node_pool: Pooling over nodes.
        tuple_pool: Pooling over tuples.
        nested: Pooling for each position of the tuples.
        context: What layers read beside their copy, see
            :class:`pyg_pool.relational.ContextGIN`.
        policy: ``"mark"``, ``"delete_node"`` or ``"delete_edge"``.
        perms: Run every order of the labels.
        drop_perm: Share of these orders that is left out by chance in training.
        edge_channels: Width of ``edge_attr``; 0 for none.
        norm: ``"batch"``, ``"layer"`` or ``"none"`` in the layers.
        dropout: Rate in front of the last linear map.
        max_distance: For ``k=2``: only pairs of nodes within this distance.
        num_samples: Tuples drawn of each graph in training.
        sample_in_eval: Draw in evaluation too.
        chunk_size: Tuples at a time, recomputed in the backward pass.
        memory_limit: Bytes that may be needed; ``None`` for 80 % of what is free.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; edge_attr: ``[E, D]``; batch: ``[N]``
        ascending; returns ``[B, out_channels]`` or ``[N, out_channels]``.

    Raises:
        ValueError: If options do not go together, or the memory would not do.

    Source:
        C. Zhou, X. Wang, M. Zhang. From Relational Pooling to Subgraph GNNs: A
        Universal Framework for More Expressive Graph Neural Networks. ICML 2023.

    Example:
        >>> import torch
        >>> from pyg_pool.models import KLGNN
        >>> model = KLGNN(2, 16, 3, l=2, domain="star", ego=3)
        >>> model(torch.ones(3, 2), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([1, 3])
        >>> KLGNN.from_preset("i2_gnn", 2, 16, 3).network.domain
        'star'
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 4,
        *,
        k: int = 1,
        l: int = 1,  # noqa: E741
        streams: str = "joint",
        domain: str = "distinct",
        ordered: bool = True,
        encoding: str = "mark",
        dmax: int = 5,
        label_channels: int = 0,
        label_join: str = "cat",
        ego: int | None = None,
        ego_mode: str = "root",
        readout: str = "tuple",
        level: str = "graph",
        node_pool: str | Module = "sum",
        tuple_pool: str | Module = "mean",
        nested: Sequence[str | Module] | None = None,
        context: Sequence[str] = (),
        policy: str = "mark",
        perms: bool = False,
        drop_perm: float = 0.0,
        edge_channels: int = 0,
        norm: str = "batch",
        dropout: float = 0.0,
        max_distance: int | None = None,
        num_samples: int | None = None,
        sample_in_eval: bool = False,
        chunk_size: int | None = None,
        memory_limit: int | None = None,
    ) -> None:
        check_kl_options(type(self), locals())
        super().__init__()
        self.in_channels, self.k, self.l, self.streams = in_channels, k, l, streams
        self.edge_channels = edge_channels
        common: dict[str, Any] = {"domain": domain, "memory_limit": memory_limit}
        drawn: dict[str, Any] = {
            "num_samples": num_samples,
            "sample_in_eval": sample_in_eval,
        }
        labels: dict[str, Any] = {
            "ordered": ordered,
            "encoding": encoding,
            "dmax": dmax,
        }
        width = hidden_channels
        depth: dict[str, Any] = {"l": l, "num_layers": num_layers, **common}
        depth["edge_channels"] = edge_channels
        if k == 2:
            pool: Any = tuple_pool
            self.network: Any = FWLNet(
                in_channels, width, width, max_distance=max_distance, tuple_pool=pool,
                **labels, **depth,
            )  # fmt: skip
        elif streams == "two":
            self.network = IDMPNN(
                in_channels, width, width, tuple_pool=tuple_pool, drop_perm=drop_perm,
                num_layers_id=num_layers, **drawn, **depth,
            )  # fmt: skip
        else:
            labels.update(label_channels=label_channels, label_join=label_join)
            start = in_channels
            if policy == "mark":
                wide: Any = {
                    "channels": label_channels,
                    "join": label_join,
                    "dmax": dmax,
                }
                start += Labeller(l, encoding, ordered=ordered, **wide).width
            cut = {"ego": ego, "ego_mode": ego_mode, "policy": policy, "perms": perms}
            labels["drop_perm"] = drop_perm
            pools = {"node_pool": node_pool, "tuple_pool": tuple_pool, "nested": nested}
            more: dict[str, Any] = {"level": level, "chunk_size": chunk_size}
            more.update(**cut, **pools, **labels, **drawn, **common)
            base = _base(start, width, num_layers, context, edge_channels, norm)
            more["middle"] = gin_mlp(width, width, norm)[:-1] if l else None
            self.network = RelationalPooling(base, l, readout=readout, **more)
        self.head = Sequential(
            Linear(width, width), ReLU(), Dropout(dropout), Linear(width, out_channels)
        )

    @classmethod
    def from_preset(
        cls,
        name: str,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 4,
        *,
        edge_channels: int = 0,
    ) -> KLGNN:
        """A network by its name in the literature, see ``relational.PRESETS``."""
        options = preset_options(name)
        sizes = in_channels, hidden_channels, out_channels, num_layers
        return cls(*sizes, edge_channels=edge_channels, **options)

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        reset(self.network)
        for layer in self.head:
            reset(layer)

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
        label: OptTensor = None,
    ) -> Tensor:
        """Returns one row per graph, or per node.

        ``copies``, ``generator`` and ``label`` are those of
        :class:`pyg_pool.relational.RelationalPooling`.
        """
        x = check_features("KLGNN", x, self.in_channels)
        edge_attr = check_attributes("KLGNN", edge_index, edge_attr, self.edge_channels)
        edge_attr = None if edge_attr is None else edge_attr.to(x.dtype)
        given: dict[str, Any] = {"batch": batch, "batch_size": batch_size}
        more = {"copies": copies, "generator": generator, "label": label}
        given.update(taken_of(more, self.k, self.streams))
        out: Tensor = self.head(self.network(x, edge_index, edge_attr, **given))
        return out


def _base(
    in_channels: int,
    channels: int,
    num_layers: int,
    context: Sequence[str],
    edge_channels: int,
    norm: str,
) -> Module:
    """The message passing that runs on the copies."""
    sizes = in_channels, channels, num_layers
    if context:
        return ContextGIN(
            *sizes, tuple(context), edge_channels=edge_channels, norm=norm
        )
    return CopyGIN(*sizes, edge_channels=edge_channels, norm=norm)
