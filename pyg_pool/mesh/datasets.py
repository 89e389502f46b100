"""Data sets of meshes that come as graphs, from the folders their authors chose."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path

from pyg_pool.errors import check_choice
from pyg_pool.mesh.downloads import fetch_archive
from pyg_pool.mesh.graph_dataset import MeshDataset, PathLike
from pyg_pool.mesh.layouts import (
    MeshSample,
    Split,
    class_folders,
    draw_split,
    part_folder,
)
from pyg_pool.mesh.preprocessing import GraphRecipe, default_cache

__all__ = [
    "COSEG",
    "SHREC16",
    "CubeEngraving",
    "HumanBody",
    "PrincetonSegmentation",
]

# Archives of the MeshCNN project.
URLS = {
    "shrec_16": "https://www.dropbox.com/s/w16st84r6wc57u7/shrec_16.tar.gz?dl=1",
    "cubes": "https://www.dropbox.com/s/2bxs5f9g60wa0wr/cubes.tar.gz?dl=1",
    "coseg": "https://www.dropbox.com/s/34vy4o5fthhz77d/coseg.tar.gz?dl=1",
    "human_seg": "https://www.dropbox.com/s/s3n05sw0zg27fz3/human_seg.tar.gz?dl=1",
}


class _FolderDataset(MeshDataset):
    """A data set with a folder, which keeps its cache there too."""

    def _fill(
        self,
        root: Path,
        samples: list[MeshSample],
        names: list[str],
        options: _Options,
        values: Sequence[int] = (),
    ) -> None:
        """Makes the graphs."""
        recipe = GraphRecipe() if options.recipe is None else options.recipe
        if values:
            recipe = dataclasses.replace(recipe, label_values=tuple(values))
        MeshDataset.__init__(
            self,
            samples,
            names,
            recipe=recipe,
            versions=options.versions,
            cache=default_cache(root) if options.cache == "auto" else options.cache,
            workers=options.workers,
            progress=options.progress,
        )


@dataclasses.dataclass(frozen=True)
class _Options:
    """What all data sets can be told."""

    recipe: GraphRecipe | None
    versions: int
    cache: PathLike | None
    workers: int | Executor
    progress: bool


class SHREC16(_FolderDataset):
    """30 classes of 20 shapes in many poses, 500 faces each (SHREC 2011).

    Layout: ``root/<class>/train|test/*.obj``, as MeshCNN distributes it.

    Args:
        root: Folder of the data set.
        split: ``"train"`` (16 a class), ``"test"`` (4 a class) or ``"all"``.
        draw: Instead of this split, the number of a random one.
        per_class: Meshes a class for training, and for the test, of a random split.
        download: Whether to fetch the set where ``root`` does not exist.
        recipe: How the graphs are made.
        versions: Graphs of each mesh, see :class:`MeshDataset`.
        cache: Folder of made graphs; ``"auto"`` is ``root/.graphs``, or the user's
            cache where that cannot be written.
        workers: Processes that make them.
        progress: Whether to show bars.
    """

    url = URLS["shrec_16"]

    def __init__(
        self,
        root: PathLike,
        split: Split = "train",
        *,
        draw: int | None = None,
        per_class: int = 10,
        download: bool = False,
        recipe: GraphRecipe | None = None,
        versions: int = 1,
        cache: PathLike | None = "auto",
        workers: int | Executor = 0,
        progress: bool = False,
    ) -> None:
        folder = Path(root)
        if download:
            fetch_archive(self.url, folder, progress=progress)
        samples, names = class_folders(folder, split if draw is None else "all")
        if draw is not None:
            check_choice(type(self).__name__, "split", split, ("train", "test", "all"))
            samples = draw_split(samples, split, per_class, draw)
        options = _Options(recipe, versions, cache, workers, progress)
        self._fill(folder, samples, names, options)


class CubeEngraving(SHREC16):
    """22 classes of cubes with an engraved icon, 500 faces each (MeshCNN).

    Takes the arguments of :class:`SHREC16`.
    """

    url = URLS["cubes"]


class PrincetonSegmentation(_FolderDataset):
    """Parts of 19 categories of 20 shapes (Princeton benchmark, labels by name).

    Layout: ``root/<category>/train|test/<id>.off`` with ``<id>.seg`` beside it and
    ``root/<category>/labels.json``. No public archive has this form; lay it out.

    Args:
        root: Folder of the data set, or of one category.
        category: The category; ``None`` if ``root`` is one.
        split: ``"train"``, ``"test"`` or ``"all"``.
        recipe: How the graphs are made.
        versions: Graphs of each mesh, see :class:`MeshDataset`.
        cache: Folder of made graphs; ``"auto"`` is ``.graphs`` in the category's, or
            the user's cache where that cannot be written.
        workers: Processes that make them.
        progress: Whether to show bars.
    """

    def __init__(
        self,
        root: PathLike,
        category: str | None,
        split: Split = "train",
        *,
        recipe: GraphRecipe | None = None,
        versions: int = 1,
        cache: PathLike | None = "auto",
        workers: int | Executor = 0,
        progress: bool = False,
    ) -> None:
        folder = Path(root) / (category or "")
        samples, names, values = part_folder(folder, split)
        options = _Options(recipe, versions, cache, workers, progress)
        self._fill(folder, samples, names, options, values)


class HumanBody(_FolderDataset):
    """Eight parts of human bodies in many poses (Maron et al. 2017).

    Layout: ``root/train|test`` with labels beside each mesh or in ``root/seg``: the
    ``.obj`` and edge labels of MeshCNN, or ``.ply`` and face labels.

    Args:
        root: Folder of the data set.
        split: ``"train"``, ``"test"`` or ``"all"``.
        download: Whether to fetch MeshCNN's files where ``root`` does not exist.
        recipe: How the graphs are made.
        versions: Graphs of each mesh, see :class:`MeshDataset`.
        cache: Folder of made graphs; ``"auto"`` is ``root/.graphs``, or the user's
            cache where that cannot be written.
        workers: Processes that make them.
        progress: Whether to show bars.
    """

    url = URLS["human_seg"]

    def __init__(
        self,
        root: PathLike,
        split: Split = "train",
        *,
        download: bool = False,
        recipe: GraphRecipe | None = None,
        versions: int = 1,
        cache: PathLike | None = "auto",
        workers: int | Executor = 0,
        progress: bool = False,
    ) -> None:
        folder = Path(root)
        if download:
            fetch_archive(self.url, folder, progress=progress)
        samples, names, values = part_folder(folder, split)
        options = _Options(recipe, versions, cache, workers, progress)
        self._fill(folder, samples, names, options, values)


class COSEG(_FolderDataset):
    """Parts of vases, chairs or aliens (COSEG, as MeshCNN distributes it).

    Layout: ``root/coseg_<shapes>`` or ``root/<shapes>``, in it as in
    :class:`HumanBody`.

    Args:
        root: Folder of the data set.
        shapes: ``"aliens"``, ``"chairs"`` or ``"vases"``.
        split: ``"train"``, ``"test"`` or ``"all"``.
        download: Whether to fetch MeshCNN's files where ``root`` does not exist.
        recipe: How the graphs are made.
        versions: Graphs of each mesh, see :class:`MeshDataset`.
        cache: Folder of made graphs; ``"auto"`` is ``.graphs`` in that of the shapes,
            or the user's cache where that cannot be written.
        workers: Processes that make them.
        progress: Whether to show bars.
    """

    url = URLS["coseg"]

    def __init__(
        self,
        root: PathLike,
        shapes: str,
        split: Split = "train",
        *,
        download: bool = False,
        recipe: GraphRecipe | None = None,
        versions: int = 1,
        cache: PathLike | None = "auto",
        workers: int | Executor = 0,
        progress: bool = False,
    ) -> None:
        check_choice("COSEG", "shapes", shapes, ("aliens", "chairs", "vases"))
        if download:
            fetch_archive(self.url, Path(root), progress=progress)
        folder = Path(root) / f"coseg_{shapes}"
        if not folder.is_dir():
            folder = Path(root) / shapes
        samples, names, values = part_folder(folder, split)
        options = _Options(recipe, versions, cache, workers, progress)
        self._fill(folder, samples, names, options, values)
