"""Many small graphs in a few flat tensors, read as a sequence of PyG ``Data``.

A list of 40,000 ``Data`` objects holds 160,000 tensors: slow to send to loader
workers, and enough to run out of file descriptors there. Here a whole set is six
tensors, whatever its size, and a selection of graphs is a view on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

__all__ = ["GraphStore"]


class GraphStore(Sequence[Data]):
    r"""A sequence of graphs, kept as flat tensors.

    Args:
        x: Features of all nodes, graph after graph.
        edge_index: Edges of all graphs; node numbers count from 0 in each graph.
        y: Targets, one row per graph.
        node_ptr: Where the nodes of each graph start, and the total at the end.
        edge_ptr: The same for edges.
        edge_attr: Features of all edges.
        index: The graphs to show, in this order; all where it is left out.

    Shapes:
        x: [N, F] int64 or float; edge_index: [2, E] int64; edge_attr: [E, D];
        y: [G] int64 or [G, T] float; node_ptr, edge_ptr: [G + 1] int64, ascending;
        index: [B] int64.

    Raises:
        ValueError: If the tensors do not belong together.

    Note:
        ``store[3]`` is a ``Data`` whose tensors share memory with the store: do not
        change them in place. ``store[[3, 1]]``, ``store[2:5]`` and a boolean mask give
        another store that shares the same tensors. The order never changes by itself.

    Example:
        >>> store = GraphStore.from_graphs([
        ...     Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]),
        ...          y=torch.tensor([1])),
        ...     Data(x=torch.zeros(1, 1), edge_index=torch.empty(2, 0).long(),
        ...          y=torch.tensor([0])),
        ... ])
        >>> store
        GraphStore(2 graphs, 3 nodes, 2 edges)
        >>> store[[1, 0]].y.tolist()
        [0, 1]
        >>> store.batch([1, 0]).edge_index.tolist()
        [[1, 2], [2, 1]]
    """

    def __init__(
        self,
        x: Tensor,
        edge_index: Tensor,
        *,
        y: Tensor,
        node_ptr: Tensor,
        edge_ptr: Tensor,
        edge_attr: Tensor | None = None,
        index: Tensor | None = None,
    ) -> None:
        self.x = x
        self.edge_index = edge_index
        self.edge_attr = edge_attr
        self.node_ptr = node_ptr
        self.edge_ptr = edge_ptr
        self._y = y
        self._index = torch.arange(y.size(0)) if index is None else index
        self._check()

    def _check(self) -> None:
        """Refuse tensors whose sizes contradict each other."""
        expected = {
            "node_ptr": (self.node_ptr.numel(), self._y.size(0) + 1),
            "edge_ptr": (self.edge_ptr.numel(), self._y.size(0) + 1),
            "x": (self.x.size(0), int(self.node_ptr[-1])),
            "edge_index": (self.edge_index.size(-1), int(self.edge_ptr[-1])),
        }
        if self.edge_attr is not None:
            expected["edge_attr"] = (self.edge_attr.size(0), int(self.edge_ptr[-1]))
        for name, (given, wanted) in expected.items():
            if given != wanted:
                raise ValueError(
                    f"GraphStore got {name} with {given} entries, expected {wanted} "
                    f"for {self._y.size(0)} graphs; pass the tensors of one collation."
                )

    @classmethod
    def from_graphs(cls, graphs: Iterable[Data]) -> GraphStore:
        """Collate separate graphs that all have ``x``, ``edge_index`` and ``y``."""
        items = list(graphs)
        if not items:
            raise ValueError(
                "GraphStore.from_graphs got no graph, expected at least one; "
                "check the filter that made the list."
            )
        attrs = [g.edge_attr for g in items]
        nodes = torch.tensor([0] + [g.x.size(0) for g in items])
        edges = torch.tensor([0] + [g.edge_index.size(1) for g in items])
        return cls(
            torch.cat([g.x for g in items]),
            torch.cat([g.edge_index for g in items], dim=1),
            y=torch.cat([g.y for g in items]),
            node_ptr=nodes.cumsum(0),
            edge_ptr=edges.cumsum(0),
            edge_attr=None if attrs[0] is None else torch.cat(attrs),
        )

    @property
    def y(self) -> Tensor:
        """Targets of the shown graphs, [B] or [B, T]."""
        return self._y[self._index]

    @property
    def numbers(self) -> Tensor:
        """Numbers of the shown graphs in the whole set, [B] int64."""
        return self._index

    @property
    def num_nodes(self) -> Tensor:
        """Nodes of each shown graph, [B] int64."""
        return (self.node_ptr[1:] - self.node_ptr[:-1])[self._index]

    @property
    def num_edges(self) -> Tensor:
        """Entries of ``edge_index`` of each shown graph, [B] int64."""
        return (self.edge_ptr[1:] - self.edge_ptr[:-1])[self._index]

    @property
    def num_node_features(self) -> int:
        """Columns of ``x``."""
        return self.x.size(1)

    @property
    def num_edge_features(self) -> int:
        """Columns of ``edge_attr``, 0 where there is none."""
        return 0 if self.edge_attr is None else self.edge_attr.size(1)

    def __len__(self) -> int:
        return self._index.numel()

    @overload
    def __getitem__(self, item: int) -> Data: ...

    @overload
    def __getitem__(
        self, item: slice | Tensor | Sequence[int] | np.ndarray
    ) -> GraphStore: ...

    def __getitem__(
        self, item: int | slice | Tensor | Sequence[int] | np.ndarray
    ) -> Data | GraphStore:
        """Give one graph, or a view on several."""
        if isinstance(item, (int, np.integer)):
            if not -len(self) <= item < len(self):
                raise IndexError(
                    f"GraphStore got index {item}, expected one below {len(self)}; "
                    "count from 0."
                )
            return self._graph(int(self._index[item]))
        if not isinstance(item, (slice, Tensor)):
            item = torch.as_tensor(item)
        return GraphStore(
            self.x,
            self.edge_index,
            y=self._y,
            node_ptr=self.node_ptr,
            edge_ptr=self.edge_ptr,
            edge_attr=self.edge_attr,
            index=self._index[item if isinstance(item, slice) else _as_index(item)],
        )

    def __iter__(self) -> Iterator[Data]:
        return (self._graph(i) for i in self._index.tolist())

    def _graph(self, i: int) -> Data:
        """Cut one graph, by its number in the whole set, out of the tensors."""
        start, stop = self.node_ptr[i : i + 2].tolist()
        first, last = self.edge_ptr[i : i + 2].tolist()
        attr = None if self.edge_attr is None else self.edge_attr[first:last]
        return Data(
            x=self.x[start:stop],
            edge_index=self.edge_index[:, first:last],
            edge_attr=attr,
            y=self._y[i : i + 1],
        )

    def batch(self, index: Tensor | Sequence[int] | None = None) -> Batch:
        """Gather several graphs into one PyG ``Batch``, without a loop over graphs.

        Args:
            index: Positions in this store; all graphs where it is left out.

        Returns:
            A batch with ``x, edge_index, edge_attr, y, batch, ptr``. It equals what
            ``Batch.from_data_list`` gives, but cannot be taken apart again.
        """
        chosen = self._index
        if index is not None:
            chosen = chosen[_as_index(torch.as_tensor(index))]
        nodes, ptr = _ranges(self.node_ptr, chosen)
        edges, edge_ptr = _ranges(self.edge_ptr, chosen)
        shift = ptr[:-1].repeat_interleave(edge_ptr.diff())
        attr = None if self.edge_attr is None else self.edge_attr[edges]
        graphs = torch.arange(chosen.numel())
        return Batch(
            x=self.x[nodes],
            edge_index=self.edge_index[:, edges] + shift,
            edge_attr=attr,
            y=self._y[chosen],
            batch=graphs.repeat_interleave(ptr.diff()),
            ptr=ptr,
        )

    def __repr__(self) -> str:
        nodes, edges = int(self.num_nodes.sum()), int(self.num_edges.sum())
        return f"GraphStore({len(self)} graphs, {nodes} nodes, {edges} edges)"


def _as_index(item: Tensor) -> Tensor:
    """Keep masks, and turn an empty list (float by default) into an index."""
    return item if item.dtype == torch.bool else item.long()


def _ranges(ptr: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """Positions of the chosen segments one after the other, and their new borders."""
    start = ptr[chosen]
    size = ptr[chosen + 1] - start
    border = torch.cat([size.new_zeros(1), size.cumsum(0)])
    shift = (start - border[:-1]).repeat_interleave(size)
    return shift + torch.arange(shift.numel()), border
