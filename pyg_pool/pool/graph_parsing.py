"""Graph parsing: every node joins the neighbour along its best edge.

Song et al., "Graph Parsing Networks", ICLR 2024. Departures: each pair of neighbours
has one score for both directions (the authors' code draws two in training), clusters
are the connected components of the chosen edges (the same where scores are
symmetric), logits are compared rather than their sigmoids, and batches come out in
order.
"""

from __future__ import annotations

from inspect import signature

import torch
from torch import Tensor
from torch.nn import LayerNorm, Linear
from torch_geometric.nn.pool.connect import ConnectOutput

from pyg_pool.core import Pooling, PoolOutput, Selection
from pyg_pool.core.blocks import ResidualMLP
from pyg_pool.core.naming import rename_on_load, spell_call
from pyg_pool.core.parse_forms import (
    CoarseEdges,
    check_options,
    coarse_attr,
    scored_attr,
)
from pyg_pool.core.parse_steps import ParseRules, Scorer, make_scorer, parse_steps
from pyg_pool.core.parsing import Multiplier, Parsing
from pyg_pool.kernels import segment_reduce
from pyg_pool.kernels.coalesce import contract
from pyg_pool.kernels.deepsets import deepsets
from pyg_pool.kernels.parse import parse
from pyg_pool.kernels.parse_reduce import parse_reduce
from pyg_pool.kernels.scored_clusters import scored_clusters
from pyg_pool.typing import OptTensor

__all__ = ["GraphParsingPooling", "parse"]

# The authors' names of the weights.
LOADED_NAMES = ((r"parsing_net\.", ""), (r"deepsets_(pre|post)\.", r"\1."))


class GraphParsingPooling(Pooling):
    r"""Pooling by parsing the graph along the best edge of each node.

    .. math::
        s_{ij} &= \sigma(\mathrm{MLP}(\mathbf{x}_i \odot \mathbf{x}_j)), \qquad
        d(i) = \arg\max_{j \in \mathcal{N}(i)} s_{ij}

        \mathbf{x}'_c &= m_c \, \mathrm{Post} \sum_{i \in c} \mathrm{Pre}(\mathbf{x}_i)

    The clusters :math:`c` are the connected components of the links
    :math:`i - d(i)`, and :math:`m_c` is the sum of the scores inside. There is no
    ratio: each graph becomes as small as its scores say, and one without edges stays.

    Args:
        in_channels: Number of features F.
        score_layers: Linear layers of the MLP that scores an edge.
        self_loops: Whether each node may choose itself.
        dropout: Dropout inside the MLPs that have more than one layer, in training.
        dropout_parsing: Share of the edges that are taken out, both directions
            together, in training; also from the pooled graph.
        multiplier: Factor on the features of a cluster: ``"sum"`` of the scores of
            its inner edges (each direction counts), their ``"mean"``, or ``"none"``;
            1 where a cluster has no inner edge.
        deepsets_layers: Linear layers in each of Pre and Post, which add their input
            and normalise; 0 sums the members as they are.
        edge_reduce: Attributes of edges between the same clusters: ``"binary"``
            gives ones, ``"count"`` the number of edges that became one, the others
            merge those given.
        score_round: Relative step, such as ``2**-20``, to which logits are rounded
            before they are compared, so that rounding errors do not decide ties.
        scorer: Logit of an edge: ``"product"`` is the MLP above, ``"cosine"`` and
            ``"dot"`` have no weights; a function or module is called with ``x`` and
            ``[2, P]`` pairs, each listed once, and returns ``[P]``.
        edge_channels: Number D of attributes of an edge that the scorer reads too,
            averaged over both directions.
        max_cluster_size: Largest number of nodes in a cluster: where one would be
            larger, links are followed best first, one by one on the CPU, and those
            that lead beyond it left out; not for compiled graphs.
        validate: Whether to refuse scores that are NaN, and directed edges.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]`` int64; edge_attr: ``[E]``, ``[E, 1]``
        or, where ones or counts do not stand for them, ``[E, D]``; batch: ``[N]``
        int64 in any order.

    Raises:
        TypeError: If ``x`` is not floating point, or the edges are a sparse matrix.
        ValueError: If an option is out of range or shapes do not fit.

    Note:
        Edges count as undirected, listed once or twice; repeats and loops are passed
        over. Ties go to the lowest neighbour, and to an edge before the loop: with
        equal scores the clusters depend on the numbering of the nodes. Clusters are
        numbered by smallest member. ``out.score`` is the mean score inside a
        cluster, the only way by which scores get a gradient is the multiplier (or a
        loss on ``out.score``). A NaN edge is never chosen. Scores and sums are held
        in float32 at least. Cost: O(E F) for the scores, O(E + N log N) for the
        clusters, a sort of the coarse edges except on the CPU; memory O(N F + E).
        The authors' weight names are loaded.

    Source:
        Song, Huang, Wang, Zhou and Lin, "Graph Parsing Networks", ICLR 2024.

    Example:
        >>> import torch
        >>> from pyg_pool import GraphParsingPooling
        >>> pool = GraphParsingPooling(1, deepsets_layers=0)
        >>> torch.nn.init.ones_(pool.edge_net.mlp[0].weight).numel()
        1
        >>> path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> x = torch.tensor([[3.0], [3.0], [-1.0], [-1.0]])
        >>> pool(x, path).selection.cluster
        tensor([0, 0, 1, 1])
    """

    def __init__(
        self,
        in_channels: int,
        *,
        score_layers: int = 1,
        self_loops: bool = False,
        dropout: float = 0.0,
        dropout_parsing: float = 0.0,
        multiplier: Multiplier = "sum",
        deepsets_layers: int = 1,
        edge_reduce: CoarseEdges = "binary",
        score_round: float | None = None,
        scorer: Scorer = "product",
        edge_channels: int | None = None,
        max_cluster_size: int | None = None,
        validate: bool = False,
    ) -> None:
        given = dict(locals())
        super().__init__()
        self._given = {
            name: given[name] for name in signature(GraphParsingPooling).parameters
        }
        check_options(self._given)
        self.in_channels = in_channels
        self.self_loops = self_loops
        self.dropout_parsing = dropout_parsing
        self.multiplier = multiplier
        self.edge_reduce = edge_reduce
        self.score_round = score_round
        self.edge_channels = edge_channels
        self.max_cluster_size = max_cluster_size
        self.validate = validate
        scored = (in_channels, score_layers, dropout, edge_channels)
        self.edge_net = make_scorer(scorer, *scored)
        self.pre: ResidualMLP | None = None
        self.post: ResidualMLP | None = None
        if deepsets_layers > 0:
            self.pre = ResidualMLP(in_channels, deepsets_layers, dropout)
            self.post = ResidualMLP(in_channels, deepsets_layers, dropout)
        rename_on_load(self, LOADED_NAMES)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights as PyTorch's layers do."""
        for module in self.modules():
            if isinstance(module, (Linear, LayerNorm)):
                module.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: OptTensor = None,
        *,
        batch: OptTensor = None,
        batch_size: int | None = None,
    ) -> PoolOutput:
        """Pools as :class:`Pooling` says."""
        x, edge_index, batch, size = self.check(
            x, edge_index, edge_attr, batch, batch_size, in_channels=self.in_channels
        )
        with torch.autocast(x.device.type, enabled=False):
            layer = self._only_layer(x)
            if layer is None or not (self.pre is None or self.pre.is_single):
                parsing = self.parse(x, edge_index, edge_attr)
                return self.merge(x, parsing, edge_index, edge_attr, batch, size)
            wide, layers = x.to(layer[0].dtype), None
            if self.pre is not None and self.post is not None:
                dtype = wide.dtype
                layers = self.pre.only_layer(dtype), self.post.only_layer(dtype)
            *found, pooled = parse_reduce(
                wide, edge_index, *layer, layers, self.multiplier
            )
            parsing = Parsing.of(*found)
            edges = self.connect(parsing.selection, edge_index, edge_attr, batch)
            return self._packed(x, pooled, edges, parsing, size)

    def parse(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: OptTensor = None,
        *,
        resting: OptTensor = None,
    ) -> Parsing:
        """Scores edges and clusters nodes; those marked as resting stay alone."""
        layer = self._only_layer(x)
        if layer is not None:
            x = x.to(layer[0].dtype)
            return Parsing.of(*scored_clusters(x, edge_index, *layer, resting))
        rate = self.dropout_parsing if self.training else 0.0
        bound, loops = self.max_cluster_size, self.self_loops
        rules = ParseRules(loops, rate, self.score_round, bound, self.validate)
        attr = scored_attr(edge_attr, self.edge_channels)
        x = x.to(self._wide(x))
        return parse_steps(self.edge_net, x, edge_index, attr, rules, resting)

    def _only_layer(self, x: Tensor) -> tuple[Tensor, Tensor] | None:
        """Weight and bias of the score where nothing else is asked for."""
        steps = self.score_round is not None or self.max_cluster_size is not None
        drops = self.training and self.dropout_parsing > 0.0
        if steps or drops or self.self_loops or self.validate:
            return None
        return self.edge_net.only_layer(self._wide(x))

    def _wide(self, x: Tensor) -> torch.dtype:
        """The type of the weights (of ``x`` without any), float32 at least."""
        return torch.promote_types(self.edge_net.dtype or x.dtype, torch.float32)

    def merge(
        self,
        x: Tensor,
        parsing: Parsing,
        edge_index: Tensor,
        edge_attr: OptTensor,
        batch: Tensor,
        batch_size: int,
    ) -> PoolOutput:
        """Pools features and edges into the clusters of a parsing."""
        selection, kept = parsing.selection, parsing.kept
        factor = parsing.factor(self.multiplier)
        pooled = self.reduce(x.to(self._wide(x)), selection, factor)
        if kept is not None:
            edge_index = edge_index.index_select(1, kept)
            edge_attr = None if edge_attr is None else edge_attr.index_select(0, kept)
        edges = self.connect(selection, edge_index, edge_attr, batch)
        return self._packed(x, pooled, edges, parsing, batch_size)

    def _packed(
        self,
        x: Tensor,
        pooled: Tensor,
        edges: ConnectOutput,
        parsing: Parsing,
        batch_size: int,
    ) -> PoolOutput:
        """The result in the type of the features."""
        selection, score = parsing.selection, parsing.score.to(x.dtype)
        loss = x.new_zeros(())
        return self.pack(pooled.to(x.dtype), edges, selection, score, loss, batch_size)

    def reduce(
        self, x: Tensor, selection: Selection, factor: OptTensor = None
    ) -> Tensor:
        """DeepSets over the members of each cluster, times a factor."""
        # Every node has its entry, in order: nothing need be picked.
        groups = (selection.cluster_index, selection.num_clusters)
        if self.pre is None or self.post is None:
            pooled = segment_reduce(x, groups[0], dim_size=groups[1])
        elif self.pre.is_single:
            layers = self.pre.only_layer(x.dtype), self.post.only_layer(x.dtype)
            return deepsets(x, *layers, *groups, factor)
        else:
            pooled = self.post(self.pre.group_sum(x, *groups))
        return pooled if factor is None else pooled * factor.unsqueeze(-1)

    def connect(
        self,
        selection: Selection,
        edge_index: Tensor,
        edge_attr: OptTensor,
        batch: Tensor,
    ) -> ConnectOutput:
        """Edges between clusters, each once, with ones or merged attributes."""
        how = self.edge_reduce
        merges = how == "count" or (edge_attr is not None and how != "binary")
        groups = (selection.cluster_index, selection.num_clusters)
        edges, place = contract(edge_index, *groups, has_place=merges)
        edge_attr = coarse_attr(edge_attr, place, edges.size(1), how)
        # Every node has its entry, in order: nothing need be picked.
        graph = batch.new_zeros(groups[1]).index_copy(0, groups[0], batch)
        return ConnectOutput(edges, edge_attr, graph)

    def __repr__(self) -> str:
        """The call that builds it, without the arguments left at their defaults."""
        return spell_call(type(self), self._given)
