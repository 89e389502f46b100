"""Parsing with all options: loops, dropout, rounding, attributes, bounded clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pyg_pool.core.blocks import PairMLP
from pyg_pool.core.pair_scorer import CosineScorer, DotScorer, OwnScorer, PairScorer
from pyg_pool.core.parsing import Parsing
from pyg_pool.errors import check_choice
from pyg_pool.kernels import coalesce, segment_reduce
from pyg_pool.kernels.pairs import distinct_pairs, drop_pairs, pair_numbers
from pyg_pool.kernels.parse import dominant_links, link_components, rounded
from pyg_pool.kernels.parse_bounded import bounded_components
from pyg_pool.typing import OptTensor

__all__ = ["OWNER", "ParseRules", "Scorer", "make_scorer", "node_links", "parse_steps"]

OWNER = "GraphParsingPooling"
Scorer = Literal["product", "cosine", "dot"] | Callable[..., Tensor]


@dataclass
class ParseRules:
    """What a parse does beside scoring pairs and following the best of each node."""

    self_loops: bool = False
    dropout: float = 0.0
    score_round: float | None = None
    max_cluster_size: int | None = None
    validate: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it does nothing else."""
        return self == ParseRules()


def make_scorer(
    scorer: Scorer,
    channels: int,
    num_layers: int,
    dropout: float,
    edge_channels: int | None,
) -> PairScorer:
    """The module that scores pairs.

    Example:
        >>> from pyg_pool.core.parse_steps import make_scorer
        >>> make_scorer("dot", 4, 1, 0.0, None)
        DotScorer()
    """
    if callable(scorer):
        return OwnScorer(scorer)
    check_choice(OWNER, "scorer", scorer, ("product", "cosine", "dot"))
    if scorer == "product":
        return PairMLP(channels, num_layers, dropout, edge_channels or 0)
    if edge_channels is not None:
        raise ValueError(
            f"{OWNER} got scorer={scorer!r} with edge_channels={edge_channels}, "
            f"expected no attributes there; leave edge_channels out or take "
            f"scorer='product'."
        )
    return CosineScorer(channels) if scorer == "cosine" else DotScorer(channels)


def parse_steps(
    scorer: PairScorer,
    x: Tensor,
    edge_index: Tensor,
    attr: OptTensor,
    rules: ParseRules,
    resting: OptTensor = None,
) -> Parsing:
    """Scores pairs and clusters nodes, step by step.

    Args:
        scorer: Module that scores pairs.
        x: ``[N, F]`` features.
        edge_index: ``[2, E]`` int64 edges.
        attr: ``[E, D]`` attributes that are scored too.
        rules: What else is done.
        resting: ``[N]`` nodes that stay alone.
    """
    size, kept = x.size(0), None
    if rules.validate:
        _check_directions(edge_index, size)
    loops = torch.arange(size if rules.self_loops else 0, device=x.device)
    if rules.dropout > 0.0:
        pairs, kept = drop_pairs(edge_index, size, rules.dropout)
        stays = torch.rand(loops.size(0), device=x.device) >= rules.dropout
        loops = loops.index_select(0, stays.nonzero().view(-1))
    else:
        pairs = distinct_pairs(edge_index, size)
    links = torch.cat([pairs, loops.expand(2, -1)], dim=1)
    if attr is not None:
        attr = _attr_of_links(edge_index, attr, kept, size, links.size(1))
    # Only links inside clusters get a gradient: it is built for them alone, unless
    # the scorer would then draw anew.
    once = scorer.training and scorer.is_random
    with torch.set_grad_enabled(once and torch.is_grad_enabled()):
        logit = scorer(x, links, attr).to(x.dtype)
    choice = logit.detach()
    if rules.validate:
        _check_numbers(choice, links)
    if resting is not None:
        choice = choice.masked_fill(resting.index_select(0, links[0]), torch.nan)
    cluster, count = _clusters(choice, pairs, loops, size, rules)
    mean, number = scorer.mean_scores(
        x, links, logit, cluster, count, again=not once, attr=attr
    )
    return Parsing.of(cluster, mean, number, kept)


def _clusters(
    logit: Tensor, pairs: Tensor, loops: Tensor, size: int, rules: ParseRules
) -> tuple[Tensor, int]:
    """The cluster of each node, and their number."""
    logit = rounded(logit, rules.score_round)
    link = node_links(logit, pairs, loops, size)
    if rules.max_cluster_size is None:
        return link_components(link)
    edges = logit.narrow(0, 0, pairs.size(1))
    return bounded_components(link, pairs, edges, rules.max_cluster_size)


def node_links(logit: Tensor, pairs: Tensor, loops: Tensor, size: int) -> Tensor:
    """The node that each node points at.

    Args:
        logit: Numbers of pairs, then of loops.
        pairs: ``[2, P]`` pairs.
        loops: Nodes that may point at themselves.
        size: Number of nodes.
    """
    edges, own = logit.split([pairs.size(1), loops.size(0)])
    best = None
    if loops.size(0) > 0:
        best = own.new_full((size,), torch.nan).index_copy(0, loops, own)
    return dominant_links(pairs, edges, size, best, both_ways=True)


def _attr_of_links(
    edge_index: Tensor, attr: Tensor, kept: OptTensor, size: int, num_links: int
) -> Tensor:
    """The mean attributes of the edges of each pair; zeros for loops."""
    if kept is not None:
        edge_index = edge_index.index_select(1, kept)
        attr = attr.index_select(0, kept)
    pairs, number = pair_numbers(edge_index, size)
    # Given loops have no pair: they are merged into a last row, which is left out.
    number = torch.where(number < 0, pairs.size(1), number)
    rows = segment_reduce(attr, number, dim_size=pairs.size(1) + 1, reduce="mean")
    rows = rows.narrow(0, 0, pairs.size(1))
    return torch.cat([rows, rows.new_zeros(num_links - rows.size(0), rows.size(1))])


def _check_directions(edge_index: Tensor, size: int) -> None:
    """Raises ``ValueError`` where an edge lacks its opposite."""
    between = edge_index[:, edge_index[0] != edge_index[1]]
    listed = coalesce(between, num_nodes=size)[0].size(1)
    pairs = distinct_pairs(edge_index, size).size(1)
    if listed != 2 * pairs:
        raise ValueError(
            f"{OWNER} got {2 * pairs - listed} edges without their opposite, expected "
            f"both directions of every edge with validate=True; add them with "
            f"torch_geometric.utils.to_undirected."
        )


def _check_numbers(logit: Tensor, links: Tensor) -> None:
    """Raises ``ValueError`` for a score that is not a number."""
    bad = logit.isnan().nonzero().view(-1)
    if bad.numel() > 0:
        raise ValueError(
            f"{OWNER} got a score of nan for {bad.numel()} of {logit.numel()} edges, "
            f"the first between nodes {links[:, bad[0]].tolist()}, expected numbers "
            f"with validate=True; look for nan in x."
        )
