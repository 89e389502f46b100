"""From files to graphs: in parallel, and kept in a cache under their content.

The name of a cached graph is a hash of the mesh file, the label file and all options:
moved or renamed data sets stay valid, changed ones never are. Files are written
under another name first; damaged ones are made again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import multiprocessing
import os
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from pyg_pool.core.archive import load_tensors, save_tensors
from pyg_pool.errors import PygPoolWarning
from pyg_pool.mesh.augment import MeshAugmentation
from pyg_pool.mesh.cleaning import NonManifold, clean_mesh
from pyg_pool.mesh.data import PrimalDualData
from pyg_pool.mesh.dual_graph import Config, PrimalFeatures, primal_dual_graph
from pyg_pool.mesh.formats import Polygons, read_mesh
from pyg_pool.mesh.geometry import Mesh
from pyg_pool.mesh.layouts import MeshSample

__all__ = ["GraphRecipe", "prepare_graphs", "read_sample"]

# Raised when the graphs of the same files and options would come out otherwise.
VERSION = 1
KIND = "primal-dual graph"


@dataclass(frozen=True)
class GraphRecipe:
    """How the graphs of a data set are made.

    Args:
        config: See :func:`primal_dual_graph`.
        primal_features: See :func:`primal_dual_graph`.
        nonmanifold: See :func:`clean_mesh`.
        fix_winding: See :func:`clean_mesh`.
        polygons: See :func:`read_mesh`.
        label_values: Number in the files of each class, for segmentation.
        augmentation: Change of all versions of a mesh but the first.
    """

    config: Config = "A"
    primal_features: PrimalFeatures = "area"
    nonmanifold: NonManifold = "drop"
    fix_winding: bool = True
    polygons: Polygons = "error"
    label_values: tuple[int, ...] = ()
    augmentation: MeshAugmentation | None = None


def prepare_graphs(
    jobs: Sequence[tuple[MeshSample, int]],
    recipe: GraphRecipe,
    *,
    cache: Path | None = None,
    workers: int = 0,
    progress: bool = False,
) -> list[PrimalDualData]:
    """Makes the graphs of all samples, or reads them from the cache.

    Args:
        jobs: The meshes, and which version of each: 0 is the mesh itself.
        recipe: How the graphs are made.
        cache: Folder to keep them in.
        workers: Processes; 0 works in this one.
        progress: Whether to show a bar.

    Note:
        Warns once with the number of faces that cleaning dropped. A cache that
        cannot be written is left out with a warning.
    """
    cache = _usable(cache)
    todo = [(sample, version, recipe, cache) for sample, version in jobs]
    bar = {"total": len(todo), "disable": not progress, "desc": "meshes"}
    if workers > 0 and len(todo) > 1:
        # Forked processes would inherit the threads of torch in any state.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            chunk = max(1, min(16, len(todo) // (4 * workers)))
            results = list(tqdm(pool.map(_prepare, todo, chunksize=chunk), **bar))
    else:
        results = list(tqdm(map(_prepare, todo), **bar))
    _warn_of_losses([lost for _, lost in results])
    return [graph for graph, _ in results]


def read_sample(sample: MeshSample, recipe: GraphRecipe) -> Mesh:
    """Reads and cleans the mesh of a sample, its labels numbered from 0."""
    mesh = read_mesh(
        sample.path, clean=False, polygons=recipe.polygons, labels=sample.labels
    )
    if mesh.labels is not None and recipe.label_values:
        values = np.array(recipe.label_values)
        order = np.argsort(values)
        place = np.searchsorted(values, mesh.labels, sorter=order)
        mesh.labels = order[np.minimum(place, len(values) - 1)]
    return clean_mesh(
        mesh, nonmanifold=recipe.nonmanifold, fix_winding=recipe.fix_winding
    )


def _prepare(
    job: tuple[MeshSample, int, GraphRecipe, Path | None],
) -> tuple[PrimalDualData, int]:
    """One graph, and how many faces cleaning dropped."""
    sample, version, recipe, cache = job
    key = _key(sample, version, recipe)
    file = None if cache is None else cache / f"{key}.npz"
    if file is not None and (found := _cached(file)) is not None:
        return found
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", PygPoolWarning)
        mesh = read_sample(sample, recipe)
    lost = len(said)
    if version > 0 and recipe.augmentation is not None:
        generator = torch.Generator().manual_seed(int(key[:15], 16))
        mesh = recipe.augmentation(mesh, generator)
    graph = primal_dual_graph(
        mesh, recipe.config, primal_features=recipe.primal_features
    )
    if sample.target is not None:
        graph.y = torch.tensor([sample.target])
    if file is not None:
        tensors = {name: graph[name] for name in graph.keys()}  # noqa: SIM118
        save_tensors(file, KIND, tensors, {"lost": lost})
    return graph, lost


def _key(sample: MeshSample, version: int, recipe: GraphRecipe) -> str:
    """Hash of the content of the files and of everything that shapes the graph."""
    digest = hashlib.sha256()
    for path in (sample.path, sample.labels):
        content = b"" if path is None else path.read_bytes()
        digest.update(f"{len(content)}:".encode() + content)
    # How a file is read depends on its ending.
    endings = [p.suffix.lower() for p in (sample.path, sample.labels) if p is not None]
    options = dataclasses.asdict(recipe)
    if version == 0:
        options["augmentation"] = None
    digest.update(repr((VERSION, endings, sample.target, version, options)).encode())
    return digest.hexdigest()


def _cached(file: Path) -> tuple[PrimalDualData, int] | None:
    """A graph of the cache, or nothing where there is no readable one."""
    try:
        tensors, header = load_tensors(file, KIND)
        return PrimalDualData(**tensors), int(header["lost"])
    except (FileNotFoundError, KeyError, ValueError):
        return None


def _usable(cache: Path | None) -> Path | None:
    """The cache, if it can be written to."""
    if cache is None:
        return None
    try:
        cache.mkdir(parents=True, exist_ok=True)
        writable = os.access(cache, os.W_OK)
    except OSError:
        writable = False
    if writable:
        return cache
    warnings.warn(
        f"The cache {cache} cannot be written to, expected a folder of one's own; "
        f"graphs are made again each time until cache names another.",
        PygPoolWarning,
        stacklevel=4,
    )
    return None


def _warn_of_losses(lost: Iterable[int]) -> None:
    """Warns once for the whole set."""
    counts = [count for count in lost if count]
    if counts:
        warnings.warn(
            f"Repair changed {len(counts)} meshes and said so, expected clean ones; "
            f"read them with read_mesh to see which faces were dropped and why.",
            PygPoolWarning,
            stacklevel=4,
        )
