"""Tuples of nodes to label: all of a domain, or a sample per graph."""

from __future__ import annotations

import operator
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pyg_pool.errors import check_batch, check_edges, reads_values
from pyg_pool.relational.checks import check_room, check_whole
from pyg_pool.relational.domains import Domain, Ground, grow
from pyg_pool.relational.ranks import sample_ranks
from pyg_pool.typing import OptTensor

__all__ = ["TupleSet", "enumerate_tuples", "find_tuples"]


@dataclass(frozen=True)
class TupleSet:
    """Tuples of nodes, graph by graph.

    Args:
        index: ``[T, l]`` nodes, -1 where a tuple is shorter.
        batch: ``[T]`` graph of each tuple, ascending.
        total: ``[B]`` number of tuples of the domain before sampling.
        batch_size: Number of graphs.
    """

    index: Tensor
    batch: Tensor
    total: Tensor
    batch_size: int

    def __len__(self) -> int:
        """Number of tuples."""
        return self.index.size(0)

    @property
    def drawn(self) -> Tensor:
        """Number of tuples of each graph, ``[B]``."""
        count = self.batch.new_zeros(self.batch_size)
        return count.scatter_add_(0, self.batch, torch.ones_like(self.batch))

    def scale(self, dtype: torch.dtype) -> Tensor:
        """Tuples of each graph per drawn tuple, ``[B]``."""
        wide = torch.promote_types(dtype, torch.float32)
        ratio = self.total.to(wide) / self.drawn.clamp(min=1).to(wide)
        return ratio.to(dtype)


def enumerate_tuples(
    edge_index: Tensor,
    batch: OptTensor,
    l: int,  # noqa: E741
    domain: str,
    *,
    max_distance: int | None = None,
    batch_size: int | None = None,
    num_nodes: int | None = None,
    cover: bool = True,
    num_samples: int | None = None,
    generator: Generator | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Lists the tuples of ``l`` nodes whose nodes get labels.

    ========================= ====================================================
    domain                    tuples
    ========================= ====================================================
    ``"all"``                 all, with repeated nodes
    ``"distinct"``            all of pairwise different nodes
    ``"subset"``              increasing ones
    ``"star"``                a root and different neighbours of it
    ``"star_set"``            the same, neighbours increasing
    ``"path"``                each node a neighbour of the one before, all different
    ``"connected"``           those that induce a connected subgraph
    ``"connected_set"``       the same, increasing
    ``"dist<=d"``             different nodes with pairwise distance at most ``d``
    ``"dist_set<=d"``         the same, increasing
    ========================= ====================================================

    Args:
        edge_index: Edges; direction, multiplicity and loops do not matter.
        batch: Graph of each node, ascending; ``None`` for one graph.
        l: Number of nodes in a tuple; 0 gives one empty tuple per graph.
        domain: Which tuples, see the table.
        max_distance: The ``d`` of ``"dist"`` and ``"dist_set"``, where the word does
            not name it.
        batch_size: Number of graphs.
        num_nodes: Number of nodes, where ``batch`` does not tell.
        cover: Append ``(v, -1, ..., -1)`` for each node that is in no tuple, lest
            small components have no tuples at all.
        num_samples: Draw so many tuples of each graph, without replacement, or all
            where there are no more. Means over tuples stay unbiased.
        generator: Source of the draw. One on the CPU, or none after
            ``torch.manual_seed``, gives the same tuples on every device.

    Returns:
        Nodes of each tuple (global numbers, -1 for padding) and its graph; graph by
        graph, in lexicographic order, the cover tuples of a graph last.

    Shapes:
        edge_index: ``[2, E]`` int64; batch: ``[N]`` int64; returns ``[T, l]``,
        ``[T]`` int64.

    Raises:
        TypeError: If a number is not whole, or an input of another type.
        ValueError: If the domain is unknown, a number, shape or dtype does not fit,
            ``batch`` is not ascending, an edge joins two graphs, or the list would
            not fit into memory.

    Note:
        Cost: time and memory in the number of tuples, for ``"star"``, ``"path"`` and
        ``"dist"`` linear in the number of nodes at bounded degree. Samples of
        ``"all"``, ``"distinct"`` and ``"subset"`` are drawn without listing the rest.

    Source:
        C. Zhou, X. Wang, M. Zhang. From Relational Pooling to Subgraph GNNs: A
        Universal Framework for More Expressive Graph Neural Networks. ICML 2023.

    Example:
        >>> import torch
        >>> from pyg_pool.relational import enumerate_tuples
        >>> path = torch.tensor([[0, 1], [1, 2]])
        >>> batch = torch.tensor([0, 0, 0, 0])
        >>> enumerate_tuples(path, batch, 2, "star")[0].tolist()
        [[0, 1], [1, 0], [1, 2], [2, 1], [3, -1]]
    """
    found = find_tuples(
        edge_index,
        batch,
        l,
        domain,
        max_distance=max_distance,
        batch_size=batch_size,
        num_nodes=num_nodes,
        cover=cover,
        num_samples=num_samples,
        generator=generator,
    )
    return found.index, found.batch


def find_tuples(
    edge_index: Tensor,
    batch: OptTensor,
    length: int,
    domain: str,
    *,
    max_distance: int | None = None,
    batch_size: int | None = None,
    num_nodes: int | None = None,
    cover: bool = True,
    num_samples: int | None = None,
    generator: Generator | None = None,
) -> TupleSet:
    """The tuples of :func:`enumerate_tuples` with the sizes of their graphs.

    Example:
        >>> import torch
        >>> from pyg_pool.relational import find_tuples
        >>> path = torch.tensor([[0, 1], [1, 2]])
        >>> find_tuples(path, None, 2, "star", num_samples=3).total
        tensor([4])
    """
    check_whole("enumerate_tuples", l=length, batch_size=batch_size)
    check_whole("enumerate_tuples", 1, num_samples=num_samples)
    if generator is not None and not isinstance(generator, Generator):
        raise TypeError(
            f"enumerate_tuples got generator of type {type(generator).__name__}, "
            f"expected a torch.Generator; pass torch.Generator().manual_seed(seed)."
        )
    length = operator.index(length)
    ground = lay_ground(edge_index, batch, batch_size, num_nodes)
    parsed = Domain.parse(domain, max_distance)
    size = ground.start.numel() - 1
    if length == 0:
        graphs = torch.arange(size, device=ground.start.device)
        ones = torch.ones_like(graphs)
        return TupleSet(graphs.new_zeros((size, 0)), graphs, ones, size)
    if num_samples is not None:
        drawn = sample_ranks(ground, length, parsed, num_samples, generator, cover)
        if drawn is not None:
            return TupleSet(*drawn, size)
    index = grow(ground, length, parsed)
    graphs = ground.batch.index_select(0, index[:, 0])
    if cover:
        index, graphs = _with_cover(ground, index, graphs)
    count = graphs.new_zeros(size)
    count.scatter_add_(0, graphs, torch.ones_like(graphs))
    if num_samples is not None:
        kept = _drawn(graphs, count, num_samples, generator)
        index, graphs = index.index_select(0, kept), graphs.index_select(0, kept)
    return TupleSet(index, graphs, count, size)


def lay_ground(
    edge_index: Tensor,
    batch: OptTensor,
    batch_size: int | None = None,
    num_nodes: int | None = None,
) -> Ground:
    """Checks edges and graph ids and finds the first node of each graph.

    Raises:
        TypeError: If an input is no tensor, or a number not whole.
        ValueError: If shapes, dtypes, devices, ids or their order do not fit.

    Example:
        >>> import torch
        >>> from pyg_pool.relational import lay_ground
        >>> lay_ground(torch.tensor([[0], [1]]), torch.tensor([0, 0, 1])).start
        tensor([0, 2, 3])
    """
    if batch is None:
        check_whole("enumerate_tuples", num_nodes=num_nodes, batch_size=batch_size)
        if num_nodes is None:
            edge_index = check_edges("enumerate_tuples", edge_index, None, None)
            num_nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0
        edge_index = check_edges("enumerate_tuples", edge_index, None, num_nodes)
        size = check_batch("enumerate_tuples", None, batch_size, num_nodes)
        batch = edge_index.new_zeros(num_nodes)
    elif not isinstance(batch, Tensor):
        raise TypeError(
            f"enumerate_tuples got batch of type {type(batch).__name__}, expected an "
            f"int64 tensor with a graph id per node; convert it with torch.tensor."
        )
    else:
        number = batch.size(0) if num_nodes is None else num_nodes
        edge_index = check_edges("enumerate_tuples", edge_index, None, number)
        size = check_batch("enumerate_tuples", batch, batch_size, number)
        if batch.device != edge_index.device:
            raise ValueError(
                f"enumerate_tuples got edge_index on {edge_index.device} and batch on "
                f"{batch.device}, expected one device; move one of them."
            )
    if reads_values(batch) and bool((batch[1:] < batch[:-1]).any()):
        raise ValueError(
            f"enumerate_tuples got a batch of {batch.numel()} nodes that is not "
            f"ascending, expected the nodes of a graph side by side; sort the nodes "
            f"by batch as PyG's loaders do."
        )
    if size > 1 and reads_values(batch):
        graphs = batch[edge_index]
        if bool((graphs[0] != graphs[1]).any()):
            raise ValueError(
                "enumerate_tuples got edges between nodes of different graphs, "
                "expected both ends of an edge in one graph; correct batch or edges."
            )
    return Ground.of(edge_index, batch, size)


def _with_cover(ground: Ground, index: Tensor, graphs: Tensor) -> tuple[Tensor, Tensor]:
    """Appends a padded tuple for each node that is in none."""
    is_in = torch.zeros(ground.num_nodes, dtype=torch.bool, device=index.device)
    is_in[index.reshape(-1)] = True
    left = (~is_in).nonzero().view(-1)
    if left.numel() == 0:
        return index, graphs
    check_room(left.numel() * index.size(1), index.device, width=1)
    rows = index.new_full((left.numel(), index.size(1)), -1)
    rows[:, 0] = left
    graphs = torch.cat([graphs, ground.batch.index_select(0, left)])
    graphs, order = torch.sort(graphs, stable=True)
    return torch.cat([index, rows]).index_select(0, order), graphs


def _drawn(
    graphs: Tensor, count: Tensor, number: int, generator: Generator | None
) -> Tensor:
    """Positions of a sample of each graph, ascending."""
    # Without a generator torch's own on the CPU: the same draw on every device.
    device = torch.device("cpu") if generator is None else generator.device
    luck = torch.rand(graphs.numel(), generator=generator, device=device)
    order = torch.sort(luck.to(graphs.device), stable=True).indices
    order = order[torch.sort(graphs.index_select(0, order), stable=True).indices]
    start = count.cumsum(0) - count
    place = torch.arange(graphs.numel(), device=graphs.device)
    place = place - start.index_select(0, graphs)  # graphs is ascending, so is order's
    return torch.sort(order[place < number]).values
