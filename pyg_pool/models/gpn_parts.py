"""How a graph parsing network is put together, and its ways up and down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from pyg_pool.core import PoolOutput, lift
from pyg_pool.core.graph_level import GraphLevel, undirected
from pyg_pool.core.naming import rename_on_load
from pyg_pool.errors import check_batch, check_edges, check_features
from pyg_pool.models.conv_factory import check_edge_attr
from pyg_pool.models.gpn_blocks import ConvBlock, NormMLP
from pyg_pool.models.gpn_forms import OWNER, check_options, layer_counts
from pyg_pool.models.layers import reset
from pyg_pool.pool import GraphParsingPooling
from pyg_pool.typing import OptTensor

__all__ = ["Climb", "ParsingParts", "Round"]

# The authors' names of the weights.
LOADED_NAMES = (
    (r"input_trans\.", "input_mlp."),
    (r"gnn1\.", "score_convs."),
    (r"gnn2\.", "feature_convs."),
    (r"gnn3\.", "up_convs."),
    (r"parsing_net\.", "pool."),
    (r"deepsets_(pre|post)\.", r"pool.\1."),
    (r"predictor\.", "head."),
)


KEPT = (
    "in_channels",
    "task",
    "readout",
    "edge_channels",
    "use_edge_attr",
    "max_levels",
    "min_nodes",
    "freeze_finished",
    "to_undirected",
)


@dataclass
class Round:
    """One round of parsing: the graph before it and what came of it.

    ``merged`` says which graphs became smaller.
    """

    before: GraphLevel
    h: Tensor
    out: PoolOutput
    count: Tensor
    merged: Tensor


@dataclass
class Climb:
    """All rounds, with the features at the start and those left at the end."""

    start: Tensor
    rounds: list[Round]
    h: Tensor


class ParsingParts(Module):
    """The modules of the network and what it does with a graph.

    Args:
        given: The arguments of :class:`GraphParsingNetwork` by name.
    """

    in_channels: int
    task: str
    readout: str
    edge_channels: int | None
    use_edge_attr: bool
    max_levels: int | None
    min_nodes: int
    freeze_finished: bool
    to_undirected: bool

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__()
        check_options(given)
        for name in KEPT:
            setattr(self, name, given[name])
        width, rate = given["hidden_channels"], given["dropout"]
        depth, first = given["mlp_layers"], given["input_layers"]
        first = depth if first is None else first
        self.input_mlp = NormMLP(
            given["in_channels"], width, width, first, rate,
            act_final=given["act_final"],
        )  # fmt: skip
        blocks = [_block(given, count) for count in layer_counts(given)]
        self.score_convs = blocks[0]
        self.feature_convs = None if given["feature_layers"] == "share" else blocks[1]
        has_own = self.task == "node" and given["up_layers"] != "share"
        self.up_convs = blocks[2] if has_own else None
        self.pool = _pooling(given)
        # Only then may a graph that rests still have edges that could be chosen.
        frees_loops = self.freeze_finished and self.pool.self_loops
        self.parses_all = self.min_nodes == 1 and not frees_loops
        self.head = NormMLP(width, width, given["out_channels"], depth, rate)
        rename_on_load(self, LOADED_NAMES)

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        for part in self.children():
            reset(part)

    def begin(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: OptTensor,
        batch: OptTensor,
        batch_size: int | None,
    ) -> GraphLevel:
        """Checks the input; returns the finest graph."""
        check_features(OWNER, x, self.in_channels)
        edge_index = check_edges(OWNER, edge_index, edge_attr, x.size(0))
        if self.use_edge_attr:
            takes = self.score_convs.takes
            check_edge_attr(OWNER, takes, self.edge_channels, edge_attr)
        size = check_batch(OWNER, batch, batch_size, x.size(0))
        batch = edge_index.new_zeros(x.size(0)) if batch is None else batch
        level = GraphLevel(edge_index, edge_attr, batch, size, x.size(0))
        return undirected(OWNER, level, symmetrise=self.to_undirected)

    def climb(self, x: Tensor, level: GraphLevel) -> Climb:
        """Parses and pools until nothing merges."""
        start = h = self.input_mlp(x)
        going = level.sizes > self.min_nodes
        rounds: list[Round] = []
        limit = level.num_nodes if self.max_levels is None else self.max_levels
        while len(rounds) < limit and level.edge_index.size(1) > 0:
            scored = self.score_convs(h, level, self.use_edge_attr)
            resting = None if self.parses_all else ~going.index_select(0, level.batch)
            edges = (level.edge_index, level.edge_attr)
            parsing = self.pool.parse(scored, *edges, resting=resting)
            if parsing.selection.num_clusters == level.num_nodes:
                break
            rows = scored
            if self.feature_convs is not None:
                rows = self.feature_convs(h, level, self.use_edge_attr)
            out = self.pool.merge(rows, parsing, *edges, level.batch, level.batch_size)
            above = GraphLevel.of(out)
            going = going & (above.sizes < level.sizes)
            # The features of a graph that rests do not change any more.
            moves = going if self.freeze_finished else level.sizes > 1
            out.x = _kept_at(~moves, h, out, level.batch)
            rounds.append(Round(level, h, out, parsing.count.to(h.dtype), going))
            h, level = out.x, above
            if self.freeze_finished:
                going = going & (level.sizes > self.min_nodes)
            else:
                going = level.sizes > self.min_nodes
        return Climb(start, rounds, h)

    def features(self, finest: GraphLevel, climb: Climb) -> Tensor:
        """What the last MLP reads: a row per graph or per node."""
        if self.task == "node":
            return self._descend(climb)
        if self.readout == "last":
            last = GraphLevel.of(climb.rounds[-1].out) if climb.rounds else finest
            return last.readout(climb.h)
        total = finest.readout(climb.start, "mean")
        for each in climb.rounds:
            mean = GraphLevel.of(each.out).readout(each.out.x, "mean")
            counts = each.merged.unsqueeze(-1) if self.freeze_finished else 1.0
            total = total + mean * counts
        return total

    def _descend(self, climb: Climb) -> Tensor:
        """Copies the coarsest features down, level by level."""
        convs = self.up_convs or self.feature_convs or self.score_convs
        h = climb.h
        for each in reversed(climb.rounds):
            selection, level = each.out.selection, each.before
            still = lift(h, selection)
            rows = still
            if self.pool.multiplier == "sum":
                rows = lift(h / each.count.unsqueeze(-1), selection)
            rows = convs(rows + each.h, level, self.use_edge_attr)
            if self.freeze_finished:
                moves = each.merged.index_select(0, level.batch).unsqueeze(-1)
                rows = torch.where(moves, rows, still)
            h = rows
        return h


def _pooling(given: Mapping[str, Any]) -> GraphParsingPooling:
    """The operator of all levels."""
    loops, width = given["self_loops"], given["edge_channels"] or 1
    same = (
        "score_layers", "dropout", "dropout_parsing", "multiplier", "deepsets_layers",
        "edge_reduce", "score_round", "scorer", "max_cluster_size",
    )  # fmt: skip
    return GraphParsingPooling(
        given["hidden_channels"],
        self_loops=given["task"] == "node" if loops is None else loops,
        edge_channels=width if given["score_edges"] else None,
        **{name: given[name] for name in same},
    )


def _block(given: Mapping[str, Any], count: int) -> ConvBlock:
    """A block of convolutions."""
    return ConvBlock(
        given["conv"],
        given["hidden_channels"],
        count,
        given["dropout"],
        act_final=given["act_final"],
        edge_channels=given["edge_channels"],
        options=given["conv_options"],
    )


def _kept_at(resting: Tensor, h: Tensor, out: PoolOutput, batch: Tensor) -> Tensor:
    """Pooled features, with the old ones in the graphs that rest."""
    nodes = resting.index_select(0, batch).nonzero().view(-1)
    if nodes.size(0) == 0:
        return out.x
    places = out.selection.cluster_index.index_select(0, nodes)
    return out.x.index_copy(0, places, h.index_select(0, nodes).to(out.x.dtype))
