"""Meshes of a folder as graphs for training."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path

import torch

from pyg_pool.mesh import (
    Mesh,
    PrimalDualData,
    clean_mesh,
    primal_dual_graph,
    read_labels,
    read_mesh,
)
from pyg_pool.train.config import OptionError, near_names
from pyg_pool.train.mesh_config import MeshConfig

__all__ = ["MeshSet", "load_meshes"]

log = logging.getLogger(__name__)

MESHES = (".obj", ".off", ".ply", ".stl", ".glb")
LABELS = (".seg", ".eseg", ".labels", ".npy")


@dataclass
class MeshSet:
    """One learning problem: meshes of both parts and the names of the labels.

    Args:
        name: Its name.
        class_names: Names of the labels.
        train: Meshes that are trained on.
        test: Meshes that are tested on.
        files: Files of both parts, by part.
    """

    name: str
    class_names: list[str]
    train: list[PrimalDualData]
    test: list[PrimalDualData]
    files: dict[str, list[Path]] = field(default_factory=dict)

    @property
    def num_classes(self) -> int:
        """Number of labels."""
        return len(self.class_names)

    def __repr__(self) -> str:
        """Name and sizes in one line."""
        return (
            f"MeshSet({self.name!r}, {len(self.train)} train, {len(self.test)} test, "
            f"{self.num_classes} classes)"
        )


def load_meshes(config: MeshConfig) -> list[MeshSet]:
    """Read the meshes that a configuration names.

    Classification: ``data/<class>/train|test/<mesh>``. Segmentation: the same with a
    folder per category, or ``data/train|test/<mesh>`` for one; labels lie beside a
    mesh under its name or in the folder ``seg`` beside ``train``, and names of labels
    in ``labels.json``.

    Args:
        config: Options of a run.

    Returns:
        One problem for classification; one for each category for segmentation.

    Raises:
        OptionError: If the folder does not hold such meshes.
    """
    root = Path(config.data)
    if not root.is_dir():
        raise OptionError(
            f"option 'data' got {str(root)!r}, expected an existing folder of meshes; "
            f"correct the path."
        )
    if config.task == "classification":
        return [_classes(root, config)]
    if (root / "train").is_dir():
        return [_parts(root, config)]
    names = [each.name for each in _folders(root)]
    for name in config.categories:
        if name not in names:
            raise OptionError(
                f"option 'categories' got {name!r}, expected folders of {str(root)!r} "
                f"({', '.join(names)}); {near_names(name, names) or 'correct it'}."
            )
    chosen = config.categories or names
    return [_parts(root / name, config) for name in chosen]


def _folders(root: Path) -> list[Path]:
    """Folders with meshes to train on."""
    found = sorted(path for path in root.iterdir() if (path / "train").is_dir())
    if not found:
        raise OptionError(
            f"option 'data' got {str(root)!r}, expected folders <name>/train with "
            f"meshes in it; lay the meshes out so, with <name>/test beside it."
        )
    return found


def _files(folder: Path) -> list[Path]:
    """Meshes of a folder in the order of their names."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in MESHES)


def _graph(mesh: Mesh, config: MeshConfig) -> PrimalDualData:
    """The two graphs of a mesh."""
    return primal_dual_graph(
        mesh,
        config.graphs,  # type: ignore[arg-type]
        primal_features=config.primal_features,  # type: ignore[arg-type]
    )


def _classes(root: Path, config: MeshConfig) -> MeshSet:
    """A folder per class."""
    folders = _folders(root)
    found = MeshSet(root.name, [folder.name for folder in folders], [], [])
    for part in ("train", "test"):
        for label, folder in enumerate(folders):
            for path in _files(folder / part):
                data = _graph(read_mesh(path), config)
                data.y = torch.tensor([label])
                getattr(found, part).append(data)
                found.files.setdefault(part, []).append(path)
    return _checked(found)


def _parts(root: Path, config: MeshConfig) -> MeshSet:
    """Meshes with a label for each face."""
    found = MeshSet(root.name, [], [], [])
    most = 0
    for part in ("train", "test"):
        for path in _files(root / part):
            # Labels are those of the file: they go with its faces through cleaning.
            mesh = read_mesh(path, clean=False)
            mesh = mesh.with_labels(read_labels(_label_file(path), mesh))
            data = _graph(clean_mesh(mesh), config)
            most = max(most, int(data.y.max()) + 1 if data.y.numel() else 0)
            getattr(found, part).append(data)
            found.files.setdefault(part, []).append(path)
    stored = root / "labels.json"
    found.class_names = [str(k) for k in range(most)]
    if stored.exists():
        names = json.loads(stored.read_text(encoding="utf-8"))
        found.class_names = [str(name) for name in names] + found.class_names[
            len(names) :
        ]
    return _checked(found)


def _label_file(path: Path) -> Path:
    """The labels of a mesh."""
    for folder in (path.parent, path.parent.parent / "seg"):
        for suffix in LABELS:
            file = folder / f"{path.stem}{suffix}"
            if file.exists():
                return file
    raise OptionError(
        f"mesh {str(path)!r} has no file of labels, expected {path.stem} with "
        f"{', '.join(LABELS)} beside it or in {str(path.parent.parent / 'seg')!r}; "
        f"write one label per face."
    )


def _checked(found: MeshSet) -> MeshSet:
    """Refuse a set without meshes to train on or to test on."""
    if not found.train or not found.test:
        raise OptionError(
            f"data {found.name!r} has {len(found.train)} meshes to train on and "
            f"{len(found.test)} to test on, expected some of both; put them into "
            f"folders 'train' and 'test'."
        )
    log.info("%r", found)
    return found
