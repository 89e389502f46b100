"""What every pooling operator has in common: its call, its result, its stages."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.nn.pool.connect import ConnectOutput

from pyg_pool.core.connect import connect
from pyg_pool.core.lift import lift
from pyg_pool.core.reduce import reduce
from pyg_pool.core.select import Selection
from pyg_pool.errors import check_batch, check_edges, check_features
from pyg_pool.kernels import segment_reduce
from pyg_pool.typing import Lift, OptTensor

__all__ = ["PoolOutput", "Pooling"]


@dataclass(eq=False)
class PoolOutput:
    """The result of every pooling operator: a smaller graph and how it came about.

    Row ``c`` of ``x`` and ``batch``, node ``c`` of ``edge_index`` and cluster ``c``
    of ``selection`` are the same thing.

    Args:
        x: Features of the clusters.
        edge_index: Edges between them.
        edge_attr: Weights or attributes of these edges, or ``None``.
        batch: Graph of each cluster.
        selection: The map from the nodes of the input to the clusters.
        score: Gate or score of each cluster, or ``None`` where clusters have none.
        loss: Auxiliary loss; a scalar zero where there is none.
        batch_size: Number of graphs.

    Shapes:
        x: ``[K, F]``; edge_index: ``[2, E']``; edge_attr: ``[E']``, ``[E', 1]`` or
        ``[E', D]``; batch: ``[K]``; score: ``[K]``; loss: ``[]``.
    """

    x: Tensor
    edge_index: Tensor
    edge_attr: OptTensor
    batch: Tensor
    selection: Selection
    score: OptTensor
    loss: Tensor
    batch_size: int

    def lift(
        self, x: Tensor, how: Lift = "transpose", *, weighted: bool = False
    ) -> Tensor:
        """Brings features of the clusters back to the nodes of the input.

        Args:
            x: ``[K, *]`` features of the clusters.
            how: See :func:`pyg_pool.core.lift`.
            weighted: Whether to use the selection's weights.

        Returns:
            ``[N, *]`` features, zeros where a node was dropped.
        """
        return lift(x, self.selection, how, weighted=weighted)

    def to(self, device: torch.device | str) -> PoolOutput:
        """Returns the result on another device."""
        return PoolOutput(
            self.x.to(device),
            self.edge_index.to(device),
            None if self.edge_attr is None else self.edge_attr.to(device),
            self.batch.to(device),
            self.selection.to(device),
            None if self.score is None else self.score.to(device),
            self.loss.to(device),
            self.batch_size,
        )


class Pooling(torch.nn.Module):
    """Base class of operators that turn a graph into a smaller one.

    A call runs four stages: *select* maps nodes to clusters, *reduce* pools the
    features, *connect* the edges, and ``out.lift`` brings features back. A new
    operator overrides :meth:`select`, and the other stages where it must.

    Example:
        >>> import torch
        >>> from pyg_pool import Pooling, Selection
        >>> class FirstHalf(Pooling):
        ...     def select(self, x, edge_index, edge_attr, batch, batch_size):
        ...         return Selection.from_nodes(torch.arange(x.size(0) // 2), x.size(0))
        >>> edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> out = FirstHalf()(torch.ones(4, 2), edges)
        >>> out.x.shape, out.edge_index.tolist()
        (torch.Size([2, 2]), [[0], [1]])
    """

    def reset_parameters(self) -> None:
        """Sets all parameters to their initial values."""

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: OptTensor = None,
        *,
        batch: OptTensor = None,
        batch_size: int | None = None,
    ) -> PoolOutput:
        """Pools a graph or a batch of graphs.

        Args:
            x: Node features.
            edge_index: Edges.
            edge_attr: Weights or attributes of the edges.
            batch: Graph of each node, in any order; ``None`` means one graph.
            batch_size: Number of graphs; without it the largest id of ``batch``
                sets it, at the price of a device synchronisation.

        Returns:
            The pooled graph, see :class:`PoolOutput`.

        Shapes:
            x: ``[N, F]``; edge_index: ``[2, E]`` int64; edge_attr: ``[E]``,
            ``[E, 1]`` or ``[E, D]``; batch: ``[N]`` int64.

        Raises:
            TypeError: If ``x`` is not floating point or ``edge_index`` is a sparse
                matrix.
            ValueError: If shapes, ids or sizes do not fit.
        """
        x, edge_index, graph, size = self.check(
            x, edge_index, edge_attr, batch, batch_size
        )
        selection = self.select(x, edge_index, edge_attr, graph, size)
        pooled = self.reduce(x, selection)
        edges = self.connect(selection, edge_index, edge_attr, graph)
        loss = x.new_zeros(())
        score = _weight_of_clusters(selection)
        return self.pack(pooled, edges, selection, score, loss, size)

    def check(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: OptTensor,
        batch: OptTensor,
        batch_size: int | None,
        *,
        in_channels: int | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, int]:
        """Checks the input; returns features, edges, graph ids and their number."""
        name = type(self).__name__
        x = check_features(name, x, in_channels)
        edge_index = check_edges(name, edge_index, edge_attr, x.size(0))
        size = check_batch(name, batch, batch_size, x.size(0))
        if batch is None:
            batch = edge_index.new_zeros(x.size(0))
        return x, edge_index, batch, size

    def select(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: OptTensor,
        batch: Tensor,
        batch_size: int,
    ) -> Selection:
        """Maps the nodes to clusters. To be overridden."""
        raise NotImplementedError(
            f"{type(self).__name__} does not say how it selects, expected a method "
            f"select(x, edge_index, edge_attr, batch, batch_size) -> Selection; "
            f"write it."
        )

    def reduce(self, x: Tensor, selection: Selection) -> Tensor:
        """Features of the clusters: the weighted sum of the members."""
        return reduce(x, selection, "weighted")

    def connect(
        self,
        selection: Selection,
        edge_index: Tensor,
        edge_attr: OptTensor,
        batch: Tensor,
    ) -> ConnectOutput:
        """Edges of the clusters: S'AS without self loops."""
        return connect(selection, edge_index, edge_attr, batch=batch)

    def pack(
        self,
        x: Tensor,
        edges: ConnectOutput,
        selection: Selection,
        score: OptTensor,
        loss: Tensor,
        batch_size: int,
    ) -> PoolOutput:
        """Puts the pieces of the result together."""
        return PoolOutput(
            x,
            edges.edge_index,
            edges.edge_attr,
            edges.batch,
            selection,
            score,
            loss,
            batch_size,
        )

    def carry(self, out: PoolOutput, **tensors: Tensor) -> dict[str, Tensor]:
        """Brings further node tensors along to the pooled graph.

        Where clusters are single nodes the rows are picked. Where clusters have
        several members, floating point rows (positions) are averaged, boolean rows
        (masks) are true if any member is, and integer rows (labels) are those of
        the member with the lowest index. A cluster without members gets zeros.

        Args:
            out: The result of this operator.
            tensors: Tensors with one row per node of the input, by name.

        Returns:
            Tensors with one row per cluster, under the same names.

        Raises:
            ValueError: If a tensor has not one row per node of the input.

        Example:
            >>> import torch
            >>> from pyg_pool import GPool
            >>> pool = GPool(1, ratio=2)
            >>> edges = torch.tensor([[0, 1], [1, 2]])
            >>> out = pool(torch.tensor([[1.0], [5.0], [3.0]]), edges)
            >>> y = torch.tensor([7, 8, 9])
            >>> bool((pool.carry(out, y=y)["y"] == y[out.selection.node_index]).all())
            True
        """
        return {
            name: _carry_one(name, value, out.selection)
            for name, value in tensors.items()
        }


def _weight_of_clusters(selection: Selection) -> OptTensor:
    """The weight of each cluster where clusters are single nodes, else ``None``."""
    if selection.weight is None or not selection.is_one_to_one:
        return None
    out = torch.empty_like(selection.weight)
    return out.index_copy(0, selection.cluster_index, selection.weight)


def _carry_one(name: str, value: Tensor, selection: Selection) -> Tensor:
    if value.dim() == 0 or value.size(0) != selection.num_nodes:
        raise ValueError(
            f"carry got {name} of shape {list(value.shape)} for {selection.num_nodes} "
            f"nodes, expected one row per node of the pooled graph's input; pass the "
            f"tensor of that level."
        )
    if selection.is_one_to_one:
        return value.index_select(0, selection.perm)
    if value.is_floating_point():
        return reduce(value, selection, "mean")
    if value.dtype == torch.bool:
        return reduce(value.long(), selection, "max") > 0
    # Counting from the end, the largest number is the first member, and the zero of
    # an empty cluster is the row of zeros behind the last node.
    size = selection.num_nodes
    last = segment_reduce(
        size - selection.node_index, selection.cluster_index,
        dim_size=selection.num_clusters, reduce="max",
    )  # fmt: skip
    padded = torch.cat([value, value.new_zeros([1, *value.shape[1:]])])
    return padded.index_select(0, size - last)
