"""Coarsen: a hierarchy for each graph of a data set, made once and stored with it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from pyg_pool.coarsen import coarsen_batch
from pyg_pool.coarsen.state import KERNELS
from pyg_pool.coarsen.threads import Threads
from pyg_pool.core import Hierarchy, Level, Selection, connect
from pyg_pool.core.hierarchy_data import HierarchyData
from pyg_pool.errors import check_choice

__all__ = ["Coarsen"]

Edge = Literal["auto", "sum", "mean", "none"]


class Coarsen(BaseTransform):
    r"""Attaches coarser levels to a graph, for networks that take them as they are.

    The result goes through PyG's ``Batch`` and ``DataLoader``;
    ``batch.hierarchy()`` then drives ``GraphUNet(..., pool="precomputed")`` and
    ``HierarchicalClassifier(..., pool="precomputed")``, which pay nothing for pooling.
    As ``pre_transform`` of a PyG data set it runs once and is cached on disk.

    Args:
        ratio: Clusters by nodes, of each level, rounded up.
        num_clusters: Clusters of the coarsest level instead; levels between shrink
            evenly.
        levels: Number of coarse levels.
        kernel: See :func:`pyg_pool.coarsen.coarsen`.
        edge: What coarse edges carry: ``"sum"`` of the edge weights, ``"mean"`` of the
            edge attributes, ``"none"``, or ``"auto"``: the mean where attributes are
            floating point, else nothing.
        num_threads: Threads over the graphs of :meth:`all`.

    Raises:
        ValueError: If not exactly one of ``ratio`` and ``num_clusters`` is given, or an
            option has no such value.

    Note:
        Graphs of up to 64 nodes are merged over all pairs of clusters, larger ones by
        levels. Empty graphs stay empty; a graph's result never depends on others.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from pyg_pool.transforms import Coarsen
        >>> ring = torch.stack([torch.arange(6), (torch.arange(6) + 1) % 6])
        >>> data = Data(edge_index=torch.cat([ring, ring.flip(0)], 1), num_nodes=6)
        >>> print(Coarsen(ratio=0.5)(data).hierarchy())
        Hierarchy of 2 levels, 1 graph
        level  nodes  edges  nodes kept
            0      6     12
            1      3      6       50.0%
    """

    def __init__(
        self,
        ratio: float | None = None,
        *,
        num_clusters: int | None = None,
        levels: int = 1,
        kernel: Literal["rw", "normalized", "signless"] = "rw",
        edge: Edge = "auto",
        num_threads: int | None = None,
    ) -> None:
        check_choice("Coarsen", "kernel", kernel, KERNELS)
        size = ratio if num_clusters is None else num_clusters
        if size is not None and not 0 < size < math.inf:
            raise ValueError(
                f"Coarsen got ratio={ratio} and num_clusters={num_clusters}, expected "
                f"a number above 0; 0.5 halves the graphs."
            )
        Threads(num_threads)
        if (ratio is None) == (num_clusters is None) or levels < 1:
            raise ValueError(
                f"Coarsen got ratio={ratio}, num_clusters={num_clusters} and levels="
                f"{levels}, expected exactly one of the first two and levels >= 1; say "
                f"how small the graphs shall become."
            )
        check_choice("Coarsen", "edge", edge, ("auto", "sum", "mean", "none"))
        self.ratio, self.num_clusters, self.levels = ratio, num_clusters, levels
        self.kernel, self.edge, self.num_threads = kernel, edge, num_threads

    def __repr__(self) -> str:
        """All options, by which PyG tells a cache of other options."""
        size = f"ratio={self.ratio}"
        if self.num_clusters is not None:
            size = f"num_clusters={self.num_clusters}"
        return (
            f"{type(self).__name__}({size}, levels={self.levels}, "
            f"kernel={self.kernel!r}, edge={self.edge!r})"
        )

    def forward(self, data: Data) -> HierarchyData:
        """A copy of ``data`` that holds the coarser levels."""
        return self.all([data])[0]

    def all(self, graphs: Iterable[Data]) -> list[HierarchyData]:
        """The same for many graphs in one compiled call per level."""
        found = list(graphs)
        sizes = torch.tensor([data.num_nodes for data in found], dtype=torch.long)
        edges = [_edges(data) for data in found]
        weights = [_weights(data) for data in found]
        steps: list[list[Tensor]] = [[] for _ in found]
        for level in range(self.levels):
            label = self._labels(edges, weights, sizes, level)
            parts = label.split(sizes.tolist())
            for number, part in enumerate(parts):
                steps[number].append(part)
                if level + 1 < self.levels:
                    out = connect(
                        Selection.from_clusters(part),
                        edges[number],
                        weights[number],
                        keep_loops=True,
                    )
                    edges[number], weights[number] = out.edge_index, out.edge_attr
            sizes = torch.tensor([int(p.max()) + 1 if p.numel() else 0 for p in parts])
        return [self._attach(d, s) for d, s in zip(found, steps, strict=True)]

    def _labels(
        self,
        edges: list[Tensor],
        weights: list[Tensor],
        sizes: Tensor,
        level: int,
    ) -> Tensor:
        """Clusters of the nodes of all graphs at one level."""
        counts = torch.tensor([part.size(1) for part in edges], dtype=torch.long)
        shift = torch.repeat_interleave(torch.cumsum(sizes, 0) - sizes, counts)
        none = torch.empty(2, 0, dtype=torch.long)
        joined = torch.cat(edges, 1) if edges else none
        size: dict[str, Any] = {"ratio": self.ratio}
        if self.num_clusters is not None:
            most = sizes.clamp(min=1).double()
            step = (self.num_clusters / most).clamp(max=1) ** (
                1 / (self.levels - level)
            )
            size = {"num_clusters": (sizes * step - 1e-9).ceil().long()}
        return coarsen_batch(
            joined + shift,
            sizes,
            counts,
            edge_weight=torch.cat(weights) if weights else torch.empty(0),
            kernel=self.kernel,
            num_threads=self.num_threads,
            **size,
        )

    def _attach(self, data: Data, steps: list[Tensor]) -> HierarchyData:
        """The levels of one graph, stored with it."""
        level = Level(int(data.num_nodes or 0), _edges(data), self._attributes(data))
        levels, selections = [level], []
        how: Any = "sum" if self.edge == "sum" else "mean"
        for step in steps:
            selection = Selection.from_clusters(step)
            here = levels[-1]
            out = connect(selection, here.edge_index, here.edge_attr, reduce=how)
            levels.append(Level(selection.num_clusters, out.edge_index, out.edge_attr))
            selections.append(selection)
        return Hierarchy(levels, selections).attach(data)

    def _attributes(self, data: Data) -> Tensor | None:
        """What the edges of level 0 hand on."""
        if self.edge == "sum":
            return _weights(data)
        given = data.edge_attr
        is_float = given is not None and given.is_floating_point()
        if self.edge == "mean" and not is_float:
            raise ValueError(
                f"Coarsen got edge='mean' and edge_attr of dtype "
                f"{None if given is None else given.dtype}, expected floating point; "
                f"encode the attributes first, or pass edge='none'."
            )
        return given if is_float and self.edge != "none" else None


def _edges(data: Data) -> Tensor:
    if data.edge_index is None:
        return torch.empty(2, 0, dtype=torch.long)
    return data.edge_index


def _weights(data: Data) -> Tensor:
    """Weights of the edges, ones where there are none."""
    if data.edge_weight is not None:
        return data.edge_weight.view(-1).float()
    return torch.ones(_edges(data).size(1))
