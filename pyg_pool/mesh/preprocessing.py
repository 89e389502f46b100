"""From files to graphs: in parallel, and kept in a cache under their content.

The name of a cached graph is a hash of the mesh file, the label file and all options:
moved or renamed data sets stay valid, changed ones never are. Files are written
under another name first; damaged ones are made again. A cache may be deleted at any
time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

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

__all__ = [
    "GraphRecipe",
    "default_cache",
    "mesh_workers",
    "prepare_graphs",
    "read_sample",
]

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


class _Made(NamedTuple):
    """A graph, the warnings of the repair, and why it could not be kept."""

    graph: PrimalDualData
    lost: int
    trouble: str = ""


@contextmanager
def mesh_workers(number: int) -> Iterator[Executor | int]:
    """Processes that several data sets share; 0 for none.

    They start when the first graph is missing in the cache.
    """
    if number == 0:
        yield 0
        return
    # Forked processes would inherit the threads of torch in any state.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(number, mp_context=context) as pool:
        yield pool


def default_cache(root: Path) -> Path | None:
    """Folder ``.graphs`` beside the data, or the user's cache where it is read-only.

    Returns:
        A folder that can be written to, or :obj:`None` where there is neither.
    """
    own = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    for folder in (root / ".graphs", Path(own) / "pyg_pool" / "meshes"):
        if _is_writable(folder):
            return folder
    return None


def prepare_graphs(
    jobs: Sequence[tuple[MeshSample, int]],
    recipe: GraphRecipe,
    *,
    cache: Path | None = None,
    workers: int | Executor = 0,
    progress: bool = False,
) -> list[PrimalDualData]:
    """Makes the graphs of all samples, or reads them from the cache.

    Args:
        jobs: The meshes, and which version of each: 0 is the mesh itself.
        recipe: How the graphs are made.
        cache: Folder to keep them in.
        workers: Processes, or an executor that has some; 0 works in this process.
        progress: Whether to show a bar, for the graphs that the cache lacks.

    Note:
        Warns once with the number of meshes that cleaning changed. A cache that
        cannot be written is left out with a warning.
    """
    cache = _usable(cache)
    todo = [
        (sample, version, recipe, cache, _key(sample, version, recipe))
        for sample, version in jobs
    ]
    kept = [None if cache is None else _cached(cache / f"{job[4]}.npz") for job in todo]
    missing = [job for job, found in zip(todo, kept, strict=True) if found is None]
    bar = {"total": len(missing), "desc": "meshes", "leave": False}
    with _mapping(workers, len(missing)) as run:
        made = run(_prepare, missing)
        made = iter(list(tqdm(made, disable=not (progress and missing), **bar)))
    done = [next(made) if found is None else found for found in kept]
    _warn(done, cache)
    return [result.graph for result in done]


@contextmanager
def _mapping(workers: int | Executor, jobs: int) -> Iterator[Callable[..., Any]]:
    """Calls a function for each of so many jobs: here, or in other processes."""
    chunk = max(1, min(16, jobs // 16))
    if isinstance(workers, Executor):
        yield partial(workers.map, chunksize=chunk)
    elif workers == 0 or jobs < 2:
        yield map
    else:
        with mesh_workers(workers) as pool:
            yield partial(cast(Executor, pool).map, chunksize=chunk)


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
    job: tuple[MeshSample, int, GraphRecipe, Path | None, str],
) -> _Made:
    """One graph, made and kept."""
    sample, version, recipe, cache, key = job
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
    trouble = ""
    if cache is not None:
        tensors = {name: graph[name] for name in graph.keys()}  # noqa: SIM118
        try:
            save_tensors(cache / f"{key}.npz", KIND, tensors, {"lost": lost})
        except OSError as error:  # for instance a full disk
            trouble = error.strerror or str(error)
    return _Made(graph, lost, trouble)


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


def _cached(file: Path) -> _Made | None:
    """A graph of the cache, or nothing where there is no readable one."""
    try:
        tensors, header = load_tensors(file, KIND)
        return _Made(PrimalDualData(**tensors), int(header["lost"]))
    except (FileNotFoundError, KeyError, ValueError):
        return None


def _usable(cache: Path | None) -> Path | None:
    """The cache, if it can be written to."""
    if cache is None or _is_writable(cache):
        return cache
    warnings.warn(
        f"The cache {cache} cannot be written to, expected a folder of one's own; "
        f"graphs are made again each time until cache names another.",
        PygPoolWarning,
        stacklevel=4,
    )
    return None


def _is_writable(folder: Path) -> bool:
    """Whether a folder is there, or can be made, and takes files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.access(folder, os.W_OK)
    except OSError:
        return False


def _warn(results: Sequence[_Made], cache: Path | None) -> None:
    """Warns once for the whole set."""
    changed = sum(result.lost > 0 for result in results)
    if changed:
        warnings.warn(
            f"Repair changed {changed} meshes and said so, expected clean ones; "
            f"read them with read_mesh to see which faces were dropped and why.",
            PygPoolWarning,
            stacklevel=4,
        )
    troubles = [result.trouble for result in results if result.trouble]
    if troubles:
        warnings.warn(
            f"The cache {cache} did not take {len(troubles)} graphs ({troubles[0]}), "
            f"expected free space; they are made again next time, unless cache names "
            f"another folder.",
            PygPoolWarning,
            stacklevel=4,
        )
