"""Labelled tuples and copies as a PyG transform, with increments for batches."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from pyg_pool.relational import (
    Copies,
    TupleSet,
    expand_copies,
    find_tuples,
    lay_ground,
)
from pyg_pool.relational.domains import Ground
from pyg_pool.relational.pairs import PairSet, find_pairs_and_joins

__all__ = ["KLData", "KLTuples"]


class KLData(Data):
    """A graph with its labelled copies, which batches put side by side.

    The attributes are those of :class:`KLTuples`; :meth:`copies` and :meth:`pairs`
    read them back from a graph or a batch.
    """

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        """What the numbers of the next graph are shifted by."""
        rows = {
            "kl_tuple": self.num_nodes,
            "kl_pair_node": self.num_nodes,
            "kl_pair_tuple": _rows(self, "kl_tuple", 0),
            "kl_edges": _rows(self, "kl_pair_node", 0),
            "kl_edge_id": self.num_edges,
            "fwl_pair": self.num_nodes,
            "fwl_joins": _rows(self, "fwl_pair", 1),
        }
        return (
            rows[key] if key in rows else super().__inc__(key, value, *args, **kwargs)
        )

    def __cat_dim__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        """Along which dimension graphs are put side by side."""
        if key.startswith(("kl_", "fwl_")):
            return 1 if key in ("kl_edges", "fwl_pair", "fwl_joins") else 0
        return super().__cat_dim__(key, value, *args, **kwargs)


def _rows(data: Data, key: str, dim: int) -> int:
    value = data.to_dict().get(key)
    return 0 if value is None else int(value.size(dim))


class KLTuples(BaseTransform):
    r"""Lists labelled tuples and their copies once, ahead of training.

    Adds to a graph, beside what it has:

    ===================== ========================================================
    attribute             content
    ===================== ========================================================
    ``kl_tuple``          ``[T, l]`` nodes; padding repeats the first node
    ``kl_length``         ``[T]`` number of nodes that are no padding
    ``kl_pair_tuple``     ``[P]`` tuple of each pair
    ``kl_pair_node``      ``[P]`` node of each pair
    ``kl_edges``          ``[2, EE]`` copied edges, where copies are cut to balls
    ``kl_edge_id``        ``[EE]`` edge that each one copies, likewise
    ``fwl_pair``          ``[2, Q]`` pairs of nodes for 2-FWL, if asked for
    ``fwl_joins``         ``[3, R]`` joins of pairs
    ===================== ========================================================

    Args:
        l: Number of labels, at least 1.
        domain: Tuples that get labels, see
            :func:`pyg_pool.relational.enumerate_tuples`.
        ego: Radius of the balls that copies are cut to.
        ego_mode: ``"root"``, ``"union"`` or ``"intersection"``.
        cover: Add padded tuples for nodes in no tuple.
        max_distance: List the pairs within this distance and their joins too.

    Raises:
        ValueError: If ``l`` is below 1.

    Note:
        Usable as ``transform`` and ``pre_transform``. All joins are made per graph,
        so keys stay small however large the batch.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Batch, Data
        >>> from pyg_pool.transforms import KLTuples
        >>> path = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> one = KLTuples(1, ego=1)(path)
        >>> batch = Batch.from_data_list([one, one])
        >>> batch.kl_pair_node.tolist()
        [0, 1, 0, 1, 2, 1, 2, 3, 4, 3, 4, 5, 4, 5]
    """

    def __init__(
        self,
        l: int = 1,  # noqa: E741
        *,
        domain: str = "distinct",
        ego: int | None = None,
        ego_mode: str = "root",
        cover: bool = True,
        max_distance: int | None = None,
    ) -> None:
        if l < 1:
            raise ValueError(
                f"KLTuples got l={l}, expected at least one label; leave the transform "
                f"out for l=0."
            )
        self.l, self.domain, self.ego = l, domain, ego
        self.ego_mode, self.cover, self.max_distance = ego_mode, cover, max_distance

    def forward(self, data: Data) -> KLData:
        """Returns the graph with its tuples and copies."""
        size = int(data.num_nodes or 0)
        edges = data.edge_index
        if edges is None:
            edges = torch.empty((2, 0), dtype=torch.long)
        batch = edges.new_zeros(size)
        ground = lay_ground(edges, batch, 1)
        tuples = find_tuples(
            edges, batch, self.l, self.domain, batch_size=1, cover=self.cover
        )
        copies = expand_copies(ground, tuples, ego=self.ego, ego_mode=self.ego_mode)
        out = KLData()
        for key, value in data.to_dict().items():
            out[key] = value
        out.num_nodes = size
        index = tuples.index
        out.kl_length = (index >= 0).sum(1)
        out.kl_tuple = torch.where(index >= 0, index, index[:, :1])
        out.kl_pair_tuple, out.kl_pair_node = copies.pair_tuple, copies.pair_node
        if copies.kept is not None:
            out.kl_edges, out.kl_edge_id = copies.kept
        if self.max_distance is not None:
            pairs = find_pairs_and_joins(ground, self.max_distance)
            out.fwl_pair, out.fwl_joins = pairs.pair, pairs.joins
        return out

    def copies(self, data: Any) -> Copies:
        """The copies that a graph or a batch holds, for a model's ``copies``."""
        batch, size = _graphs_of(data)
        place = torch.arange(self.l, device=batch.device)
        is_there = place < data.kl_length.view(-1, 1)
        index = data.kl_tuple.masked_fill(~is_there, -1)
        graphs = batch.index_select(0, data.kl_tuple[:, 0])
        total = graphs.new_zeros(size)
        total = total.scatter_add_(0, graphs, torch.ones_like(graphs))
        tuples = TupleSet(index, graphs, total, size)
        count = graphs.new_zeros(index.size(0) + 1)
        ones = torch.ones_like(data.kl_pair_tuple)
        ptr = count.scatter_add_(0, data.kl_pair_tuple + 1, ones).cumsum(0)
        kept = None if self.ego is None else (data.kl_edges, data.kl_edge_id)
        edges = data.edge_index
        if edges is None:
            edges = batch.new_zeros((2, 0))
        ground = Ground.of(edges, batch, size)
        pairs = data.kl_pair_tuple, data.kl_pair_node
        return Copies(tuples, *pairs, ptr, ground, kept)

    def pairs(self, data: Any) -> PairSet:
        """The pairs and joins that a graph or a batch holds, for a 2-FWL network."""
        batch, size = _graphs_of(data)
        graphs = batch.index_select(0, data.fwl_pair[0])
        return PairSet(data.fwl_pair, graphs, data.fwl_joins, size)

    def __repr__(self) -> str:
        """The call that builds it."""
        return (
            f"KLTuples({self.l}, domain={self.domain!r}, ego={self.ego}, "
            f"ego_mode={self.ego_mode!r}, cover={self.cover}, "
            f"max_distance={self.max_distance})"
        )


def _graphs_of(data: Any) -> tuple[Tensor, int]:
    """Graph of each node, and the number of graphs."""
    batch = getattr(data, "batch", None)
    if batch is None:
        return data.kl_pair_node.new_zeros(data.num_nodes), 1
    return batch, int(data.num_graphs)
