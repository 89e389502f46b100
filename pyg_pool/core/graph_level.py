"""One graph of a batch of graphs on the way through a network, with what it shares."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from pyg_pool.core.pooling import PoolOutput
from pyg_pool.kernels import coalesce, segment_reduce
from pyg_pool.kernels.pairs import distinct_pairs
from pyg_pool.kernels.propagate import degree_scale, propagate
from pyg_pool.kernels.segment import segment_count
from pyg_pool.typing import OptTensor

__all__ = ["GraphLevel", "undirected"]


@dataclass
class GraphLevel:
    """A graph on the way up, with what its convolutions share.

    Attributes:
        edge_index: Edges in both directions, without loops and repeats.
        edge_attr: Their weights or attributes.
        batch: Graph of each node.
        batch_size: Number of graphs.
        num_nodes: Number of nodes.
    """

    edge_index: Tensor
    edge_attr: OptTensor
    batch: Tensor
    batch_size: int
    num_nodes: int
    _scale: dict[torch.dtype, Tensor] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, out: PoolOutput) -> GraphLevel:
        """The graph that a pooling made."""
        graph = (out.edge_index, out.edge_attr, out.batch, out.batch_size)
        return cls(*graph, out.x.size(0))

    @property
    def sizes(self) -> Tensor:
        """Number of nodes of each graph."""
        return segment_count(self.batch, self.batch_size)

    def scale(self, dtype: torch.dtype) -> Tensor:
        """Factor of each node in the symmetric normalisation."""
        wide = torch.promote_types(dtype, torch.float32)
        if wide not in self._scale:
            self._scale[wide] = degree_scale(self.edge_index, self.num_nodes, wide)
        return self._scale[wide]

    def propagate(self, x: Tensor) -> Tensor:
        """Features times the normalised adjacency with loops; weights do not count."""
        return propagate(x, self.edge_index, self.scale(x.dtype))

    def readout(self, x: Tensor, how: Literal["sum", "mean"] = "sum") -> Tensor:
        """Sum or mean of the rows of each graph."""
        return segment_reduce(x, self.batch, dim_size=self.batch_size, reduce=how)


def undirected(owner: str, level: GraphLevel, *, symmetrise: bool) -> GraphLevel:
    """The graph without loops and repeats, each edge there in both directions.

    Args:
        owner: Name of the model, for messages.
        level: Checked input.
        symmetrise: Whether edges of one direction get the other one.

    Raises:
        ValueError: If edges have one direction only and are not to be symmetrised.
    """
    num_nodes = level.num_nodes
    edges, attr = _tidied(level.edge_index, level.edge_attr, num_nodes)
    expected = 2 * distinct_pairs(edges, num_nodes).size(1)
    if symmetrise and edges.size(1) != expected:
        attr = None if attr is None else torch.cat([attr, attr])
        edges = torch.cat([edges, edges.flip(0)], dim=1)
        edges, attr = coalesce(edges, attr, num_nodes, "mean")
    if edges.size(1) != expected:
        raise ValueError(
            f"{owner} got {expected - edges.size(1)} edges without their opposite "
            f"among {edges.size(1)} distinct ones, expected an undirected graph; list "
            f"both directions, or build it with to_undirected=True."
        )
    return GraphLevel(edges, attr, level.batch, level.batch_size, num_nodes)


def _tidied(
    edge_index: Tensor, edge_attr: OptTensor, num_nodes: int
) -> tuple[Tensor, OptTensor]:
    """Edges sorted, without loops, parallel ones merged by their mean."""
    kept = (edge_index[0] != edge_index[1]).nonzero().view(-1)
    if kept.size(0) != edge_index.size(1):
        edge_index = edge_index.index_select(1, kept)
        edge_attr = None if edge_attr is None else edge_attr.index_select(0, kept)
    return coalesce(edge_index, edge_attr, num_nodes, "mean")
