"""The call that coarsens a graph: checks, method, levels, result."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyg_pool.coarsen.build import Duplicates, Symmetrize, coarse_graph
from pyg_pool.coarsen.coarsening import Coarsening, labels_of
from pyg_pool.coarsen.constraints import Constraints
from pyg_pool.coarsen.contract import contract
from pyg_pool.coarsen.graph import Graph
from pyg_pool.coarsen.inputs import as_graph, target_sizes
from pyg_pool.coarsen.labels import checked, compact
from pyg_pool.coarsen.methods import Method, Recipe, check_options, cluster_nodes
from pyg_pool.coarsen.multilevel import coarse_lock, narrow
from pyg_pool.coarsen.progress import Progress
from pyg_pool.coarsen.state import State, state_of
from pyg_pool.coarsen.threads import Threads
from pyg_pool.errors import PygPoolWarning

__all__ = ["coarsen", "from_labels"]

Array = NDArray[Any]
Preset = Literal["fast", "balanced", "best"]
Kernel = Literal["rw", "normalized", "signless"]
Groups = Sequence[Sequence[int]]
# Share of the mass that a cluster should not exceed, and graphs that are told so.
HEAVY, LARGE = 0.05, 1000


@dataclass(eq=False)
class Job:
    """What one call works on."""

    graph: Graph
    state: State
    recipe: Recipe
    constraints: Constraints
    sizes: list[int]


def coarsen(
    graph: Any,
    *,
    ratio: float | None = None,
    num_clusters: int | Sequence[int] | None = None,
    levels: int = 1,
    edge_weight: Tensor | None = None,
    size: int | None = None,
    symmetrize: Symmetrize = "error",
    duplicates: Duplicates = "sum",
    must_link: Groups | None = None,
    never_merge: Groups | None = None,
    keep: Sequence[int] | Tensor | None = None,
    method: Method = "multilevel",
    kernel: Kernel | Any = "rw",
    mass: Any = None,
    preset: Preset = "best",
    spectral_weight: float = 0.0,
    connected: bool = False,
    max_cluster_mass: float | None = None,
    init: Any = "kmeans++",
    n_init: int = 10,
    refine: bool = True,
    seed: int = 0,
    num_threads: int | None = None,
    progress: bool = False,
    out: str | os.PathLike[str] | None = None,
) -> Coarsening:
    r"""Merges the nodes of a graph into clusters, so that little of it is lost.

    The graph is a similarity ``S`` with masses ``m``. Merging moves it by at most
    ``sqrt(B)`` in Gromov-Wasserstein distance, and weighted kernel k-means keeps that
    and the change of the large eigenvalues small; see ``docs/guide/coarsening.md``.

    Args:
        graph: ``edge_index``, a PyG ``Data`` (weights are its ``edge_weight``, or an
            ``edge_attr`` of one dimension), a SciPy sparse matrix, a :class:`Graph`, or
            the path of a file that :func:`read_graph` reads.
        ratio: Clusters by nodes, of each level; rounded up.
        num_clusters: Number of clusters instead, or one number per level. Reached
            exactly.
        levels: Number of levels; each is the coarsening of the one before.
        edge_weight: Weights beside an ``edge_index``; all ``>= 0``, 0 for no edge.
        size: Number of nodes beside it, where isolated nodes come last.
        symmetrize: For edges of one direction: ``"error"``, or ``"sum"``, ``"max"`` or
            ``"mean"`` of both directions; symmetric edges stay as they are. Files are
            read as undirected.
        duplicates: For equal edges: ``"sum"``, ``"max"``, ``"first"`` or ``"error"``.
        must_link: Groups of nodes that share a cluster, here and below numbered 0..N-1.
        never_merge: Groups of nodes of which no two share a cluster.
        keep: Nodes that stay clusters of their own.
        method: ``"multilevel"``; ``"ward"`` and ``"kmeans"`` for small graphs; or a
            method to compare with: ``"mgc"``, ``"sgc"``, ``"variation_edges"``,
            ``"variation_neighborhoods"``, ``"variation_cliques"``, ``"heavy_edge"``,
            ``"algebraic"``, ``"affinity"``, ``"kron"``.
        kernel: ``"rw"``, ``"normalized"``, ``"signless"``, or a symmetric matrix.
        mass: ``"degree"``, ``"uniform"``, one number per node, or ``None``: degrees for
            ``"rw"``, uniform for the others.
        preset: Effort of ``"multilevel"``: ``"fast"``, ``"balanced"``, ``"best"``.
        spectral_weight: Weight of extra terms that keep small eigenvalues of the
            Laplacian, about 1 where wanted; ``"multilevel"`` only.
        connected: Whether every cluster must be connected; stops above the target with
            a warning where the graph has more components.
        max_cluster_mass: Largest share of the mass that a cluster may get.
        init: Start of ``"kmeans"``: ``"kmeans++"``, labels, or the name of a method.
        n_init: Number of random starts of ``"kmeans"``.
        refine: Whether ``"ward"`` and ``"kmeans"`` end with moves of single nodes.
        seed: Seed of ties and starts.
        num_threads: Threads; all cores if left out. Never changes the result.
        progress: Whether to show a bar.
        out: File to save the result to; an interrupted run leaves its last finished
            level there.

    Returns:
        The coarsening: clusters, coarse graph, quality.

    Shapes:
        graph: ``[2, E]`` int64; edge_weight: ``[E]``.

    Raises:
        TypeError: If the graph is of no known type.
        ValueError: If the graph, the target or an option does not fit.

    Note:
        Costs O(E) time per sweep and, beside the input, less than 40 bytes per
        directed edge. Deterministic for a seed, whatever the number of threads.

    Source: Yifan Chen, Rentian Yao, Yun Yang, Jie Chen: A Gromov–Wasserstein Geometric
    View of Spectrum-Preserving Graph Coarsening, ICML 2023 (arXiv 2306.08854); the
    multilevel method is this library's own.

    Example:
        >>> import torch
        >>> from pyg_pool.coarsen import coarsen
        >>> ring = torch.stack([torch.arange(12), (torch.arange(12) + 1) % 12])
        >>> coarsen(ring, num_clusters=3, symmetrize="sum").size
        tensor([4, 4, 4])
    """
    threads = Threads(num_threads)
    check_options(method, kernel, mass, preset, symmetrize, duplicates)
    target_sizes(1, ratio, num_clusters, levels)
    source = as_graph(graph, edge_weight, size, symmetrize, duplicates, threads)
    sizes = target_sizes(source.num_nodes, ratio, num_clusters, levels)
    limits = Constraints.of(
        source, must_link, never_merge, keep, max_cluster_mass, connected
    )
    recipe = Recipe(method, preset, float(spectral_weight), init, n_init, refine, seed)
    recipe.check(limits)
    state = state_of(source, kernel, mass)
    job = Job(source, state, recipe, limits, sizes)
    options = {"method": method, "preset": preset, "seed": seed, "sizes": sizes}
    watch, done = Progress(progress), list[Array]()
    with threads:
        try:
            kept = _run(job, threads, watch, done)
        except KeyboardInterrupt:
            _save_rest(job, kernel, watch, done, options, out)
            raise
        finally:
            watch.finish()
    found = _pack(job, kernel, done, options, kept)
    if out is not None:
        found.save(Path(out))
    return found


def from_labels(
    graph: Any,
    cluster: Any,
    *,
    kernel: Kernel | Any = "rw",
    mass: Any = None,
    edge_weight: Tensor | None = None,
    size: int | None = None,
    symmetrize: Symmetrize = "error",
    duplicates: Duplicates = "sum",
) -> Coarsening:
    """The coarsening of a partition found elsewhere, to judge or to use it.

    Args:
        graph: As for :func:`coarsen`.
        cluster: Cluster of each node; gaps are closed with a warning.
        kernel: As for :func:`coarsen`.
        mass: As for :func:`coarsen`.
        edge_weight: As for :func:`coarsen`.
        size: As for :func:`coarsen`.
        symmetrize: As for :func:`coarsen`.
        duplicates: As for :func:`coarsen`.

    Shapes:
        cluster: ``[N]`` integers.

    Raises:
        ValueError: If there is not one label per node.

    Example:
        >>> import torch
        >>> from pyg_pool.coarsen import from_labels
        >>> path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> from_labels(path, [0, 0, 1, 1]).mass
        tensor([3., 3.], dtype=torch.float64)
    """
    source = as_graph(graph, edge_weight, size, symmetrize, duplicates)
    plain = cluster.detach().cpu().numpy() if isinstance(cluster, Tensor) else cluster
    label, _ = checked("from_labels", plain, source.num_nodes)
    masses = torch.from_numpy(state_of(source, kernel, mass).mass)
    return Coarsening(source, labels_of([label]), kernel, masses)


def _run(job: Job, threads: Threads, watch: Progress, done: list[Array]) -> Any:
    """Labels of every level into ``done``; returns the nodes a method kept, if any."""
    state, adjacency = job.state, None
    lock, kept = job.constraints.lock, None
    linked = job.constraints.linked
    if linked is not None:
        count = int(linked.max()) + 1 if linked.size else 0
        state = contract(narrow(state), linked, count, threads)
    for target in job.sizes:
        if target >= state.num_nodes:
            label = np.arange(state.num_nodes)
        else:
            limits = job.constraints.limits(state, lock)
            label, kept = cluster_nodes(
                job.recipe,
                state,
                adjacency or job.graph,
                target,
                limits,
                threads,
                watch,
            )
            if kept is None:
                label = compact(label)
        lock = coarse_lock(lock, label, int(label.max(initial=-1)) + 1)
        if len(done) + 1 < len(job.sizes):
            step = label.astype(state.indices.dtype)
            size = int(label.max(initial=-1)) + 1
            if job.recipe.needs_graph:
                adjacency = coarse_graph(adjacency or job.graph, label, size)
            state = contract(narrow(state), step, size, threads)
        done.append(label if linked is None or done else label[linked])
        watch.level_done()
    return kept


def _pack(
    job: Job, kernel: Any, done: list[Array], options: dict[str, Any], kept: Any
) -> Coarsening:
    """The result of the levels done."""
    masses = torch.from_numpy(job.state.mass)
    nodes = None if kept is None else torch.from_numpy(np.asarray(kept))
    out = Coarsening(job.graph, labels_of(done), kernel, masses, options, nodes)
    total = float(out.mass_of.sum())
    heaviest = float(out.mass.max()) if out.num_clusters else 0.0
    limit = max(HEAVY * total, 4 * total / max(out.num_clusters, 1))
    plain = job.recipe.method == "multilevel" and job.constraints.cap is None
    if heaviest > limit and plain and out.num_nodes >= LARGE:
        warnings.warn(
            f"coarsen made a cluster of {heaviest / total:.0%} of the mass, expected "
            f"at most {HEAVY:.0%}; pass max_cluster_mass to forbid it.",
            PygPoolWarning,
            stacklevel=3,
        )
    return out


def _save_rest(
    job: Job,
    kernel: Any,
    watch: Progress,
    done: list[Array],
    options: dict[str, Any],
    out: str | os.PathLike[str] | None,
) -> None:
    """Saves the last finished level of an interrupted run."""
    label = watch.last_labels()
    if out is None or (label is None and not done):
        return
    steps = list(done)
    if label is not None:
        linked = job.constraints.linked
        label = compact(label)
        steps.append(label if linked is None or done else label[linked])
    _pack(job, kernel, steps, {**options, "interrupted": True}, None).save(Path(out))
