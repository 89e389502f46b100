r"""Graph parsing network: parse, pool, and again until nothing merges.

One set of weights serves all levels, and each graph gets as many of them as its
scores say. Departures from the authors' program: a graph that has finished is left
alone while others of its batch go on, edges may carry weights or attributes, and
levels can be limited. ``freeze_finished=False`` is their program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from pyg_pool.core import Hierarchy
from pyg_pool.core.naming import spell_call
from pyg_pool.core.parse_forms import CoarseEdges
from pyg_pool.core.parse_steps import Scorer
from pyg_pool.core.parsing import Multiplier
from pyg_pool.models.conv_factory import Conv
from pyg_pool.models.gpn_forms import BlockLayers
from pyg_pool.models.gpn_parts import ParsingParts
from pyg_pool.typing import OptTensor

__all__ = ["GraphParsingNetwork", "GraphParsingOutput"]


@dataclass
class GraphParsingOutput:
    """What a graph parsing network computed.

    Attributes:
        out: ``[B, out_channels]`` or ``[N, out_channels]``, as ``forward`` returns it.
        hierarchy: The levels; ``score`` of a level is the mean score inside each of
            its clusters.
        counts: Number of edges inside each cluster, level by level.
        features: ``[N, hidden_channels]`` rows of the nodes after the way down, or
            ``[B, hidden_channels]`` readouts: the input of the last MLP.
        loss: A scalar zero; parsing has no loss of its own.
    """

    out: Tensor
    hierarchy: Hierarchy
    counts: list[Tensor]
    features: Tensor
    loss: Tensor


class GraphParsingNetwork(ParsingParts):
    r"""Graph parsing network for graphs and for nodes.

    .. math::
        Z_l = \mathrm{GNN}_1(H_l, A_l), \qquad
        Y_l = \mathrm{GNN}_2(H_l, A_l), \qquad
        (H_{l+1}, A_{l+1}) = \mathrm{parse}(Z_l;\ Y_l, A_l)

    Scores and clusters come from Z, the pooled features from Y, as
    :class:`pyg_pool.GraphParsingPooling` says. This goes on until no graph merges any
    nodes; all levels share the weights. A graph is read out as the sum of the nodes
    that are left of it. For nodes the way down again is

    .. math::
        H_l \leftarrow \mathrm{GNN}_3(\mathrm{copy}(H_{l+1} / n) + H_l,\ A_l)

    with n the number of edges inside each cluster.

    Args:
        in_channels: Size of each input row.
        hidden_channels: Width of the network.
        out_channels: Number of classes or targets.
        task: ``"graph"`` for a row per graph, ``"node"`` for a row per node.
        conv: Convolution: ``"gcn"``, ``"gin"``, ``"gat"`` or whatever else
            :class:`GraphUNet` takes.
        conv_options: Further arguments of the convolution.
        num_layers: Convolutions in GNN1.
        feature_layers: Convolutions in GNN2; ``"share"`` takes GNN1 itself,
            ``"follow"`` as many of its own.
        up_layers: Convolutions in GNN3, of ``"node"``; ``"share"`` takes GNN2.
        mlp_layers: Linear layers of the MLPs at the input and at the output.
        input_layers: Those at the input, if different; 0 for none.
        score_layers: Linear layers of the MLP that scores edges.
        deepsets_layers: Linear layers before and after the sum over a cluster.
        act_final: Whether an activation follows each block of convolutions and the
            MLP at the input too.
        dropout: Dropout rate everywhere.
        dropout_parsing: Share of the edges that each parse leaves out, in training.
        self_loops: Whether nodes may choose to stay alone; by default for node
            tasks, as the authors have it.
        multiplier: Factor on the features of a cluster, as in the operator.
        edge_channels: Width of ``edge_attr``, for convolutions with ``edge_dim``.
        edge_reduce: Attributes of coarse edges, as in the operator.
        use_edge_attr: Whether convolutions see edge weights and attributes.
        score_round: Rounding of logits that keeps ties, as in the operator.
        scorer: What scores an edge, as in the operator.
        score_edges: Whether the scorer reads edge weights or attributes too.
        max_cluster_size: Largest number of nodes that one pooling merges into one.
        readout: ``"last"``, or ``"levels"`` for the sum of the means of all levels.
        max_levels: Largest number of poolings.
        min_nodes: Graphs with this many nodes or fewer are not pooled further.
        freeze_finished: Whether a graph that no longer merges is left as it is while
            others go on. ``False`` transforms it further, as the authors' program
            does: its result then depends on the other graphs of the batch.
        to_undirected: Whether to add missing opposite edges.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; edge_attr: ``[E]``, ``[E, 1]`` or
        ``[E, D]``; batch: ``[N]`` in any order; returns ``[B, out_channels]`` or
        ``[N, out_channels]``.

    Raises:
        ValueError: If options or inputs do not fit together, or the graph is
            directed.
        TypeError: If a part is of the wrong type.

    Note:
        Repeated edges are merged, loops removed. Ties between scores go to the
        lowest node number, so graphs with symmetries are not invariant to it. A
        graph gets at most log2(N) levels. An empty graph is read out as 0. The
        number of levels depends on the data, so the network does not compile as a
        whole. The authors' weight names are loaded.

    Source:
        Song, Huang, Wang, Zhou and Lin, "Graph Parsing Networks", ICLR 2024.

    Example:
        >>> import torch
        >>> from pyg_pool.models import GraphParsingNetwork
        >>> model = GraphParsingNetwork(3, 16, 2)
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
        *,
        task: Literal["graph", "node"] = "graph",
        conv: Conv = "gcn",
        conv_options: Mapping[str, Any] | None = None,
        num_layers: int = 2,
        feature_layers: BlockLayers = "share",
        up_layers: BlockLayers = "follow",
        mlp_layers: int = 2,
        input_layers: int | None = None,
        score_layers: int = 2,
        deepsets_layers: int = 1,
        act_final: bool = False,
        dropout: float = 0.0,
        dropout_parsing: float = 0.0,
        self_loops: bool | None = None,
        multiplier: Multiplier = "sum",
        edge_channels: int | None = None,
        edge_reduce: CoarseEdges = "binary",
        use_edge_attr: bool = True,
        score_round: float | None = None,
        scorer: Scorer = "product",
        score_edges: bool = False,
        max_cluster_size: int | None = None,
        readout: Literal["last", "levels"] = "last",
        max_levels: int | None = None,
        min_nodes: int = 1,
        freeze_finished: bool = True,
        to_undirected: bool = False,
    ) -> None:
        given = {name: value for name, value in locals().items() if name != "self"}
        super().__init__(given)
        self._call = spell_call(GraphParsingNetwork, given)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: OptTensor = None,
        *,
        batch: OptTensor = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """Returns one row per graph or, for node tasks, one row per node.

        Args:
            x: Node features.
            edge_index: Edges, both directions listed.
            edge_attr: Edge weights, or attributes where the convolution takes them.
            batch: Graph of each node, in any order; ``None`` for one graph.
            batch_size: Number of graphs.
        """
        finest = self.begin(x, edge_index, edge_attr, batch, batch_size)
        out: Tensor = self.head(self.features(finest, self.climb(x, finest)))
        return out

    def run(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: OptTensor = None,
        *,
        batch: OptTensor = None,
        batch_size: int | None = None,
    ) -> GraphParsingOutput:
        """Returns the result of ``forward`` together with all levels."""
        finest = self.begin(x, edge_index, edge_attr, batch, batch_size)
        climb = self.climb(x, finest)
        features = self.features(finest, climb)
        graph = (finest.edge_index, finest.edge_attr, finest.batch, finest.batch_size)
        pooled = [each.out for each in climb.rounds]
        return GraphParsingOutput(
            out=self.head(features),
            hierarchy=Hierarchy.from_outputs(x, *graph, pooled),
            counts=[each.count for each in climb.rounds],
            features=features,
            loss=x.new_zeros(()),
        )

    def __repr__(self) -> str:
        return self._call
