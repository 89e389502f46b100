"""Which method a word stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.build import Duplicates, Symmetrize
from pyg_pool.coarsen.constraints import Constraints
from pyg_pool.coarsen.graph import Graph
from pyg_pool.coarsen.group import Limits
from pyg_pool.coarsen.kernel_kmeans import kmeans
from pyg_pool.coarsen.labels import checked
from pyg_pool.coarsen.multilevel import PRESETS, multilevel
from pyg_pool.coarsen.progress import Progress
from pyg_pool.coarsen.state import KERNELS, MASSES, State
from pyg_pool.coarsen.threads import Threads
from pyg_pool.coarsen.ward import moves, ward
from pyg_pool.errors import check_choice

__all__ = ["Method", "Recipe", "check_options", "cluster_nodes"]

Array = NDArray[Any]
Method = Literal[
    "multilevel",
    "kmeans",
    "ward",
    "mgc",
    "sgc",
    "variation_edges",
    "variation_neighborhoods",
    "variation_cliques",
    "heavy_edge",
    "algebraic",
    "affinity",
    "kron",
]
OWN = ("multilevel", "kmeans", "ward")
# Dense similarity: 16,384 nodes are 2 GB.
DENSE = 16_384


@dataclass(frozen=True)
class Recipe:
    """How nodes are clustered."""

    method: str = "multilevel"
    preset: str = "best"
    spectral_weight: float = 0.0
    init: Any = "kmeans++"
    n_init: int = 10
    refine: bool = True
    seed: int = 0

    @property
    def needs_graph(self) -> bool:
        """Whether the method works on the adjacency, not on similarity and masses."""
        init = self.init if isinstance(self.init, str) else ""
        return self.method not in OWN or init in set(get_args(Method)) - set(OWN)

    def check(self, constraints: Constraints) -> None:
        """Raises if an option does not go with the method."""
        if self.method != "multilevel" and constraints.are_set:
            raise ValueError(
                f"coarsen got constraints with method={self.method!r}, expected "
                f"method='multilevel' with must_link, never_merge, keep, connected and "
                f"max_cluster_mass; leave them out, or change the method."
            )
        if self.spectral_weight < 0 or (
            self.spectral_weight and self.method != "multilevel"
        ):
            raise ValueError(
                f"coarsen got spectral_weight={self.spectral_weight} with method="
                f"{self.method!r}, expected a number >= 0 with method='multilevel'; "
                f"leave it out."
            )
        if self.n_init < 1:
            raise ValueError(
                f"coarsen got n_init={self.n_init}, expected at least 1; 10 is usual."
            )


def check_options(
    method: Any,
    kernel: Any,
    mass: Any,
    preset: Any,
    symmetrize: Any = "error",
    duplicates: Any = "sum",
) -> None:
    """Raises for words that :func:`coarsen` does not know, before a graph is read."""
    check_choice("coarsen", "method", method, get_args(Method))
    check_choice("coarsen", "preset", preset, PRESETS)
    check_choice("coarsen", "symmetrize", symmetrize, get_args(Symmetrize))
    check_choice("coarsen", "duplicates", duplicates, get_args(Duplicates))
    if isinstance(kernel, str):
        check_choice("coarsen", "kernel", kernel, KERNELS)
    if isinstance(mass, str):
        check_choice("coarsen", "mass", mass, MASSES)


def cluster_nodes(
    recipe: Recipe,
    state: State,
    graph: Graph,
    target: int,
    limits: Limits,
    threads: Threads,
    progress: Progress,
) -> tuple[Array, Array | None]:
    """Cluster of each node of a level, and the nodes kept by a method without any."""
    if recipe.method == "multilevel":
        points = None
        if recipe.spectral_weight > 0:
            from pyg_pool.coarsen.spectral import random_coordinates

            weight, seed = recipe.spectral_weight, recipe.seed
            points = random_coordinates(state, weight, seed)
        label = multilevel(
            state,
            target,
            preset=recipe.preset,
            limits=limits,
            seed=recipe.seed,
            threads=threads,
            progress=progress,
            points=points,
        )
        return label, None
    _check_dense(recipe.method, state.num_nodes)
    if recipe.method == "ward":
        return ward(state, target, refine=recipe.refine), None
    if recipe.method == "kmeans":
        return _kmeans(recipe, state, graph, target, limits, threads, progress), None
    from pyg_pool.coarsen.rivals import rival

    return rival(recipe.method, graph, target, recipe.seed)


def _kmeans(
    recipe: Recipe,
    state: State,
    graph: Graph,
    target: int,
    limits: Limits,
    threads: Threads,
    progress: Progress,
) -> Array:
    """Batch steps from the start asked for, then moves."""
    start, count = None, target
    if not isinstance(recipe.init, str):
        plain = (
            recipe.init.cpu().numpy() if hasattr(recipe.init, "cpu") else recipe.init
        )
        start, count = checked("coarsen", plain, state.num_nodes)
    elif recipe.init != "kmeans++":
        first = Recipe(recipe.init, recipe.preset, 0.0, seed=recipe.seed)
        start, _ = cluster_nodes(first, state, graph, target, limits, threads, progress)
        count = int(np.max(start, initial=-1)) + 1
    label = kmeans(state, count, label=start, n_init=recipe.n_init, seed=recipe.seed)
    return moves(state, label, count) if recipe.refine else label


def _check_dense(method: str, size: int) -> None:
    if size > DENSE:
        raise ValueError(
            f"coarsen got a graph of {size} nodes with method={method!r}, expected at "
            f"most {DENSE}, as it holds dense matrices; use method='multilevel'."
        )
