"""The pooling operators of a network and its one way of making a level coarser."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, ModuleList

from pyg_pool.core import Hierarchy, Pooling, PoolOutput, reduce
from pyg_pool.errors import check_batch, check_choice, check_edges, check_features
from pyg_pool.models.conv_factory import add_missing_loops
from pyg_pool.models.layers import reset
from pyg_pool.pool import GPool
from pyg_pool.typing import NodeReduce, OptTensor

__all__ = [
    "Graph",
    "PoolStack",
    "graph_of",
    "hierarchy_of",
    "make_pools",
    "per_level",
    "sum_losses",
    "with_loops",
]

Pool = str | type | Callable[[int, float], Pooling] | Sequence[Pooling]


@dataclass
class Graph:
    """Everything of one level but its features."""

    edge_index: Tensor
    edge_attr: OptTensor
    batch: OptTensor
    batch_size: int


def graph_of(out: PoolOutput) -> Graph:
    """The graph that a pooling operator made."""
    return Graph(out.edge_index, out.edge_attr, out.batch, out.batch_size)


def with_loops(graph: Graph, num_nodes: int) -> Graph:
    """The graph with a self loop at every node."""
    edges = add_missing_loops(graph.edge_index, graph.edge_attr, num_nodes)
    return Graph(*edges, graph.batch, graph.batch_size)


def hierarchy_of(x: Tensor, graph: Graph, pooled: Sequence[PoolOutput]) -> Hierarchy:
    """The levels that a network went through."""
    edges = (graph.edge_index, graph.edge_attr)
    return Hierarchy.from_outputs(x, *edges, graph.batch, graph.batch_size, pooled)


def sum_losses(pooled: Sequence[PoolOutput]) -> Tensor:
    """The losses of all pooling operators together."""
    return torch.stack([out.loss for out in pooled]).sum()


def per_level(owner: str, option: str, value: Any, levels: int) -> list[Any]:
    """One value per level; the last of a shorter list repeats."""
    if not isinstance(value, (list, tuple)):
        return [value] * levels
    if not 0 < len(value) <= levels:
        raise ValueError(
            f"{owner} got {option}={list(value)!r} with {len(value)} entries, expected "
            f"1 to {levels}, one per level; the last one repeats."
        )
    return [*value, *[value[-1]] * (levels - len(value))]


class PoolStack(ModuleList):
    """The pooling operators of a network, one per level.

    Args:
        owner: Name of the model, for messages.
        pool: ``"gpool"``, ``"precomputed"``, a pooling class, a function
            ``(in_channels, ratio) -> pooling``, or a list with one operator per
            level.
        channels: Width of the features at every level.
        ratios: Ratio per level.
        options: Further arguments of the pooling class.
        reduce: How features follow a precomputed hierarchy.
    """

    def __init__(
        self,
        owner: str,
        pool: Pool,
        channels: int,
        ratios: Sequence[float],
        options: Mapping[str, Any],
        how: NodeReduce,
    ) -> None:
        pools = make_pools(owner, pool, channels, ratios, options)
        super().__init__(pools)
        self.owner = owner
        self.how = how
        self.levels = len(ratios)
        self.is_precomputed = pool == "precomputed"

    def reset_parameters(self) -> None:
        """Resets the operators that have something to reset."""
        for pool in self:
            reset(pool)

    def edge_channels(self, level: int, width: int | None) -> int | None:
        """Width of the edge attributes at a level, where it has them."""
        for pool in list(self)[:level]:
            augment = getattr(pool, "augment", "none")
            if width is None or augment == "binary":
                return None
            if augment != "none" and width > 1:
                raise ValueError(
                    f"{self.owner} got edge_channels={width} with augment={augment!r}, "
                    f"expected scalar weights for the two-hop variants; set "
                    f"augment='none'."
                )
        return width

    def begin(
        self,
        x: Tensor,
        in_channels: int,
        graph: tuple[Tensor, OptTensor, OptTensor, int | None],
        hierarchy: Hierarchy | None,
    ) -> tuple[Tensor, Graph]:
        """Checks the input of the network; returns features and finest graph."""
        edge_index, edge_attr, batch, batch_size = graph
        x = check_features(self.owner, x, in_channels)
        edge_index = check_edges(self.owner, edge_index, edge_attr, x.size(0))
        self._check_hierarchy(hierarchy, x.size(0))
        if batch is None and hierarchy is not None:
            finest = hierarchy.levels[0]
            batch, batch_size = finest.batch, finest.batch_size
        size = check_batch(self.owner, batch, batch_size, x.size(0))
        return x, Graph(edge_index, edge_attr, batch, size)

    def coarsen(
        self, level: int, x: Tensor, graph: Graph, hierarchy: Hierarchy | None
    ) -> PoolOutput:
        """Pools the graph of a level, or follows the hierarchy one level up."""
        if hierarchy is None:
            return self[level](
                x,
                graph.edge_index,
                graph.edge_attr,
                batch=graph.batch,
                batch_size=graph.batch_size,
            )
        selection, coarse = hierarchy.selections[level], hierarchy.levels[level + 1]
        batch = coarse.batch
        if batch is None:
            batch = selection.cluster_index.new_zeros(selection.num_clusters)
            if graph.batch is not None:
                members = graph.batch.index_select(0, selection.node_index)
                batch = batch.scatter(0, selection.cluster_index, members)
        return PoolOutput(
            x=reduce(x, selection, self.how),
            edge_index=coarse.edge_index,
            edge_attr=coarse.edge_attr,
            batch=batch,
            selection=selection,
            score=None,
            loss=x.new_zeros(()),
            batch_size=graph.batch_size,
        )

    def _check_hierarchy(self, hierarchy: Hierarchy | None, num_nodes: int) -> None:
        """Raises unless a hierarchy is there exactly where it is needed."""
        if not self.is_precomputed and hierarchy is not None:
            raise ValueError(
                f"{self.owner} got a hierarchy, expected none because its own pooling "
                f"operators select the nodes; build it with pool='precomputed'."
            )
        if not self.is_precomputed:
            return
        if hierarchy is None:
            raise ValueError(
                f"{self.owner} got no hierarchy, expected one because it was built "
                f"with pool='precomputed'; pass hierarchy=..., or choose a pool."
            )
        if len(hierarchy.selections) < self.levels:
            raise ValueError(
                f"{self.owner} got a hierarchy that pools {len(hierarchy.selections)} "
                f"times, expected at least {self.levels}; coarsen further or build a "
                f"shallower network."
            )
        if hierarchy.levels[0].num_nodes != num_nodes:
            raise ValueError(
                f"{self.owner} got a hierarchy of {hierarchy.levels[0].num_nodes} "
                f"nodes for x with {num_nodes} rows, expected the same graph; batch "
                f"both in the same order."
            )


def make_pools(
    owner: str,
    pool: Pool,
    channels: int,
    ratios: Sequence[float],
    options: Mapping[str, Any],
) -> list[Pooling]:
    """The operators of all levels from a word, a class, a function or a list."""
    if isinstance(pool, str):
        check_choice(owner, "pool", pool, ("gpool", "precomputed"))
        if pool == "precomputed":
            _no_options(owner, options)
            return []
        pool = GPool
    if isinstance(pool, type):
        names = inspect.signature(pool).parameters
        has_ratio, has_width = "ratio" in names, "in_channels" in names
        width = {"in_channels": channels} if has_width else {}
        return [
            pool(**width, **({"ratio": r} if has_ratio else {}), **options)
            for r in ratios
        ]
    _no_options(owner, options)
    if callable(pool) and not isinstance(pool, Module):
        return [_checked(owner, pool(channels, ratio)) for ratio in ratios]
    given = [pool] if isinstance(pool, Module) else list(pool)
    if len(given) != len(ratios):
        raise ValueError(
            f"{owner} got {len(given)} pooling operators, expected {len(ratios)}, one "
            f"per level; pass a list of that length, a class, or a function "
            f"(in_channels, ratio) -> pooling."
        )
    return [_checked(owner, each) for each in given]


def _checked(owner: str, pool: Any) -> Pooling:
    """The operator, if it follows the interface of this library."""
    if isinstance(pool, Pooling):
        return pool
    raise TypeError(
        f"{owner} got a pooling operator of type {type(pool).__name__}, expected a "
        f"pyg_pool.Pooling; subclass Pooling or wrap the operator."
    )


def _no_options(owner: str, options: Mapping[str, Any]) -> None:
    """Raises if options came with a pool that is not built here."""
    if options:
        raise ValueError(
            f"{owner} got pool_options={dict(options)} with a pool that it does not "
            f"build, expected a pooling name or class; set them where it is built."
        )
