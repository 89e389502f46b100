"""Small graphs that operators stumble over, and random ones of given sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pyg_pool.typing import OptTensor

__all__ = ["GraphSample", "gallery", "random_batch", "sample"]

SEED = 20_731


@dataclass(frozen=True, eq=False)
class GraphSample:
    """A graph or a batch of graphs, ready to be handed to an operator.

    Args:
        name: What is special about it.
        x: Node features.
        edge_index: Edges.
        edge_attr: Weights or attributes of the edges, or ``None``.
        batch: Graph of each node, in any order.
        batch_size: Number of graphs, empty ones included.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; edge_attr: ``[E]``, ``[E, 1]`` or
        ``[E, D]``; batch: ``[N]``.

    Example:
        >>> from pyg_pool.testing import sample
        >>> star = sample("star")
        >>> star.num_nodes, star.num_edges, star.batch_size
        (5, 8, 1)
    """

    name: str
    x: Tensor
    edge_index: Tensor
    edge_attr: OptTensor
    batch: Tensor
    batch_size: int

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.x.size(0)

    @property
    def num_edges(self) -> int:
        """Number of edge columns."""
        return self.edge_index.size(1)

    @property
    def has_attributes(self) -> bool:
        """Whether an edge carries several numbers."""
        attr = self.edge_attr
        return attr is not None and attr.dim() == 2 and attr.size(1) > 1

    def to(self, device: str | torch.device, dtype: torch.dtype) -> GraphSample:
        """Returns the sample on a device, floating tensors in a dtype."""
        attr = self.edge_attr
        return replace(
            self,
            x=self.x.to(device, dtype),
            edge_index=self.edge_index.to(device),
            edge_attr=None if attr is None else attr.to(device, dtype),
            batch=self.batch.to(device),
        )

    def permuted(self, order: Tensor, edge_order: OptTensor = None) -> GraphSample:
        """Returns the same graphs with node ``order[i]`` renamed to ``i``.

        Args:
            order: ``[N]`` permutation of the nodes.
            edge_order: ``[E]`` permutation of the edges.
        """
        new_name = torch.empty_like(order)
        new_name[order] = torch.arange(order.numel(), device=order.device)
        edge_index, attr = new_name[self.edge_index], self.edge_attr
        if edge_order is not None:
            edge_index = edge_index[:, edge_order]
            attr = None if attr is None else attr[edge_order]
        return replace(
            self,
            x=self.x[order],
            edge_index=edge_index,
            edge_attr=attr,
            batch=self.batch[order],
        )

    def single(self, graph: int) -> tuple[GraphSample, Tensor]:
        """Returns one graph of the batch by itself, and its nodes in the batch."""
        nodes = (self.batch == graph).nonzero().view(-1)
        new_name = self.batch.new_full((self.num_nodes,), -1)
        new_name[nodes] = torch.arange(nodes.numel(), device=nodes.device)
        ends = self.batch[self.edge_index[0]]
        edges = (ends == graph).nonzero().view(-1)
        alone = GraphSample(
            f"graph {graph} of {self.name}",
            self.x[nodes],
            new_name[self.edge_index[:, edges]],
            None if self.edge_attr is None else self.edge_attr[edges],
            torch.zeros_like(nodes),
            1,
        )
        return alone, nodes

    def leaf(self) -> GraphSample:
        """Returns a copy whose floating tensors are leaves that need gradients."""
        attr = self.edge_attr
        return replace(
            self,
            x=self.x.detach().clone().requires_grad_(),
            edge_attr=None if attr is None else attr.detach().clone().requires_grad_(),
        )


def gallery(in_channels: int = 4) -> list[GraphSample]:
    """Returns the graphs that operators stumble over, in float64.

    Args:
        in_channels: Width of the features, which are random and without ties.

    Returns:
        Samples named ``no_nodes``, ``only_empty_graphs``, ``one_node``, ``no_edges``,
        ``isolated_nodes``, ``self_loops``, ``loops_only``, ``duplicate_edges``,
        ``path``, ``star``, ``cycle``, ``directed``, ``interleaved``,
        ``empty_graphs``, ``mixed``, ``weighted``, ``weight_column`` and
        ``attributes``.

    Example:
        >>> from pyg_pool.testing import gallery
        >>> [s.name for s in gallery()][:4]
        ['no_nodes', 'only_empty_graphs', 'one_node', 'no_edges']
    """
    path = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    triangle = [(0, 1), (1, 2), (0, 2)]
    doubled = [(0, 1), (0, 1), (1, 2), (2, 3)]
    mixed = [(0, 1), (1, 2), (4, 5), (5, 6), (4, 6), (8, 8)]
    entries: list[tuple[str, list[int], int, list[tuple[int, int]], int | None]] = [
        ("no_nodes", [], 1, [], None),
        ("only_empty_graphs", [], 3, [], None),
        ("one_node", [0], 1, [], None),
        ("no_edges", [0] * 4, 1, [], 0),
        ("isolated_nodes", [0] * 6, 1, triangle, 0),
        ("self_loops", [0] * 4, 1, [*triangle, (0, 0), (3, 3)], 0),
        ("loops_only", [0] * 2, 1, [(0, 0), (1, 1)], None),
        ("duplicate_edges", [0] * 4, 1, doubled, 0),
        ("path", [0] * 6, 1, path, None),
        ("star", [0] * 5, 1, [(0, i) for i in range(1, 5)], None),
        ("cycle", [0] * 6, 1, [*path, (5, 0)], None),
        ("interleaved", [1, 0, 1, 0, 0, 1], 2, [(1, 3), (3, 4), (0, 2), (2, 5)], 0),
        ("empty_graphs", [1, 1, 1, 3, 3], 6, [(0, 1), (1, 2), (3, 4)], 0),
        ("mixed", [0, 0, 0, 2, 3, 3, 3, 4, 4], 6, mixed, 0),
        ("weighted", [0] * 6, 1, [*path, (0, 3)], 0),
        ("weight_column", [0] * 6, 1, [*path, (0, 3)], 1),
        ("attributes", [0] * 6, 1, [*path, (0, 3)], 3),
    ]
    out = [_make(in_channels, *entry) for entry in entries]
    cycle = next(s for s in out if s.name == "cycle")
    one_way = cycle.edge_index[:, cycle.edge_index[0] < cycle.edge_index[1]]
    out.append(replace(cycle, name="directed", edge_index=one_way))
    return out


def sample(name: str, in_channels: int = 4) -> GraphSample:
    """Returns one graph of the gallery.

    Args:
        name: Its name, see :func:`gallery`.
        in_channels: Width of the features.

    Raises:
        KeyError: If there is none of this name.
    """
    found = {each.name: each for each in gallery(in_channels)}
    if name not in found:
        raise KeyError(
            f"sample got {name!r}, expected one of {sorted(found)}; choose one of them"
        )
    return found[name]


def random_batch(
    sizes: Sequence[int],
    in_channels: int = 4,
    *,
    edge_channels: int | None = 0,
    name: str = "random",
) -> GraphSample:
    """Returns connected random graphs: a path through each and as many chords.

    Args:
        sizes: Number of nodes of each graph; 0 makes an empty one.
        in_channels: Width of the features.
        edge_channels: ``None``: no attributes; 0: weights ``[E]``; D: ``[E, D]``.
        name: Name of the sample.

    Example:
        >>> from pyg_pool.testing import random_batch
        >>> random_batch([3, 0, 2]).batch
        tensor([0, 0, 0, 2, 2])
    """
    chance = torch.Generator().manual_seed(SEED + sum(sizes))
    pairs, first = [], 0
    for size in sizes:
        pairs += [(first + i, first + i + 1) for i in range(size - 1)]
        if size > 2:
            drawn = torch.randint(size, (size, 2), generator=chance).tolist()
            pairs += [(first + a, first + b) for a, b in drawn if abs(a - b) > 1]
        first += size
    batch = [graph for graph, size in enumerate(sizes) for _ in range(size)]
    unique = sorted({(min(a, b), max(a, b)) for a, b in pairs})
    return _make(in_channels, name, batch, len(sizes), unique, edge_channels)


def _make(
    in_channels: int,
    name: str,
    batch: list[int],
    batch_size: int,
    pairs: list[tuple[int, int]],
    edge_channels: int | None,
) -> GraphSample:
    """An undirected graph: loops once, other edges in both directions."""
    chance = torch.Generator().manual_seed(SEED + len(name) + len(batch))
    loops = [pair for pair in pairs if pair[0] == pair[1]]
    straight = [pair for pair in pairs if pair[0] != pair[1]]
    columns = [*straight, *((b, a) for a, b in straight), *loops]
    edge_index = torch.tensor(columns, dtype=torch.long).view(-1, 2).t().contiguous()
    x = torch.randn(len(batch), in_channels, generator=chance, dtype=torch.float64)
    attr = None
    if edge_channels is not None:
        width = [] if edge_channels == 0 else [edge_channels]
        kwargs = {"generator": chance, "dtype": torch.float64}
        half = torch.rand([len(straight), *width], **kwargs) + 0.5  # type: ignore[call-overload]
        rest = torch.rand([len(loops), *width], **kwargs) + 0.5  # type: ignore[call-overload]
        attr = torch.cat([half, half, rest])
    ids = torch.tensor(batch, dtype=torch.long)
    return GraphSample(name, x, edge_index, attr, ids, batch_size)
