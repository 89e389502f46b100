"""Folders of meshes as problems to learn, through the data sets of the mesh room."""

from __future__ import annotations

import logging
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyg_pool.mesh import (
    COSEG,
    SHREC16,
    CubeEngraving,
    GraphRecipe,
    HumanBody,
    MeshAugmentation,
    MeshDataset,
    PrimalDualData,
    PrincetonSegmentation,
)
from pyg_pool.mesh.downloads import fetch_archive
from pyg_pool.mesh.preprocessing import mesh_workers
from pyg_pool.train.config import OptionError, near_names
from pyg_pool.train.mesh_config import MeshConfig

__all__ = ["MeshSet", "load_meshes"]

log = logging.getLogger(__name__)

_WHOLE: dict[str, type[SHREC16]] = {"shrec": SHREC16, "cubes": CubeEngraving}
_COSEG = ("aliens", "chairs", "vases")
_LAYOUTS = {
    "shrec": "<class>/train and <class>/test",
    "cubes": "<class>/train and <class>/test",
    "princeton": "<category>/train and <category>/test with labels beside the meshes",
    "coseg": "coseg_aliens, coseg_chairs or coseg_vases with train, test and seg",
    "human": "train and test, with labels beside the meshes or in seg",
}


@dataclass
class MeshSet:
    """One learning problem: meshes of both parts and the names of the labels.

    Args:
        name: Its name.
        class_names: Names of the labels.
        train: Meshes that are trained on.
        test: Meshes that are tested on.
        files: Files of both parts, by part.
        augmented: Further versions of the training meshes, each a list as long as
            ``train``; every epoch draws one version of each mesh.
    """

    name: str
    class_names: list[str]
    train: list[PrimalDualData]
    test: list[PrimalDualData]
    files: dict[str, list[Path]] = field(default_factory=dict)
    augmented: list[list[PrimalDualData]] = field(default_factory=list)

    @property
    def num_classes(self) -> int:
        """Number of labels."""
        return len(self.class_names)

    def __repr__(self) -> str:
        """Name and sizes in one line."""
        times = f" x {1 + len(self.augmented)}" if self.augmented else ""
        return (
            f"MeshSet({self.name!r}, {len(self.train)}{times} train, {len(self.test)} "
            f"test, {self.num_classes} classes)"
        )


def load_meshes(config: MeshConfig, *, progress: bool = False) -> list[MeshSet]:
    """Read the meshes that a configuration names.

    The folders are those of the data sets of :mod:`pyg_pool.mesh`; which one it is
    can be told by ``layout`` or is seen from the folder. Graphs come from the cache
    of these data sets where it has them.

    Args:
        config: Options of a run.
        progress: Whether to show a bar for the graphs that have to be made.

    Returns:
        One problem for classification; one for each category for segmentation.

    Raises:
        OptionError: If the folder does not hold such meshes.
        ValueError: If a file is damaged.
        ConnectionError: If a set is to be fetched and cannot be.
    """
    root = Path(config.data)
    try:
        with mesh_workers(config.workers) as workers:
            reader = _Reader(config, root, workers, progress)
            if config.download:
                reader.download()
            return reader.problems()
    except FileNotFoundError as error:
        raise OptionError(str(error)) from error


@dataclass(frozen=True)
class _Reader:
    """What all data sets of a run share."""

    config: MeshConfig
    root: Path
    workers: Executor | int
    progress: bool

    def problems(self) -> list[MeshSet]:
        """The problems of the folder."""
        if not self.root.is_dir():
            raise OptionError(
                f"option 'data' got {str(self.root)!r}, expected an existing folder "
                f"of meshes; correct the path."
            )
        own = self.root.resolve().name
        if self.config.task == "classification":
            return [self._problem(own, self._classes())]
        layout, names = self._parts()
        return [
            self._problem(name or own, self._category(layout, name)) for name in names
        ]

    def download(self) -> None:
        """Fetch the set where the folder does not exist."""
        kinds: dict[str, Any] = {**_WHOLE, "coseg": COSEG, "human": HumanBody}
        if self.config.layout not in kinds:
            raise OptionError(
                f"option 'download' got layout={self.config.layout!r}, expected a set "
                f"with a public address ({', '.join(kinds)}); name its layout."
            )
        fetch_archive(kinds[self.config.layout].url, self.root, progress=self.progress)

    def _classes(self) -> tuple[MeshDataset, MeshDataset]:
        """A folder per class."""
        if (self.root / "train").is_dir():
            raise self._other("a folder 'train' of its own", "shrec")
        if not self._folders():
            raise self._other("no folder <class>/train", "shrec")
        kind = _WHOLE.get(self.config.layout, SHREC16)
        train, test = self._options("train"), self._options("test")
        return kind(self.root, "train", **train), kind(self.root, "test", **test)

    def _parts(self) -> tuple[str, list[str]]:
        """Layout and categories of a folder with labels; '' for a single set."""
        layout, names = self.config.layout, self._folders()
        if (self.root / "train").is_dir():
            if self.config.categories:
                raise OptionError(
                    f"option 'categories' got {', '.join(self.config.categories)}, "
                    f"but {str(self.root)!r} is one set with its own folder 'train'; "
                    f"leave the option out, or name the folder above."
                )
            return "human", [""]
        if layout == "human" or not names:
            raise self._other("no folder 'train'", layout)
        is_coseg = [name.removeprefix("coseg_") in _COSEG for name in names]
        if layout == "auto":
            layout = "coseg" if all(is_coseg) else "princeton"
        if layout == "coseg":
            names = [name for name, fits in zip(names, is_coseg, strict=True) if fits]
            if not names:
                raise self._other("other folders", layout)
        return layout, self._chosen(names)

    def _chosen(self, names: list[str]) -> list[str]:
        """Folders of the categories that were asked for."""
        places = {name.removeprefix("coseg_"): name for name in names}
        places.update((name, name) for name in names)
        for name in self.config.categories:
            if name not in places:
                hint = near_names(name, list(places)) or "correct it"
                raise OptionError(
                    f"option 'categories' got {name!r}, expected folders of "
                    f"{str(self.root)!r} ({', '.join(names)}); {hint}."
                )
        return [places[name] for name in self.config.categories] or names

    def _category(self, layout: str, name: str) -> tuple[MeshDataset, MeshDataset]:
        """Both parts of a category."""

        def part(split: Any) -> MeshDataset:
            options = self._options(split)
            if layout == "human":
                return HumanBody(self.root, split, **options)
            if layout == "coseg":
                shapes = name.removeprefix("coseg_")
                return COSEG(self.root, shapes, split, **options)
            return PrincetonSegmentation(self.root, name, split, **options)

        return part("train"), part("test")

    def _options(self, split: str) -> dict[str, Any]:
        """What every data set is told; only training meshes are augmented."""
        config = self.config
        changes = MeshAugmentation(
            scale=config.scale, slide=config.slide, flip=config.flip
        )
        versions = config.versions if split == "train" else 1
        return {
            "recipe": GraphRecipe(
                config=config.graphs,  # type: ignore[arg-type]
                primal_features=config.primal_features,  # type: ignore[arg-type]
                polygons=config.polygons,  # type: ignore[arg-type]
                augmentation=changes if versions > 1 else None,
            ),
            "versions": versions,
            "cache": None if config.cache == "none" else config.cache,
            "workers": self.workers,
            "progress": self.progress,
        }

    def _problem(self, name: str, parts: tuple[MeshDataset, MeshDataset]) -> MeshSet:
        """The problem that two parts of a data set pose."""
        train, test = parts
        size = len(train.samples)
        rounds = [train.graphs[k : k + size] for k in range(0, len(train), size)]
        found = MeshSet(
            name,
            train.class_names,
            rounds[0],
            test.graphs,
            {
                "train": [sample.path for sample in train.samples],
                "test": [sample.path for sample in test.samples],
            },
            rounds[1:],
        )
        log.info("%r", found)
        return found

    def _folders(self) -> list[str]:
        """Folders with meshes to train on."""
        found = (path for path in self.root.iterdir() if (path / "train").is_dir())
        return sorted(path.name for path in found)

    def _other(self, seen: str, layout: str) -> OptionError:
        """The folder is laid out in another way than the task needs."""
        task = self.config.task
        known = [layout]
        if layout == "auto":
            known = ["princeton", "coseg", "human"]
        other = "segmentation" if task == "classification" else "classification"
        ways = "; ".join(f"{name}: {_LAYOUTS[name]}" for name in known)
        return OptionError(
            f"option 'data' got {str(self.root)!r} with {seen}, expected for "
            f"task={task!r} {ways}; lay the meshes out so, name another folder, or "
            f"choose task={other!r}."
        )
