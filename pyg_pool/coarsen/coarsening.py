"""Coarsening: the result, with everything that follows from it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_pool.coarsen.graph import Graph
from pyg_pool.coarsen.state import State, state_of
from pyg_pool.core.archive import load_tensors, save_tensors
from pyg_pool.core.connect import connect
from pyg_pool.core.hierarchy import Hierarchy, Level
from pyg_pool.core.lift import lift
from pyg_pool.core.select import Selection
from pyg_pool.errors import check_choice
from pyg_pool.typing import OptTensor

if TYPE_CHECKING:
    from pyg_pool.coarsen.quality import Quality

__all__ = ["Coarsening"]

Edge = Literal["sum", "mean", "projected", "similarity", "gcn"]
Reduce = Literal["mean", "sum", "projected", "max", "min", "first", "majority"]
EDGES = ("sum", "mean", "projected", "similarity", "gcn")
REDUCES = ("mean", "sum", "projected", "max", "min", "first", "majority")


@dataclass(eq=False)
class Coarsening:
    """A graph, a cluster for each of its nodes, and what the coarse graph carries.

    Made by :func:`coarsen`. With several levels, ``cluster`` is that of the coarsest.

    Args:
        source: The fine graph.
        steps: Cluster of each node, level by level, ``[N_l]`` int64.
        kernel: Kernel that the clusters were made for.
        mass_of: Masses of the fine nodes, ``[N]`` float64.
        options: Options of the call, kept for the record.
        kept: Nodes that a method without clusters kept (``"kron"``).

    Example:
        >>> import torch
        >>> from pyg_pool.coarsen import coarsen
        >>> path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> small = coarsen(path, num_clusters=2)
        >>> small.cluster
        tensor([0, 0, 1, 1])
        >>> small.restrict(torch.tensor([1.0, 3.0, 5.0, 7.0]))
        tensor([2., 6.])
    """

    source: Graph
    steps: list[Tensor]
    kernel: Any = "rw"
    mass_of: Tensor = field(default_factory=lambda: torch.empty(0))
    options: dict[str, Any] = field(default_factory=dict)
    kept: OptTensor = None

    def __post_init__(self) -> None:
        """Finds out the cluster of every node."""
        cluster = self.steps[0]
        for step in self.steps[1:]:
            cluster = step[cluster]
        self.cluster = cluster
        self.sizes = [_count(step) for step in self.steps]
        self.num_clusters = self.sizes[-1]
        self.num_nodes = self.source.num_nodes
        mass, n = self.mass_of, self.num_clusters
        if cluster.numel() and cluster.min() < 0:
            held = cluster >= 0
            cluster, mass = cluster[held], mass[held]
        self.size = torch.bincount(cluster, minlength=n)
        self.mass = torch.bincount(cluster, weights=mass, minlength=n)

    @property
    def levels(self) -> int:
        """Number of coarse levels."""
        return len(self.steps)

    @property
    def ids(self) -> Any:
        """Names of the nodes in the file they come from, or ``None``."""
        return self.source.ids

    @property
    def state(self) -> State:
        """Similarity and masses of the fine graph."""
        return state_of(self.source, self.kernel, self.mass_of.numpy())

    @property
    def selection(self) -> Selection:
        """The map from the nodes to the coarsest clusters."""
        return Selection.from_clusters(self.cluster, self.num_clusters)

    @property
    def hierarchy(self) -> Hierarchy:
        """All levels as graphs, with the selections between them."""
        edge_index, weight = _edges(self.source)
        levels = [Level(self.num_nodes, edge_index, weight)]
        selections = []
        for step, size in zip(self.steps, self.sizes, strict=True):
            selection = Selection.from_clusters(step, size)
            edge_index, weight = levels[-1].edge_index, levels[-1].edge_attr
            if weight is None:
                weight = torch.ones(edge_index.size(1))
            out = connect(selection, edge_index, weight)
            levels.append(Level(size, out.edge_index, out.edge_attr))
            selections.append(selection)
        return Hierarchy(levels, selections)

    @property
    def readout_weight(self) -> Tensor:
        """``[n]`` weights with which a plain mean of clusters is the fine mean."""
        return self.size * (self.num_clusters / max(self.num_nodes, 1))

    def until(self, level: int) -> Coarsening:
        """The coarsening that stops at a level, 1 being the finest coarse one."""
        if not 1 <= level <= self.levels:
            raise ValueError(
                f"Coarsening.until got level {level}, expected 1 to {self.levels}; "
                f"level 0 is the source."
            )
        masses, steps = self.mass_of, self.steps[:level]
        return Coarsening(self.source, steps, self.kernel, masses, self.options)

    def graph(
        self,
        edge: Edge = "sum",
        self_loops: bool = False,
        *,
        x: OptTensor = None,
        edge_weight: OptTensor = None,
    ) -> Data:
        """The coarse graph.

        Args:
            edge: ``"sum"`` of the edges between two clusters, their ``"mean"`` over
                pairs of members, ``"projected"`` (sum over the root of both masses),
                ``"similarity"`` of the kernel, or ``"gcn"``, the operator that averages
                a normalised message over the members (not symmetric).
            self_loops: Whether edges inside a cluster stay, counted in both directions.
            x: Features of the fine nodes, of which clusters get the means.
            edge_weight: Weights, in the order of ``source.edge_index()``, that pass
                gradients.

        Returns:
            ``Data`` with ``edge_index``, ``edge_weight``, ``mass``, ``size``,
            ``num_nodes`` and, if given, ``x``.

        Shapes:
            x: ``[N, *]``; edge_weight: ``[E]``.
        """
        from pyg_pool.coarsen.carry import coarse_edges

        check_choice("Coarsening.graph", "edge", edge, EDGES)
        edge_index, weight = coarse_edges(self, edge, self_loops, edge_weight)
        out = Data(
            edge_index=edge_index,
            edge_weight=weight,
            num_nodes=self.num_clusters,
            mass=self.mass,
            size=self.size,
        )
        if x is not None:
            out.x = self.restrict(x)
        return out

    def restrict(self, x: Tensor, reduce: Reduce = "mean") -> Tensor:
        """Features of the nodes to features of the clusters; gradients pass.

        Args:
            x: Features; integers for ``"majority"``, half precision is added up in
                single precision.
            reduce: ``"mean"``, ``"sum"``, ``"projected"`` (sum over the root of the
                size), ``"max"``, ``"min"``, ``"first"`` member, or ``"majority"``.

        Shapes:
            x: ``[N, *]``; returns ``[n, *]``.
        """
        check_choice("Coarsening.restrict", "reduce", reduce, REDUCES)
        from pyg_pool.coarsen.carry import restrict

        return restrict(self, x, reduce)

    def lift(self, x: Tensor) -> Tensor:
        """Gives every node the features of its cluster.

        Shapes:
            x: ``[n, *]``; returns ``[N, *]``.
        """
        return lift(x, self.selection)

    def quality(self, k: int = 0, *, gw: bool = False) -> Quality:
        """How good the coarse graph is, see :class:`Quality`.

        Args:
            k: Number of the largest eigenvalues to compare; 0 for none.
            gw: Whether to measure the Gromov-Wasserstein distance (small graphs only).

        Raises:
            ValueError: If ``k`` is negative, the graph is too large for ``gw``, or the
                method made no clusters (``"kron"``).
        """
        from pyg_pool.coarsen.quality import measure

        if k < 0:
            raise ValueError(
                f"Coarsening.quality got k={k}, expected a number >= 0; leave it out "
                f"for no eigenvalues."
            )
        return measure(self, k, gw)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes graph, clusters and options to an ``.npz`` file (no pickle, atomic).

        Raises:
            ValueError: If the kernel is a matrix: that is not stored.
        """
        if not isinstance(self.kernel, str):
            raise ValueError(
                f"Coarsening.save got a kernel of type {type(self.kernel).__name__}, "
                f"expected one with a name; save the matrix and cluster yourself."
            )
        tensors = {f"step{i}": step for i, step in enumerate(self.steps)}
        tensors["mass"] = self.mass_of
        for name in ("indptr", "indices", "weight", "loop"):
            part = np.ascontiguousarray(getattr(self.source, name))
            tensors[name] = torch.from_numpy(part)
        if self.kept is not None:
            tensors["kept"] = self.kept
        ids = self.source.ids
        if ids is not None and np.asarray(ids).dtype.kind in "iu":
            tensors["ids"] = torch.from_numpy(np.asarray(ids).astype(np.int64))
        header = {"levels": self.levels, "kernel": self.kernel, "options": self.options}
        if ids is not None and "ids" not in tensors:
            header["names"] = [str(name) for name in ids]
        save_tensors(path, "Coarsening", tensors, header)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Coarsening:
        """Reads what :meth:`save` wrote.

        Raises:
            ValueError: If the file is damaged or holds something else.
        """
        tensors, header = load_tensors(path, "Coarsening")
        ids = tensors["ids"].numpy() if "ids" in tensors else header.get("names")
        indptr, indices = tensors["indptr"].numpy(), tensors["indices"].numpy()
        weight, loop = tensors["weight"].numpy(), tensors["loop"].numpy()
        source = Graph(indptr, indices, weight, loop, ids)
        steps = [tensors[f"step{i}"] for i in range(header["levels"])]
        kept = tensors.get("kept")
        return cls(
            source, steps, header["kernel"], tensors["mass"], header["options"], kept
        )

    def __repr__(self) -> str:
        """Sizes and method in one line."""
        method = self.options.get("method", "labels")
        sizes = " -> ".join(f"{n}" for n in (self.num_nodes, *self.sizes))
        return f"{type(self).__name__}({sizes} nodes, method={method!r})"


def _count(step: Tensor) -> int:
    return int(step.max()) + 1 if step.numel() else 0


def _edges(graph: Graph) -> tuple[Tensor, OptTensor]:
    """Edges and weights of a graph as tensors."""
    weight = graph.edge_weight()
    tensor = None if weight is None else torch.from_numpy(weight).float()
    return torch.from_numpy(graph.edge_index()), tensor


def labels_of(steps: Sequence[Any]) -> list[Tensor]:
    """Labels of NumPy as int64 tensors."""
    return [torch.from_numpy(np.asarray(step).astype(np.int64)) for step in steps]
