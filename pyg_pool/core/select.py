"""Selection: the map from the nodes of a fine graph to the clusters of a coarse one.

It is PyG's ``SelectOutput`` and more: it moves between devices, compares, composes,
saves itself without pickle, and knows whether it is one-to-one, hard or soft.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn.pool.select import SelectOutput

from pyg_pool.core.archive import load_tensors, save_tensors
from pyg_pool.core.clusters import both_weights, entries_of_clusters, kind_of
from pyg_pool.kernels.join import join
from pyg_pool.typing import OptTensor

__all__ = ["Selection", "join"]


class Selection(SelectOutput):
    r"""A sparse map from the nodes of a graph to the clusters of a coarser one.

    Entry ``m`` puts node ``node_index[m]`` into cluster ``cluster_index[m]`` with
    strength ``weight[m]``. Cluster ``c`` is row ``c`` of everything that is pooled
    with this selection: features, batch vector and edges use one order. Nodes may be
    missing (dropped), belong to one cluster (hard) or to several (soft, overlapping).

    Args:
        node_index: Node of each entry.
        num_nodes: Number of fine nodes.
        cluster_index: Cluster of each entry.
        num_clusters: Number of clusters.
        weight: Strength of each entry; ``None`` means 1.
        kind: ``"one_to_one"``, ``"hard"`` or ``"soft"`` where the caller knows;
            otherwise found out by reading the indices when first needed.

    Shapes:
        node_index, cluster_index: ``[M]`` int64; weight: ``[M]`` float.

    Raises:
        ValueError: If the shapes do not fit.

    Example:
        >>> import torch
        >>> from pyg_pool import Selection
        >>> pairs = Selection.from_clusters(torch.tensor([0, 0, 1, 1]))
        >>> pairs
        Selection(num_nodes=4, num_clusters=2, hard, entries=4)
        >>> pairs.to_dense()
        tensor([[1., 0.],
                [1., 0.],
                [0., 1.],
                [0., 1.]])
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        node_index: Tensor,
        num_nodes: int,
        cluster_index: Tensor,
        num_clusters: int,
        weight: OptTensor = None,
        *,
        kind: str | None = None,
    ) -> None:
        super().__init__(node_index, num_nodes, cluster_index, num_clusters, weight)
        self._kind = kind

    @classmethod
    def from_nodes(
        cls, node_index: Tensor, num_nodes: int, weight: OptTensor = None
    ) -> Selection:
        """Selects distinct nodes; node ``node_index[c]`` becomes cluster ``c``.

        Args:
            node_index: ``[K]`` int64, distinct.
            num_nodes: Number of fine nodes.
            weight: ``[K]`` gate of each kept node.
        """
        size = node_index.size(0)
        clusters = torch.arange(size, device=node_index.device)
        return cls(node_index, num_nodes, clusters, size, weight, kind="one_to_one")

    @classmethod
    def from_clusters(
        cls,
        cluster: Tensor,
        num_clusters: int | None = None,
        *,
        batch: OptTensor = None,
        weight: OptTensor = None,
        per_graph: bool = False,
    ) -> Selection:
        """Builds a hard selection from a cluster id per node.

        Args:
            cluster: Cluster of each node; -1 drops the node.
            num_clusters: Number of clusters; without it the largest id sets it.
            batch: Graph of each node; checked, so that no cluster joins two graphs.
            weight: Strength of each node, ``[N]``.
            per_graph: Whether ids start anew in each graph; they are then
                numbered through the batch, by graph and id.

        Shapes:
            cluster, batch: ``[N]`` int64.

        Raises:
            ValueError: If a cluster spans two graphs, ids are out of range, shapes
                do not fit, or ``per_graph`` comes without ``batch`` or together with
                ``num_clusters``.
        """
        node_index, ids, num_clusters = entries_of_clusters(
            cluster, num_clusters, batch, weight, per_graph
        )
        weight = None if weight is None else weight.index_select(0, node_index)
        size = cluster.size(0)
        return cls(node_index, size, ids, num_clusters, weight, kind="hard")

    @property
    def kind(self) -> str:
        """``"one_to_one"``, ``"hard"`` (at most one cluster a node) or ``"soft"``."""
        if self._kind is None:
            self._kind = kind_of(*self._index(), self.num_nodes, self.num_clusters)
        return self._kind

    def _index(self) -> tuple[Tensor, Tensor]:
        return self.node_index, self.cluster_index

    @property
    def is_one_to_one(self) -> bool:
        """Whether each cluster is exactly one node."""
        return self.kind == "one_to_one"

    @property
    def is_hard(self) -> bool:
        """Whether each node belongs to at most one cluster."""
        return self.kind != "soft"

    @property
    def cluster(self) -> Tensor:
        """Cluster of each node, -1 where it was dropped; hard selections only."""
        if not self.is_hard:
            raise ValueError(
                f"Selection.cluster got a soft selection with {self.node_index.numel()}"
                f" entries for {self.num_nodes} nodes, expected at most one cluster a "
                f"node; use to_sparse()."
            )
        out = self.cluster_index.new_full((self.num_nodes,), -1)
        return out.index_copy(0, self.node_index, self.cluster_index)

    @property
    def perm(self) -> Tensor:
        """Node of each cluster, ``[num_clusters]``; one-to-one selections only."""
        if not self.is_one_to_one:
            raise ValueError(
                f"Selection.perm got {self}, expected clusters of one node each; use "
                f"cluster, which gives the cluster of each node."
            )
        out = torch.empty_like(self.node_index)
        return out.index_copy(0, self.cluster_index, self.node_index)

    def to(self, device: Any, non_blocking: bool = False) -> Selection:
        """Returns the selection on another device."""
        return self._map(lambda t: t.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Selection:
        """Returns the selection in page-locked memory."""
        return self._map(lambda t: t.pin_memory())

    def detach(self) -> Selection:
        """Returns the selection with a weight that carries no gradient."""
        return self._map(lambda t: t.detach())

    def _map(self, move: Any) -> Selection:
        return Selection(
            move(self.node_index),
            self.num_nodes,
            move(self.cluster_index),
            self.num_clusters,
            None if self.weight is None else move(self.weight),
            kind=self._kind,
        )

    def to_sparse(self, weighted: bool = False) -> Tensor:
        """Returns the assignment S as a sparse COO matrix.

        Args:
            weighted: Whether entries carry ``weight`` instead of 1.

        Returns:
            Sparse ``[num_nodes, num_clusters]`` matrix.
        """
        index, values = torch.stack(self._index()), self._values(weighted)
        size = (self.num_nodes, self.num_clusters)
        out = torch.sparse_coo_tensor(index, values, size, check_invariants=False)
        # Entries of a hard selection cannot repeat: nothing to merge.
        return out if self._kind in ("one_to_one", "hard") else out.coalesce()

    def to_dense(self, weighted: bool = False) -> Tensor:
        """Returns the assignment S as a dense ``[num_nodes, num_clusters]`` matrix."""
        values = self._values(weighted)
        out = values.new_zeros(self.num_nodes, self.num_clusters)
        return out.index_put(self._index(), values, accumulate=True)

    def _values(self, weighted: bool) -> Tensor:
        if weighted and self.weight is not None:
            return self.weight
        dtype = torch.get_default_dtype() if self.weight is None else self.weight.dtype
        return torch.ones_like(self.node_index, dtype=dtype)

    def compose(self, coarser: Selection) -> Selection:
        """Returns the selection from the nodes of this one to those of the next.

        Args:
            coarser: A selection whose nodes are the clusters of this one.

        Returns:
            The selection that leads over both levels, in the order of the entries
            of ``coarser``; weights are multiplied.

        Raises:
            ValueError: If the sizes do not match.

        Example:
            >>> import torch
            >>> from pyg_pool import Selection
            >>> first = Selection.from_nodes(torch.tensor([5, 3, 1]), 6)
            >>> second = Selection.from_nodes(torch.tensor([2, 0]), 3)
            >>> first.compose(second).node_index
            tensor([1, 5])
        """
        if coarser.num_nodes != self.num_clusters:
            raise ValueError(
                f"Selection.compose got a selection of {coarser.num_nodes} nodes, "
                f"expected {self.num_clusters} (the clusters of this one); pass the "
                f"selection of the next level."
            )
        # In the order of the coarser entries: kept nodes stay in cluster order.
        right, left = join(coarser.node_index, self.cluster_index, self.num_clusters)
        kinds = [k for k in (self._kind, coarser._kind) if k in ("hard", "one_to_one")]
        weight = both_weights(self.weight, left, coarser.weight, right)
        return Selection(
            self.node_index.index_select(0, left),
            self.num_nodes,
            coarser.cluster_index.index_select(0, right),
            coarser.num_clusters,
            weight,
            kind=min(kinds) if len(kinds) == 2 else None,  # "hard" if either is
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the selection to an ``.npz`` file (no pickle, atomic)."""
        tensors = {"node_index": self.node_index, "cluster_index": self.cluster_index}
        if self.weight is not None:
            tensors["weight"] = self.weight
        sizes = {"num_nodes": self.num_nodes, "num_clusters": self.num_clusters}
        save_tensors(path, "Selection", tensors, {**sizes, "kind": self._kind})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Selection:
        """Reads a selection written by :meth:`save`.

        Raises:
            ValueError: If the file is damaged or holds something else.
        """
        tensors, header = load_tensors(path, "Selection")
        values: dict[str, Any] = {"weight": None, **tensors, **header}
        return cls(**values)

    def __eq__(self, other: object) -> bool:
        """Equal entries in equal order, and equal sizes and weights."""
        if not isinstance(other, SelectOutput):
            return NotImplemented
        if (self.weight is None) != (other.weight is None):
            return False
        return (
            (self.num_nodes, self.num_clusters) == (other.num_nodes, other.num_clusters)
            and torch.equal(self.node_index, other.node_index)
            and torch.equal(self.cluster_index, other.cluster_index)
            and (self.weight is None or torch.equal(self.weight, other.weight))
        )

    def __repr__(self) -> str:
        """Sizes and kind in one line."""
        kind = "" if self._kind is None else f"{self._kind}, "
        weight = "" if self.weight is None else ", weighted"
        return (
            f"{type(self).__name__}(num_nodes={self.num_nodes}, num_clusters="
            f"{self.num_clusters}, {kind}entries={self.node_index.numel()}{weight})"
        )
