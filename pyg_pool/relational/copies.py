"""The labelled copies of graphs as one large graph of (tuple, node) pairs.

A copy holds the whole graph or the nodes near the labels. All copies together are
flat index tensors; nothing is padded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pyg_pool.errors import check_choice
from pyg_pool.kernels.dispatch import is_traced
from pyg_pool.kernels.pairs import distinct_pairs
from pyg_pool.relational.checks import check_whole
from pyg_pool.relational.domains import Ground
from pyg_pool.relational.neighbours import Balls, Lists, find_balls, join_lists
from pyg_pool.relational.origin import Origin
from pyg_pool.relational.tuples import TupleSet

__all__ = ["EGO_MODES", "Copies", "edge_deletions", "expand_copies"]

EGO_MODES = ("root", "union", "intersection")


@dataclass(frozen=True)
class Copies:
    """Pairs of a tuple and a node of its copy, and the edges between them.

    Args:
        tuples: The labelled tuples.
        pair_tuple: ``[P]`` tuple of each pair, ascending.
        pair_node: ``[P]`` node of each pair, ascending within a tuple.
        pair_ptr: ``[T + 1]`` first pair of each tuple.
        ground: The graphs themselves.
        kept: Edges between pairs, and which edge of the graphs each one copies; of
            whole copies ``None``, as they share the edges of their graph.
        origin: The options that prepared copies were made with.
    """

    tuples: TupleSet
    pair_tuple: Tensor
    pair_node: Tensor
    pair_ptr: Tensor
    ground: Ground
    kept: tuple[Tensor, Tensor] | None
    origin: Origin | None = None

    @property
    def is_full(self) -> bool:
        """Whether each copy holds its whole graph."""
        return self.kept is None

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the graphs themselves."""
        return self.ground.num_nodes

    @property
    def listed(self) -> tuple[Tensor, Tensor]:
        """All edges; those of whole copies are listed when they are first asked for."""
        if self.kept is not None:
            return self.kept
        # A cached property has a lock, which no traced graph can take.
        found: tuple[Tensor, Tensor] | None = self.__dict__.get("_listed")
        if found is None:
            found = _whole_edges(self.ground, self.tuples, self.pair_ptr)
            if not is_traced():
                self.__dict__["_listed"] = found
        return found

    @property
    def edge_index(self) -> Tensor:
        """Edges between pairs, ``[2, EE]``, tuple by tuple."""
        return self.listed[0]

    @property
    def edge_id(self) -> Tensor:
        """Edge of the graphs that each one copies, ``[EE]``."""
        return self.listed[1]

    @property
    def num_pairs(self) -> int:
        """Number of pairs."""
        return self.pair_node.numel()

    @property
    def pair_graph(self) -> Tensor:
        """Graph of each pair, ``[P]``."""
        return self.tuples.batch.index_select(0, self.pair_tuple)

    def find(self, tuple_id: Tensor, node: Tensor) -> Tensor:
        """Pair of each tuple and node, -1 where the copy lacks the node."""
        return find_pairs(self.pair_tuple, self.pair_node, tuple_id, node)


def find_pairs(
    pair_tuple: Tensor, pair_node: Tensor, tuple_id: Tensor, node: Tensor
) -> Tensor:
    """Position of each wanted pair among sorted ones, -1 where it is not there."""
    if pair_node.numel() == 0 or node.numel() == 0:
        return torch.full_like(node, -1)
    radix = int(torch.maximum(pair_node.max(), node.max())) + 1
    known, key = pair_tuple * radix + pair_node, tuple_id * radix + node
    place = torch.searchsorted(known, key).clamp_(max=known.numel() - 1)
    hit = (known.index_select(0, place) == key) & (node >= 0)
    return place.masked_fill(~hit, -1)


def expand_copies(
    ground: Ground,
    tuples: TupleSet,
    *,
    ego: int | None = None,
    ego_mode: str = "root",
    without: Tensor | None = None,
) -> Copies:
    """Lists the nodes and edges of the copy of each tuple.

    Args:
        ground: The graphs.
        tuples: The tuples.
        ego: Radius of the balls around the labelled nodes; ``None`` keeps the graph.
        ego_mode: ``"root"`` for the ball of the first node of the tuple, ``"union"``
            or ``"intersection"`` of the balls of all.
        without: ``[T]`` a node that each copy leaves out.

    Raises:
        TypeError: If ``ego`` is not whole.
        ValueError: If ``ego`` or ``ego_mode`` does not fit, or the lists would not fit
            into memory.

    Note:
        Balls are those of the undirected view; edges keep direction, loops and
        multiplicity. Cost: time and memory in the number of pairs and kept edges.

    Example:
        >>> import torch
        >>> from pyg_pool.relational.copies import expand_copies
        >>> from pyg_pool.relational.tuples import find_tuples, lay_ground
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> tuples = find_tuples(path, None, 1, "distinct")
        >>> copies = expand_copies(lay_ground(path, None), tuples, ego=1)
        >>> copies.pair_node.tolist(), copies.edge_id.tolist()
        ([0, 1, 0, 1, 2, 1, 2], [0, 1, 0, 1, 2, 3, 2, 3])
    """
    check_choice("expand_copies", "ego_mode", ego_mode, EGO_MODES)
    check_whole("expand_copies", ego=ego)
    length = tuples.index.size(1)
    if ego is not None and length == 0:
        raise ValueError(
            f"expand_copies got ego={ego} for tuples of {length} nodes, expected a "
            f"ball around at least one node; leave ego out for l=0."
        )
    if ego is None:
        pair_tuple, pair_node = _whole(ground, tuples)
    else:
        pair_tuple, pair_node = _near(ground, tuples, ego, ego_mode)
    if without is not None:
        stays = pair_node != without.index_select(0, pair_tuple)
        pair_tuple, pair_node = pair_tuple[stays], pair_node[stays]
    ptr = Lists.from_sorted(pair_tuple, pair_node, len(tuples)).ptr
    is_full = ego is None and without is None
    kept = None if is_full else _kept_edges(ground, pair_tuple, pair_node)
    return Copies(tuples, pair_tuple, pair_node, ptr, ground, kept)


def _whole(ground: Ground, tuples: TupleSet) -> tuple[Tensor, Tensor]:
    """All nodes of the graph for each tuple."""
    owner, node, _ = join_lists(ground.members, tuples.batch)
    return owner, node


def _near(
    ground: Ground, tuples: TupleSet, ego: int, mode: str
) -> tuple[Tensor, Tensor]:
    """The nodes in one, any or all balls of each tuple."""
    balls: Balls = find_balls(ground.lists, ground.num_nodes, ego)
    if mode == "root" or tuples.index.size(1) == 1:
        owner, node, _ = join_lists(balls.lists, tuples.index[:, 0])
        return owner, node
    rows, places = (tuples.index >= 0).nonzero(as_tuple=True)
    center = tuples.index[rows, places]
    owner, node, _ = join_lists(balls.lists, center)
    radix = max(ground.num_nodes, 1)
    key = rows.index_select(0, owner) * radix + node
    key, count = torch.unique(key, return_counts=True)
    row, node = key // radix, key % radix
    if mode == "intersection":
        # A repeated node of domain "all" counts as often as it stands there.
        wanted = (tuples.index >= 0).sum(1).index_select(0, row)
        row, node = row[count == wanted], node[count == wanted]
    return row, node


def _whole_edges(
    ground: Ground, tuples: TupleSet, ptr: Tensor
) -> tuple[Tensor, Tensor]:
    """All edges of the graph for each tuple."""
    graphs = ground.batch.index_select(0, ground.edge_index[0])
    graphs, order = torch.sort(graphs, stable=True)
    lists = Lists.from_sorted(graphs, order, tuples.batch_size)
    owner, edge, _ = join_lists(lists, tuples.batch)
    start = ground.start.index_select(0, tuples.batch)
    shift = (ptr[:-1] - start).index_select(0, owner)
    return ground.edge_index.index_select(1, edge) + shift, edge


def _kept_edges(
    ground: Ground, pair_tuple: Tensor, pair_node: Tensor
) -> tuple[Tensor, Tensor]:
    """The edges with both ends in a copy."""
    source = ground.edge_index[0]
    source, order = torch.sort(source, stable=True)
    lists = Lists.from_sorted(source, order, ground.num_nodes)
    pair, edge, _ = join_lists(lists, pair_node)
    target = ground.edge_index[1].index_select(0, edge)
    owner = pair_tuple.index_select(0, pair)
    other = find_pairs(pair_tuple, pair_node, owner, target)
    kept = other >= 0
    pair, other, edge = pair[kept], other[kept], edge[kept]
    radix = max(ground.edge_index.size(1), 1)
    rank = torch.argsort(owner[kept] * radix + edge)
    ends = torch.stack([pair.index_select(0, rank), other.index_select(0, rank)])
    return ends, edge.index_select(0, rank)


def subset_copies(copies: Copies, start: int, stop: int) -> Copies:
    """The copies of the tuples from ``start`` to before ``stop``."""
    low, high = int(copies.pair_ptr[start]), int(copies.pair_ptr[stop])
    tuples = copies.tuples
    batch = tuples.batch[start:stop]
    part = TupleSet(tuples.index[start:stop], batch, tuples.total, tuples.batch_size)
    kept = copies.kept
    if kept is not None:
        edges, ids = kept
        owner = copies.pair_tuple.index_select(0, edges[0])
        ends = torch.tensor([start, stop], device=owner.device)
        first, last = torch.searchsorted(owner, ends).tolist()
        kept = edges[:, first:last] - low, ids[first:last]
    return Copies(
        part,
        copies.pair_tuple[low:high] - start,
        copies.pair_node[low:high],
        copies.pair_ptr[start : stop + 1] - low,
        copies.ground,
        kept,
    )


def edge_deletions(ground: Ground) -> Copies:
    """A copy of the graph per edge, without that edge in either direction.

    Its tuples are the ends of the edges, lower number first; parallel edges and both
    directions are one edge, loops none.

    Example:
        >>> import torch
        >>> from pyg_pool.relational.copies import edge_deletions
        >>> from pyg_pool.relational.tuples import lay_ground
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> edge_deletions(lay_ground(path, None)).edge_id.tolist()
        [2, 3, 0, 1]
    """
    pairs = distinct_pairs(ground.edge_index, ground.num_nodes)
    graphs = ground.batch.index_select(0, pairs[0])
    graphs, order = torch.sort(graphs, stable=True)
    index = pairs.index_select(1, order).t().contiguous()
    size = ground.start.numel() - 1
    total = graphs.new_zeros(size).scatter_add_(0, graphs, torch.ones_like(graphs))
    copies = expand_copies(ground, TupleSet(index, graphs, total, size))
    ends = copies.pair_node[copies.edge_index]
    gone = index.index_select(0, copies.pair_tuple[copies.edge_index[0]]).t()
    stays = ~((ends == gone).all(dim=0) | (ends == gone.flip(0)).all(dim=0))
    kept = copies.edge_index[:, stays], copies.edge_id[stays]
    return replace(copies, kept=kept)
