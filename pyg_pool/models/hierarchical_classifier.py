r"""A graph classifier that reads out every level of a pooled graph.

Convolution and pooling alternate; the readouts of all levels are added up and go
into a classifier. Departures from the paper: any convolution, pooling and readout
may take the place of its own, levels may also be joined side by side, and the levels
may come from a hierarchy computed beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import Module, ModuleList

from pyg_pool.core import Hierarchy, PoolOutput
from pyg_pool.core.naming import rename_on_load, spell_call
from pyg_pool.models.classifier_forms import (
    OWNER,
    classifier_form,
    combined_width,
    example_names,
    readout_words,
)
from pyg_pool.models.conv_factory import (
    Conv,
    apply_conv,
    check_edge_attr,
    edge_input,
    make_conv,
)
from pyg_pool.models.layers import Head, NodeNorm, Norm, Readout, Words, make_act, reset
from pyg_pool.models.pool_stack import (
    Graph,
    Pool,
    PoolStack,
    graph_of,
    hierarchy_of,
    per_level,
    sum_losses,
)
from pyg_pool.typing import Activation, NodeReduce, OptTensor

__all__ = ["HierarchicalClassifier", "HierarchicalOutput"]


@dataclass
class HierarchicalOutput:
    """What a hierarchical classifier computed.

    Attributes:
        out: ``[B, out_channels]`` logits, as ``forward`` returns them.
        hierarchy: The levels with their selections.
        readouts: ``[B, R]`` readout of each pooled level, finest first.
        readout: Their sum or concatenation, the input of the classifier.
        loss: Sum of the losses of the pooling operators, a scalar.
    """

    out: Tensor
    hierarchy: Hierarchy
    readouts: list[Tensor]
    readout: Tensor
    loss: Tensor


class HierarchicalClassifier(Module):
    r"""Sparse hierarchical graph classifier.

    .. math::
        X_l = \mathrm{pool}_l(\sigma(\mathrm{conv}_l(X_{l-1}))), \qquad
        s = \sum_l \bigl(\mathrm{mean}(X_l) \,\Vert\, \max(X_l)\bigr), \qquad
        \mathrm{logits} = \mathrm{MLP}(s)

    Args:
        in_channels: Size of each input row.
        hidden_channels: Width of every level.
        out_channels: Number of classes or targets.
        num_levels: Number of convolution and pooling steps.
        ratio: Share of nodes kept (float in (0, 1]) or their number (int) per graph;
            one value, or one per level, the last of which repeats.
        preset: ``"paper"``: mean over the closed neighbourhood plus linear skip,
            without bias and blind to self loops, gPool with tanh gate, mean then max,
            one hidden layer. ``"pyg_example"`` is the network of PyG's example and
            loads its weights: ``GraphConv``, max then mean, two hidden layers, dropout
            0.5 after the first. ``None``: GCN and gPool's own defaults. Options given
            explicitly win over the preset.
        conv: Word, PyG class or function ``(in_channels, out_channels) -> module``,
            as in :class:`GraphUNet`.
        conv_options: Further arguments of the convolution.
        edge_channels: Width of ``edge_attr``, for convolutions with ``edge_dim``.
        use_edge_attr: Whether convolutions see edge weights and attributes; pooling
            operators always do.
        act: Activation after every convolution and in the classifier.
        norm: Normalisation after each convolution, by PyG name or from a function
            ``channels -> module``.
        pool: ``"gpool"``, a pooling class, a function ``(in_channels, ratio) ->
            pooling``, a list with one operator per level, or ``"precomputed"``:
            ``forward`` then takes a hierarchy and pays nothing for pooling.
        pool_options: Further arguments of the pooling class.
        reduce: How features follow a precomputed hierarchy.
        readout: Readouts of every level, or a list with the readouts of each level:
            ``"mean"``, ``"max"``, ``"sum"``, ``"min"``, the name of a PyG aggregation,
            an aggregation (copied for each level), or a function ``in_channels ->
            aggregation``.
        combine: ``"sum"`` adds the levels, ``"cat"`` puts them side by side.
        head_channels: Hidden widths of the classifier.
        dropout: Rate after the hidden layers of the classifier.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; edge_attr: ``[E]``, ``[E, 1]`` or
        ``[E, D]``; batch: ``[N]`` in any order; returns ``[B, out_channels]``.

    Raises:
        ValueError: If options or inputs do not fit together.
        TypeError: If an option is unknown, or a part is of the wrong type.

    Note:
        Readouts are taken after pooling. The one of an empty graph is 0. ``"max"``
        sends its gradient to the lowest row among ties. The logits of a graph depend
        on no other graph of the batch, except through a normalisation that does.
        Time and memory grow with nodes plus edges. ``batch_size`` saves a device
        synchronisation and keeps empty graphs at the end of the batch.

    Source:
        Cangea, Veličković, Jovanović, Kipf and Liò, "Towards Sparse Hierarchical
        Graph Classifiers", NeurIPS workshop on Relational Representation Learning,
        2018.

    Example:
        >>> import torch
        >>> from pyg_pool.models import HierarchicalClassifier
        >>> model = HierarchicalClassifier(3, 16, 2)
        >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> batch = torch.tensor([0, 0, 0, 1])
        >>> model(torch.randn(4, 3), edge_index, batch=batch).shape
        torch.Size([2, 2])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_levels: int = 3,
        ratio: float | Sequence[float] = 0.8,
        *,
        preset: Literal["paper", "pyg_example"] | None = "paper",
        conv: Conv | None = None,
        conv_options: Mapping[str, Any] | None = None,
        edge_channels: int | None = None,
        use_edge_attr: bool = True,
        act: Activation = "relu",
        norm: Norm | None = None,
        pool: Pool = "gpool",
        pool_options: Mapping[str, Any] | None = None,
        reduce: NodeReduce = "mean",
        readout: Words | Sequence[Words] | None = None,
        combine: Literal["sum", "cat"] = "sum",
        head_channels: Sequence[int] | None = None,
        dropout: float | None = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name != "self"}
        super().__init__()
        self._call = spell_call(HierarchicalClassifier, given)
        form = classifier_form(given)
        if num_levels < 1:
            raise ValueError(
                f"{OWNER} got num_levels={num_levels}, expected at least 1; use a "
                f"plain stack of convolutions for a network without pooling."
            )
        self.in_channels, self.num_levels = in_channels, num_levels
        self.edge_channels, self.use_edge_attr = edge_channels, use_edge_attr
        self.combine, self.act = combine, make_act(act)
        ratios = per_level(OWNER, "ratio", ratio, num_levels)
        options = form.pool_options or {}
        self.pools = PoolStack(OWNER, pool, hidden_channels, ratios, options, reduce)
        self.convs = ModuleList(
            make_conv(
                OWNER,
                form.conv,
                in_channels if level == 0 else hidden_channels,
                hidden_channels,
                edge_channels=self.pools.edge_channels(level, edge_channels),
                options=form.conv_options,
            )
            for level in range(num_levels)
        )
        self.takes = [edge_input(c) if use_edge_attr else "none" for c in self.convs]
        self.norms = ModuleList(NodeNorm(norm, hidden_channels) for _ in self.convs)
        readouts = [
            Readout(OWNER, words, hidden_channels)
            for words in readout_words(form.readout, num_levels)
        ]
        self.readouts = ModuleList(readouts)
        size = combined_width([sum(each.out_channels) for each in readouts], combine)
        hidden = [hidden_channels // d for d in form.head_widths]
        hidden = hidden if head_channels is None else list(head_channels)
        rates = [0.0, *[form.dropout] * len(hidden)]
        rates = (
            rates if not form.drops_once else [*rates[:2], *[0.0] * (len(rates) - 2)]
        )
        self.head = Head([size, *hidden, out_channels], act, rates)
        rename_on_load(self, example_names(num_levels, len(rates)))

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        for part in (*self.convs, *self.norms, self.pools, *self.readouts, self.head):
            reset(part)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: OptTensor = None,
        *,
        batch: OptTensor = None,
        batch_size: int | None = None,
        hierarchy: Hierarchy | None = None,
    ) -> Tensor:
        """Returns the logits of each graph.

        Args:
            x: Node features.
            edge_index: Edges.
            edge_attr: Edge weights, or attributes where the convolution takes them.
            batch: Graph of each node, in any order; ``None`` for one graph.
            batch_size: Number of graphs.
            hierarchy: Levels to follow, with ``pool="precomputed"``.
        """
        graph = (edge_index, edge_attr, batch, batch_size)
        read = self._trace(x, graph, hierarchy)[2]
        return self.head(self._combined(read))

    def run(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: OptTensor = None,
        *,
        batch: OptTensor = None,
        batch_size: int | None = None,
        hierarchy: Hierarchy | None = None,
    ) -> HierarchicalOutput:
        """Returns the logits together with all levels and their readouts."""
        graph = (edge_index, edge_attr, batch, batch_size)
        finest, pooled, read = self._trace(x, graph, hierarchy)
        combined = self._combined(read)
        return HierarchicalOutput(
            out=self.head(combined),
            hierarchy=hierarchy or hierarchy_of(x, finest, pooled),
            readouts=read,
            readout=combined,
            loss=sum_losses(pooled),
        )

    def _trace(
        self,
        x: Tensor,
        graph: tuple[Tensor, OptTensor, OptTensor, int | None],
        hierarchy: Hierarchy | None,
    ) -> tuple[Graph, list[PoolOutput], list[Tensor]]:
        """Goes through the levels; returns finest graph, poolings and readouts."""
        x, finest = self.pools.begin(x, self.in_channels, graph, hierarchy)
        if self.use_edge_attr:
            check_edge_attr(OWNER, self.takes[0], self.edge_channels, finest.edge_attr)
        at, pooled, read = finest, [], []
        for level, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            x = apply_conv(conv, self.takes[level], x, at.edge_index, at.edge_attr)
            x = self.act(norm(x, at.batch, at.batch_size))
            out = self.pools.coarsen(level, x, at, hierarchy)
            x, at = out.x, graph_of(out)
            pooled.append(out)
            parts = self.readouts[level](x, at.batch, at.batch_size)
            read.append(torch.cat(parts, dim=-1))
        return finest, pooled, read

    def _combined(self, read: list[Tensor]) -> Tensor:
        """The readouts of all levels as one row per graph."""
        if self.combine == "cat":
            return torch.cat(read, dim=-1)
        return torch.stack(read).sum(dim=0)

    def __repr__(self) -> str:
        return self._call
