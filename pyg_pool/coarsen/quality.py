"""How good a coarse graph is: one report of many measures, as table and JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.contract import contract
from pyg_pool.coarsen.multilevel import narrow
from pyg_pool.coarsen.objective import association, move_cost, objective
from pyg_pool.coarsen.spectral import eigenvalue_errors
from pyg_pool.coarsen.threads import Threads

if TYPE_CHECKING:
    from pyg_pool.coarsen.coarsening import Coarsening

__all__ = ["Quality", "measure"]

Array = NDArray[Any]
# Above this many nodes the distance is not solved for: the plan is dense.
GW_NODES = 2000


@dataclass(frozen=True)
class Quality:
    """Measures of one coarsening.

    Args:
        num_nodes: Nodes of the fine graph.
        num_edges: Its undirected edges.
        num_clusters: Nodes of the coarse graph.
        num_coarse_edges: Its undirected edges.
        objective: ``J``, the k-means objective for masses that sum to 1.
        association: ``A``, similarity inside clusters that merging captured, in the
            masses as they are; larger is better.
        gw_upper_bound: ``sqrt(B)``: the graph moved at most this far in
            Gromov-Wasserstein distance.
        cut: Share of the edge weight that lies between clusters.
        modularity: Newman's modularity of the clusters.
        sizes: Nodes per cluster: least, quartiles and largest.
        heaviest: Share of the mass in the heaviest cluster.
        histogram: Number of clusters with 1, 2-3, 4-7, … nodes.
        eigenvalues: Largest eigenvalues of the similarity, if asked for.
        coarse_eigenvalues: Those of the coarse graph.
        spectral_error: Mean relative gap of these.
        gw_distance: Measured distance, from the plan that the clusters make.
    """

    num_nodes: int
    num_edges: int
    num_clusters: int
    num_coarse_edges: int
    objective: float
    association: float
    gw_upper_bound: float
    cut: float
    modularity: float
    sizes: list[float]
    heaviest: float
    histogram: list[int] = field(default_factory=list)
    eigenvalues: list[float] = field(default_factory=list)
    coarse_eigenvalues: list[float] = field(default_factory=list)
    spectral_error: float | None = None
    gw_distance: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers by name."""
        return asdict(self)

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def rows(self) -> list[tuple[str, str]]:
        """Names and values, as text."""
        low, _, middle, _, high = self.sizes
        share = self.num_clusters / max(self.num_nodes, 1)
        out = [
            ("nodes", f"{self.num_nodes:,} -> {self.num_clusters:,} ({share:.2%})"),
            ("edges", f"{self.num_edges:,} -> {self.num_coarse_edges:,}"),
            ("objective J", f"{self.objective:.6g}"),
            ("association A / N", f"{self.association / max(self.num_nodes, 1):.5f}"),
            ("GW distance at most", f"{self.gw_upper_bound:.6g}"),
        ]
        if self.gw_distance is not None:
            out.append(("GW distance measured", f"{self.gw_distance:.6g}"))
        if self.spectral_error is not None:
            count = len(self.eigenvalues)
            name = f"error of {count} eigenvalues"
            out.append((name, f"{self.spectral_error:.3%}"))
        return [
            *out,
            ("weight between clusters", f"{self.cut:.2%}"),
            ("modularity", f"{self.modularity:.4f}"),
            ("nodes per cluster", f"{low:.0f} to {high:.0f}, median {middle:.0f}"),
            ("heaviest cluster", f"{self.heaviest:.2%} of the mass"),
        ]

    def __str__(self) -> str:
        """A table of two columns."""
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name.ljust(width)}  {value}" for name, value in rows)


def measure(coarsening: Coarsening, k: int, gw: bool) -> Quality:
    """The quality of a coarsening, see :meth:`Coarsening.quality`."""
    if coarsening.kept is not None:
        raise ValueError(
            "Coarsening.quality got the result of method='kron', expected clusters: "
            "without them there is no bound; use another method."
        )
    graph, n = coarsening.source, coarsening.num_clusters
    label = coarsening.cluster.numpy()
    state = coarsening.state
    step = label.astype(state.indices.dtype)
    with Threads() as threads:
        coarse = contract(narrow(state), step, n, threads)
    cut, modularity = edge_figures(coarsening)
    size = coarsening.size.numpy()
    quartiles = np.quantile(size, [0, 0.25, 0.5, 0.75, 1]) if n else np.zeros(5)
    steps = np.floor(np.log2(np.maximum(size, 1))).astype(np.int64)
    total = float(state.mass.sum())
    extra: dict[str, Any] = {}
    if k > 0:
        found = eigenvalue_errors(state, coarse, k)
        extra = {
            "eigenvalues": found["eigenvalues"],
            "coarse_eigenvalues": found["coarse_eigenvalues"],
            "spectral_error": found["error"],
        }
    if gw:
        extra["gw_distance"] = _distance(coarsening)
    return Quality(
        num_nodes=graph.num_nodes,
        num_edges=graph.num_edges,
        num_clusters=n,
        num_coarse_edges=coarse.indices.size // 2,
        objective=objective(state, label, n),
        association=association(state, label, n),
        gw_upper_bound=float(np.sqrt(max(move_cost(state, coarse), 0.0))),
        cut=cut,
        modularity=modularity,
        sizes=[float(value) for value in quartiles],
        heaviest=float(coarse.mass.max() / total) if n else 0.0,
        histogram=np.bincount(steps).tolist() if n else [],
        **extra,
    )


def edge_figures(coarsening: Coarsening) -> tuple[float, float]:
    """Share of the weight between clusters, and modularity."""
    from pyg_pool.coarsen.contract_numba import inner_sums

    graph, n = coarsening.source, coarsening.num_clusters
    label = coarsening.cluster.numpy()
    inside = np.empty(label.size)
    rows = (graph.indptr, graph.indices, graph.weight, graph.weight[:0])
    inner_sums((0, label.size), rows, label, inside)
    if graph.loop.size:
        inside += graph.loop
    degree = graph.degree()
    total = float(degree.sum())
    if total == 0:
        return 0.0, 0.0
    outer = np.bincount(label, weights=degree, minlength=n)
    kept = float(inside.sum()) / total
    return 1 - kept, kept - float(((outer / total) ** 2).sum())


def _distance(coarsening: Coarsening) -> float:
    """The distance that a solver finds from the plan of the clusters."""
    from pyg_pool.coarsen.gw import coarse_space, space_of, transport

    size, n = coarsening.num_nodes, coarsening.num_clusters
    if size > GW_NODES:
        raise ValueError(
            f"Coarsening.quality got gw=True for {size} nodes, expected at most "
            f"{GW_NODES}, as plan and similarity are dense; gw_upper_bound tells "
            f"almost the same."
        )
    label, mass = coarsening.cluster.numpy(), coarsening.mass_of.numpy()
    start = np.zeros((size, n))
    start[np.arange(size), label] = mass / mass.sum()
    fine = space_of(coarsening.source, coarsening.kernel, mass)
    coarse = coarse_space(coarsening.state, label, n)
    return float(np.sqrt(max(transport(fine, coarse, start)[0], 0.0)))
