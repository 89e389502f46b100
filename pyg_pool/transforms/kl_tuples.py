"""Labelled tuples and copies as a PyG transform, with increments for batches."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import BaseTransform

from pyg_pool.errors import check_choice, reads_values
from pyg_pool.relational import (
    Copies,
    TupleSet,
    expand_copies,
    find_tuples,
    lay_ground,
)
from pyg_pool.relational.checks import check_whole
from pyg_pool.relational.copies import EGO_MODES
from pyg_pool.relational.domains import Ground
from pyg_pool.relational.origin import Origin
from pyg_pool.relational.pairs import PairSet, find_pairs_and_joins

__all__ = ["KLData", "KLTuples"]


class KLData(Data):
    """A graph with its labelled copies, which batches put side by side.

    The attributes are those of :class:`KLTuples`; its methods ``copies`` and ``pairs``
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


# Data sets that keep graphs on disk load only classes known to be harmless.
torch.serialization.add_safe_globals([KLData])


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
    ``kl_size``           ``[1, 2]`` number of nodes and edges
    ``kl_origin``         the options as a text
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
        TypeError: If a number is not whole, or what is to be changed is no graph.
        ValueError: If ``l`` is below 1, an option is unknown or does not fit, or
            copies are read that were made otherwise.

    Note:
        Usable as ``transform`` and ``pre_transform``, after all transforms that change
        nodes or edges. All joins are made per graph, so keys stay small however large
        the batch.

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
        check_whole("KLTuples", l=l, ego=ego, max_distance=max_distance)
        if l < 1:
            raise ValueError(
                f"KLTuples got l={l}, expected at least one label; leave the transform "
                f"out for l=0."
            )
        check_choice("KLTuples", "ego_mode", ego_mode, EGO_MODES)
        if ego is None and ego_mode != "root":
            raise ValueError(
                f"KLTuples got ego=None, ego_mode={ego_mode!r}, expected a radius with "
                f"it; give ego, or leave ego_mode out."
            )
        self.origin = Origin.of(l, domain, ego, ego_mode, cover)
        self.l, self.domain, self.ego = l, domain, ego
        self.ego_mode, self.cover, self.max_distance = ego_mode, cover, max_distance

    def forward(self, data: Data) -> KLData:
        """Returns the graph with its tuples and copies."""
        edges, size = _edges_of(data), int(data.num_nodes or 0)
        batch = edges.new_zeros(size)
        ground = lay_ground(edges, batch, 1)
        tuples = find_tuples(
            edges, batch, self.l, self.domain, batch_size=1, cover=self.cover
        )
        copies = expand_copies(ground, tuples, ego=self.ego, ego_mode=self.ego_mode)
        out = KLData()
        for key, value in data.to_dict().items():
            if not key.startswith("kl_"):
                out[key] = value
        out.num_nodes = size
        index = tuples.index
        out.kl_length = (index >= 0).sum(1)
        out.kl_tuple = torch.where(index >= 0, index, index[:, :1])
        out.kl_pair_tuple, out.kl_pair_node = copies.pair_tuple, copies.pair_node
        if copies.kept is not None:
            out.kl_edges, out.kl_edge_id = copies.kept
        out.kl_size = torch.tensor([[size, edges.size(1)]], device=edges.device)
        out.kl_origin = str(self.origin)
        if self.max_distance is not None:
            pairs = find_pairs_and_joins(ground, self.max_distance)
            out.fwl_pair, out.fwl_joins = pairs.pair, pairs.joins
        return out

    def copies(self, data: Any) -> Copies:
        """The copies that a graph or a batch holds, for a model's ``copies``.

        Raises:
            ValueError: If it holds none, they were made with other options, or its
                nodes or edges have changed since.
        """
        self._check(data)
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
        return Copies(tuples, *pairs, ptr, ground, kept, self.origin)

    def _check(self, data: Any) -> None:
        """Refuses graphs whose copies are missing, others or out of date."""
        held = getattr(data, "kl_tuple", None)
        if held is None:
            raise ValueError(
                f"{self!r} got {type(data).__name__} without kl_tuple, expected a "
                f"graph it has changed or a batch of them; apply it, for instance as "
                f"transform of the data set."
            )
        made = getattr(data, "kl_origin", str(self.origin))
        made = {made} if isinstance(made, str) else set(made)
        is_cut = getattr(data, "kl_edges", None) is not None
        is_other = held.size(1) != self.l or is_cut is (self.ego is None)
        if made - {str(self.origin)} or is_other:
            raise ValueError(
                f"{self!r} got {'cut' if is_cut else 'whole'} copies of "
                f"{held.size(1)} labels made with {'; '.join(sorted(made))}, expected "
                f"{self.origin}; apply this very transform, or read them with the one "
                f"that made them."
            )
        size = getattr(data, "kl_size", None)
        if size is not None and reads_values(size):
            has, wanted = [data.num_nodes, data.num_edges], size.sum(0).tolist()
            if has != wanted:
                raise ValueError(
                    f"{self!r} got a graph or batch of {has[0]} nodes and {has[1]} "
                    f"edges whose copies were made of {wanted[0]} and {wanted[1]}, "
                    f"expected the same; apply it after all transforms that change "
                    f"nodes or edges."
                )

    def pairs(self, data: Any) -> PairSet:
        """The pairs and joins that a graph or a batch holds, for a 2-FWL network.

        Raises:
            ValueError: If it holds none.
        """
        if getattr(data, "fwl_pair", None) is None:
            raise ValueError(
                f"{self!r} got {type(data).__name__} without fwl_pair, expected a "
                f"graph or batch with pairs; apply KLTuples with a max_distance."
            )
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


def _edges_of(data: Any) -> Tensor:
    """The edges of a graph that copies can be made of."""
    graphs = getattr(data, "batch", None)
    if isinstance(data, Batch) or (isinstance(graphs, Tensor) and graphs.any()):
        is_loose = isinstance(graphs, Tensor) and not isinstance(data, Batch)
        number = int(torch.as_tensor(graphs).max()) + 1 if is_loose else data.num_graphs
        raise TypeError(
            f"KLTuples got a batch of {number} graphs, expected one graph; pass it as "
            f"transform or pre_transform of the data set, or change each of "
            f"batch.to_data_list()."
        )
    if not isinstance(data, Data):
        raise TypeError(
            f"KLTuples got data of type {type(data).__name__}, expected PyG Data with "
            f"edge_index; convert it, heterogeneous graphs with to_homogeneous()."
        )
    own = [name for name in ("__inc__", "__cat_dim__")
           if getattr(type(data), name) is not getattr(Data, name)]  # fmt: skip
    if own and not isinstance(data, KLData):
        raise TypeError(
            f"KLTuples got data of type {type(data).__name__} with {' and '.join(own)} "
            f"of its own, expected Data, whose numbers it knows how to shift in "
            f"batches; copy what the network reads into a Data."
        )
    edges: Tensor | None = data.edge_index
    if edges is None and getattr(data, "adj_t", None) is not None:
        raise ValueError(
            "KLTuples got a graph with adj_t and no edge_index, expected edge ids of "
            "shape [2, E]; apply it before ToSparseTensor."
        )
    if edges is None:
        device = None if data.x is None else data.x.device
        return torch.empty((2, 0), dtype=torch.long, device=device)
    return edges


def _graphs_of(data: Any) -> tuple[Tensor, int]:
    """Graph of each node, and the number of graphs."""
    batch = getattr(data, "batch", None)
    if batch is None:
        return data.kl_pair_node.new_zeros(data.num_nodes), 1
    return batch, int(data.num_graphs)
