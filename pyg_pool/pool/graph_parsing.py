"""Graph parsing: every node joins the neighbour along its best edge.

Song et al., "Graph Parsing Networks", ICLR 2024. Departures: each pair of neighbours
has one score for both directions (the authors' code draws two in training), clusters
are the connected components of the chosen edges (the same where scores are
symmetric), logits are compared rather than their sigmoids, and batches come out in
order.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.nn import LayerNorm, Linear
from torch_geometric.nn.pool.connect import ConnectOutput

from pyg_pool.core import Pooling, PoolOutput, Selection
from pyg_pool.core.blocks import PairMLP, ResidualMLP
from pyg_pool.core.connect import pooled_batch
from pyg_pool.core.naming import rename_on_load, spell_call
from pyg_pool.core.parsing import Multiplier, Parsing
from pyg_pool.errors import check_choice
from pyg_pool.kernels import segment_reduce
from pyg_pool.kernels.coalesce import contract
from pyg_pool.kernels.deepsets import deepsets
from pyg_pool.kernels.pairs import distinct_pairs, drop_pairs
from pyg_pool.kernels.parse import dominant_links, link_components, parse, rounded
from pyg_pool.kernels.scored_clusters import scored_clusters
from pyg_pool.typing import OptTensor

__all__ = ["GraphParsingPooling", "parse"]

CoarseEdges = Literal["binary", "sum", "mean", "max"]
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
            gives ones, the others merge those given.
        score_round: Relative step, such as ``2**-20``, to which logits are rounded
            before they are compared, so that rounding errors do not decide ties.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]`` int64; edge_attr: ``[E]``, ``[E, 1]``
        or, unless ``"binary"``, ``[E, D]``; batch: ``[N]`` int64 in any order.

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
        clusters, a sort of the coarse edges; memory O(N F + E). The authors' weight
        names are loaded.

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
    ) -> None:
        given = dict(locals())
        super().__init__()
        self._given = {
            name: given[name] for name in signature(GraphParsingPooling).parameters
        }
        _check_options(self._given)
        self.in_channels = in_channels
        self.self_loops = self_loops
        self.dropout_parsing = dropout_parsing
        self.multiplier = multiplier
        self.edge_reduce = edge_reduce
        self.score_round = score_round
        self.edge_net = PairMLP(in_channels, score_layers, dropout)
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
            parsing = self.parse(x, edge_index)
            return self.merge(x, parsing, edge_index, edge_attr, batch, size)

    def parse(
        self, x: Tensor, edge_index: Tensor, *, resting: OptTensor = None
    ) -> Parsing:
        """Scores edges and clusters nodes; those marked as resting stay alone."""
        x = self._widened(x)
        drops = self.training and self.dropout_parsing > 0.0
        layer = self.edge_net.only_layer(x.dtype)
        if drops or self.self_loops or self.score_round is not None or layer is None:
            return self._parse_stepwise(x, edge_index, resting)
        return Parsing.of(*scored_clusters(x, edge_index, *layer, resting))

    def _parse_stepwise(
        self, x: Tensor, edge_index: Tensor, resting: OptTensor
    ) -> Parsing:
        """Parses with loops, dropout, rounding and any depth of the MLP."""
        size, kept = x.size(0), None
        loops = torch.arange(size if self.self_loops else 0, device=x.device)
        if self.training and self.dropout_parsing > 0.0:
            pairs, kept = drop_pairs(edge_index, size, self.dropout_parsing)
            stays = torch.rand(loops.size(0), device=x.device) >= self.dropout_parsing
            loops = loops.index_select(0, stays.nonzero().view(-1))
        else:
            pairs = distinct_pairs(edge_index, size)
        links = torch.cat([pairs, loops.expand(2, -1)], dim=1)
        # Only links inside clusters get a gradient: it is built for them alone,
        # unless dropout inside the MLP would then draw anew.
        once = self.training and self.edge_net.is_random
        with torch.set_grad_enabled(once and torch.is_grad_enabled()):
            logit = self.edge_net(x, links)
        choice = logit.detach()
        if resting is not None:
            choice = choice.masked_fill(resting.index_select(0, links[0]), torch.nan)
        cluster, count = link_components(self._choice(choice, pairs, loops, size))
        mean, number = self.edge_net.mean_scores(
            x, links, logit, cluster, count, again=not once
        )
        return Parsing.of(cluster, mean, number, kept)

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
        pooled = self.reduce(self._widened(x), selection, factor).to(x.dtype)
        if kept is not None:
            edge_index = edge_index.index_select(1, kept)
            edge_attr = None if edge_attr is None else edge_attr.index_select(0, kept)
        edges = self.connect(selection, edge_index, edge_attr, batch)
        loss, score = x.new_zeros(()), parsing.score.to(x.dtype)
        return self.pack(pooled, edges, selection, score, loss, batch_size)

    def _widened(self, x: Tensor) -> Tensor:
        """Features in the type of the weights, float32 at least."""
        return x.to(torch.promote_types(self.edge_net.dtype, torch.float32))

    def _choice(self, logit: Tensor, pairs: Tensor, loops: Tensor, size: int) -> Tensor:
        """The node that each node points at."""
        logit = rounded(logit, self.score_round)
        edges, own = logit.split([pairs.size(1), loops.size(0)])
        none = own.new_full((size,), torch.nan)
        best = none.index_copy(0, loops, own) if self.self_loops else None
        return dominant_links(pairs, edges, size, best, both_ways=True)

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
        merges = edge_attr is not None and self.edge_reduce != "binary"
        groups = (selection.cluster_index, selection.num_clusters)
        edges, place = contract(edge_index, *groups, has_place=merges)
        size = edges.size(1)
        if edge_attr is not None and merges:
            # Edges inside clusters are merged into a last one, which is left out.
            how: Any = self.edge_reduce
            merged = segment_reduce(edge_attr, place, dim_size=size + 1, reduce=how)
            edge_attr = merged.narrow(0, 0, size)
        elif edge_attr is not None:
            _check_scalar(edge_attr)
            edge_attr = edge_attr.new_ones(size, *edge_attr.shape[1:])
        return ConnectOutput(edges, edge_attr, pooled_batch(selection, batch))

    def __repr__(self) -> str:
        """The call that builds it, without the arguments left at their defaults."""
        return spell_call(type(self), self._given)


def _check_options(given: Mapping[str, Any]) -> None:
    """Raises ``ValueError`` for an option out of range."""
    owner = "GraphParsingPooling"
    check_choice(owner, "multiplier", given["multiplier"], get_args(Multiplier))
    check_choice(owner, "edge_reduce", given["edge_reduce"], get_args(CoarseEdges))
    for name, low in (("in_channels", 1), ("score_layers", 1), ("deepsets_layers", 0)):
        if given[name] < low:
            raise ValueError(
                f"{owner} got {name}={given[name]}, expected an int of at least {low}; "
                f"choose one."
            )
    for name in ("dropout", "dropout_parsing", "score_round"):
        value = given[name]
        if value is not None and not 0.0 <= value < 1.0:
            raise ValueError(
                f"{owner} got {name}={value}, expected a float in [0, 1); choose a "
                f"smaller one."
            )


def _check_scalar(edge_attr: OptTensor) -> None:
    """Raises ``ValueError`` for attributes that ones cannot stand for."""
    if edge_attr is not None and edge_attr.dim() > 1 and edge_attr.size(-1) > 1:
        raise ValueError(
            f"GraphParsingPooling got edge_attr of shape {list(edge_attr.shape)}, "
            f"expected [E] or [E, 1] with edge_reduce='binary'; choose edge_reduce="
            f"'sum', 'mean' or 'max'."
        )
