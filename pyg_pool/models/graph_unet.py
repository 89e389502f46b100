r"""Graph U-Net: an encoder and decoder whose levels come from graph pooling.

One flow covers the three forms in use, which differ in their parts only: the node
network of the paper, the authors' program for graph classification, and the network
of PyG. Two things depart from all of them: the levels may come from any pooling
operator, or from a hierarchy computed beforehand, and a node of degree 0 gives no
NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from pyg_pool.core import Hierarchy, PoolOutput, lift
from pyg_pool.core.naming import spell_call
from pyg_pool.models.conv_factory import Conv, check_edge_attr
from pyg_pool.models.layers import Norm, Words
from pyg_pool.models.pool_stack import (
    Graph,
    Pool,
    graph_of,
    hierarchy_of,
    sum_losses,
    with_loops,
)
from pyg_pool.models.unet_forms import OWNER
from pyg_pool.models.unet_parts import UNetParts
from pyg_pool.typing import Activation, Augment, Lift, NodeReduce, OptTensor

__all__ = ["GraphUNet", "GraphUNetOutput"]


@dataclass
class GraphUNetOutput:
    """What a graph U-Net computed.

    Attributes:
        out: ``[N, out_channels]`` or ``[B, out_channels]``, as ``forward`` returns it.
        hierarchy: The levels with their selections.
        outputs: Features that the decoder emits, from the deepest level to the
            finest; the long skip adds one more at the finest level.
        output_levels: Level of ``hierarchy`` of each of ``outputs``.
        readout: ``[B, R]`` input of the head; ``None`` for node tasks.
        loss: Sum of the losses of the pooling operators, a scalar.
    """

    out: Tensor
    hierarchy: Hierarchy
    outputs: list[Tensor]
    output_levels: list[int]
    readout: OptTensor
    loss: Tensor


@dataclass
class _Trace:
    """Everything that one pass went through."""

    graphs: list[Graph]
    pooled: list[PoolOutput]
    outputs: list[Tensor]
    out: Tensor
    readout: OptTensor


class GraphUNet(UNetParts):
    r"""Convolutions down a hierarchy of pooled graphs and up again.

    .. math::
        X_{l+1} = \mathrm{pool}_l(\mathrm{down}_l(X_l)), \qquad
        Y_l = \mathrm{up}_l(\mathrm{skip}_l + \mathrm{unpool}_l(Y_{l+1}))

    Args:
        in_channels: Size of each input row.
        hidden_channels: Width of the network.
        out_channels: Size of each output row.
        depth: Number of pooling steps.
        ratio: Share of nodes kept (float in (0, 1]) or their number (int) per graph;
            one value, or one per level, the last of which repeats.
        preset: ``"pyg"`` is PyG's network and loads its weights. ``"paper"`` is the
            paper's for nodes: GCN without bias, identity activation, sigmoid gate, A
            squared, a last convolution. ``"authors"`` is the program for graph
            classification: A + I, binary A squared, column-stochastic propagation, a
            first convolution, skips added after the up convolution, a long skip,
            readout of all levels; it loads the weights of that program. ``None`` is
            the library's choice. Options given explicitly win over the preset.
        task: ``"node"`` for a row per node, ``"graph"`` for a row per graph.
        conv: ``"gcn"``, ``"sage"``, ``"gin"``, ``"gine"``, ``"graph"``, ``"gat"``,
            ``"gatv2"``, ``"transformer"``, ``"cheb"``, ``"mean_skip"``, ``"column"``,
            ``"symmetric"``,
            a PyG convolution class, or a function ``(in_channels, out_channels) ->
            module``.
        conv_options: Further arguments of the convolution.
        edge_channels: Width of ``edge_attr``, for convolutions with ``edge_dim``.
        use_edge_attr: Whether convolutions see edge weights and attributes; pooling
            operators always do.
        act: Activation; ``"identity"`` for none.
        norm: Normalisation after each convolution, by PyG name or from a function
            ``channels -> module``.
        dropout: Rate in front of every convolution, and on the scores of the preset
            ``"authors"``.
        pool: ``"gpool"``, a pooling class, a function ``(in_channels, ratio) ->
            pooling``, a list with one operator per level, or ``"precomputed"``:
            ``forward`` then takes a hierarchy and pays nothing for pooling.
        pool_options: Further arguments of the pooling class.
        augment: Two-hop variant of ``"gpool"``: ``"none"``, ``"binary"``,
            ``"weighted"`` or ``"square"``.
        reduce: How features follow a precomputed hierarchy.
        unpool: How features come back, as in :func:`pyg_pool.core.lift`; for kept
            nodes this puts rows back at their places and zeros elsewhere. Soft
            selections use their weights.
        skip: ``"pre"`` joins the skip before the up convolution, ``"post"`` after it.
        merge: ``"sum"`` or ``"cat"``.
        stem: Whether a convolution comes before the U.
        long_skip: Whether the input of the U is added to its output.
        out_conv: Whether a last convolution maps to the output; node tasks only.
        self_loops: Whether missing self loops are added to the input.
        readout: Readouts of a graph task: words, aggregations or functions.
        readout_levels: ``"all"`` reads out every emitted level, ``"last"`` the last.
        head_channels: Hidden widths of the classifier of a graph task.
        head_act: Its activation.
        head_dropout: Rate in front of each of its layers.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; edge_attr: ``[E]``, ``[E, 1]`` or
        ``[E, D]``; batch: ``[N]`` in any order; returns ``[N, out_channels]`` or
        ``[B, out_channels]``.

    Raises:
        ValueError: If options or inputs do not fit together.
        TypeError: If an option is unknown, or a part is of the wrong type.

    Note:
        The result for a graph depends on no other graph of the batch, except through
        a normalisation that does. ``batch_size`` saves a device synchronisation and
        keeps empty graphs at the end; their readout is 0. A convolution that takes
        no edge weights ignores those of the two-hop variants. The model compiles in
        full unless its convolution looks at the number of edges, as PyG's attention
        does. Dropout on features and adjacency, which the paper trains with, belongs
        in front of the model.

    Source:
        Gao and Ji, "Graph U-Nets", ICML 2019.

    Example:
        >>> import torch
        >>> from pyg_pool.models import GraphUNet
        >>> model = GraphUNet(3, 16, 2, depth=2, ratio=0.5)
        >>> edge_index = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> model(torch.randn(4, 3), edge_index).shape
        torch.Size([4, 2])
        >>> model.run(torch.randn(4, 3), edge_index).hierarchy.levels[2].num_nodes
        1
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        depth: int = 3,
        ratio: float | int | Sequence[float | int] = 0.5,
        *,
        preset: Literal["pyg", "paper", "authors"] | None = "pyg",
        task: Literal["node", "graph"] = "node",
        conv: Conv | None = None,
        conv_options: Mapping[str, Any] | None = None,
        edge_channels: int | None = None,
        use_edge_attr: bool = True,
        act: Activation | None = None,
        norm: Norm | None = None,
        dropout: float = 0.0,
        pool: Pool = "gpool",
        pool_options: Mapping[str, Any] | None = None,
        augment: Augment | None = None,
        reduce: NodeReduce = "mean",
        unpool: Lift = "transpose",
        skip: Literal["pre", "post"] | None = None,
        merge: Literal["sum", "cat"] | None = None,
        stem: bool | None = None,
        long_skip: bool | None = None,
        out_conv: bool | None = None,
        self_loops: bool | None = None,
        readout: Words | None = None,
        readout_levels: Literal["all", "last"] | None = None,
        head_channels: Sequence[int] | None = None,
        head_act: Activation | None = None,
        head_dropout: float = 0.0,
    ) -> None:
        given = {name: value for name, value in locals().items() if name != "self"}
        super().__init__(given)
        self._call = spell_call(GraphUNet, given)

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
        """Returns one row per node or, for graph tasks, one row per graph.

        Args:
            x: Node features.
            edge_index: Edges.
            edge_attr: Edge weights, or attributes where the convolution takes them.
            batch: Graph of each node, in any order; ``None`` for one graph.
            batch_size: Number of graphs.
            hierarchy: Levels to follow, with ``pool="precomputed"``.
        """
        graph = (edge_index, edge_attr, batch, batch_size)
        return self._trace(x, graph, hierarchy).out

    def run(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: OptTensor = None,
        *,
        batch: OptTensor = None,
        batch_size: int | None = None,
        hierarchy: Hierarchy | None = None,
    ) -> GraphUNetOutput:
        """Returns the result of ``forward`` together with all levels."""
        graph = (edge_index, edge_attr, batch, batch_size)
        trace = self._trace(x, graph, hierarchy)
        return GraphUNetOutput(
            out=trace.out,
            hierarchy=hierarchy or hierarchy_of(x, trace.graphs[0], trace.pooled),
            outputs=trace.outputs,
            output_levels=self.output_levels,
            readout=trace.readout,
            loss=sum_losses(trace.pooled),
        )

    def _trace(
        self,
        x: Tensor,
        graph: tuple[Tensor, OptTensor, OptTensor, int | None],
        hierarchy: Hierarchy | None,
    ) -> _Trace:
        """Goes down and up; keeps what it comes by."""
        x, finest = self.pools.begin(x, self.in_channels, graph, hierarchy)
        if self.use_edge_attr:
            check_edge_attr(OWNER, self.takes[0], self.edge_channels, finest.edge_attr)
        graphs = [with_loops(finest, x.size(0)) if self.self_loops else finest]
        if self.stem is not None:
            x = self.convolve(self.stem, self.stem_norm, x, graphs, 0)
        entry, skips, pooled = x, [], []
        for level in range(self.depth):
            conv, norm = self.down_convs[level], self.down_norms[level]
            x = self.convolve(conv, norm, x, graphs, level)
            skips.append(x)
            pooled.append(self.pools.coarsen(level, x, graphs[level], hierarchy))
            x, below = pooled[-1].x, graph_of(pooled[-1])
            graphs.append(with_loops(below, x.size(0)) if self.loops_below else below)
        x = self.convolve(
            self.down_convs[-1], self.down_norms[-1], x, graphs, self.depth
        )
        outputs = self._decode(x, graphs, skips, pooled)
        if self.long_skip:
            outputs.append(outputs[-1] + entry)
        out, readout = self.finish(outputs, graphs)
        return _Trace(graphs, pooled, outputs, out, readout)

    def _decode(
        self,
        x: Tensor,
        graphs: list[Graph],
        skips: list[Tensor],
        pooled: list[PoolOutput],
    ) -> list[Tensor]:
        """Goes up from the lowest level; returns what each level emits."""
        outputs = []
        for step, level in enumerate(reversed(range(self.depth))):
            selection = pooled[level].selection
            is_soft = selection.kind == "soft"
            x = lift(x, selection, self.unpool, weighted=is_soft)
            x = self.join(skips[level], x) if self.skip == "pre" else x
            is_result = level == 0 and self.ends_in_up_conv and self.skip == "pre"
            conv, norm = self.up_convs[step], self.up_norms[step]
            x = self.convolve(conv, None if is_result else norm, x, graphs, level)
            x = self.join(skips[level], x) if self.skip == "post" else x
            outputs.append(x)
        return outputs

    def __repr__(self) -> str:
        return self._call
