"""Where the meshes and labels of a data set lie in its folder.

Two layouts cover the public sets: a folder per class with ``train`` and ``test`` in
it, and ``train`` and ``test`` with a label file per mesh.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from pyg_pool.errors import check_choice
from pyg_pool.mesh.labels import read_numbers

__all__ = ["MeshSample", "Split", "class_folders", "draw_split", "part_folder"]

Split = Literal["train", "test", "all"]

MESH_ENDINGS = (".obj", ".off", ".ply", ".stl", ".glb")
LABEL_ENDINGS = (".seg", ".eseg", ".labels", ".npy")
LABEL_FOLDERS = ("", "../seg", "seg")


@dataclass(frozen=True)
class MeshSample:
    """One mesh of a data set.

    Args:
        path: The mesh file.
        labels: Its label file, for segmentation.
        target: Its class, for classification.
    """

    path: Path
    labels: Path | None = None
    target: int | None = None


def class_folders(
    root: Path, split: Split = "train"
) -> tuple[list[MeshSample], list[str]]:
    """Meshes of ``root/<class>/train`` and ``test``, and the names of the classes.

    Raises:
        FileNotFoundError: If the folder does not look like that.
    """
    check_choice("class_folders", "split", split, ("train", "test", "all"))
    names = sorted(p.name for p in _folders(root) if (p / "train").is_dir())
    if not names:
        raise FileNotFoundError(
            f"{root} holds no folder <class>/train, expected one per class with the "
            f"meshes in train and test; check root, or pass download=True."
        )
    samples = [
        MeshSample(path, None, target)
        for target, name in enumerate(names)
        for part in _parts(split)
        for path in _meshes(root / name / part)
    ]
    return _found(samples, root, split), names


def part_folder(
    root: Path, split: Split = "train"
) -> tuple[list[MeshSample], list[str], list[int]]:
    """Meshes of ``root/train`` and ``test`` with their labels.

    The labels lie beside the mesh, or in ``root/seg``, under the mesh's name.

    Returns:
        The meshes; the names of the parts, from ``labels.json``
        in ``root`` or the numbers themselves; and the number that the files use for
        each part.

    Raises:
        FileNotFoundError: If the folder does not look like that or labels lack.
    """
    check_choice("part_folder", "split", split, ("train", "test", "all"))
    if not (root / "train").is_dir():
        near = [p.name for p in _folders(root) if (p / "train").is_dir()]
        hint = f"pass one of {near[:30]}" if near else "check root"
        raise FileNotFoundError(
            f"{root} holds no folder train, expected the meshes in train and test; "
            f"{hint}, or pass download=True."
        )
    everything = [
        MeshSample(path, _label_file(path))
        for part in _parts("all")
        for path in _meshes(root / part)
    ]
    # Both splits together say which numbers occur.
    known = {
        int(value)
        for sample in everything
        if sample.labels is not None
        for value in set(read_numbers(sample.labels).tolist())
    }
    names = _part_names(root)
    values = list(range(len(names))) if names else sorted(known)
    if not known <= set(values):
        raise ValueError(
            f"{root} names {len(names)} parts, but its labels run from {min(known)} "
            f"to {max(known)}; correct labels.json, or remove it."
        )
    wanted = [root / part for part in _parts(split)]
    samples = [each for each in everything if each.path.parent in wanted]
    return (
        _found(samples, root, split),
        names or [str(value) for value in values],
        values,
    )


def draw_split(
    samples: list[MeshSample], split: Split, per_class: int, draw: int
) -> list[MeshSample]:
    """A random split with equally many meshes of each class in training and test.

    Args:
        samples: All meshes of the set.
        split: The part wanted.
        per_class: Meshes of a class for training, and as many for the test.
        draw: Number of the draw, which seeds it.

    Raises:
        ValueError: If a class has too few meshes.
    """
    generator = torch.Generator().manual_seed(draw)
    chosen = []
    for target in sorted({each.target for each in samples if each.target is not None}):
        own = [each for each in samples if each.target == target]
        own.sort(key=lambda each: each.path.name)
        if len(own) < 2 * per_class:
            raise ValueError(
                f"draw_split got {len(own)} meshes of class {target}, expected at "
                f"least {2 * per_class}; lower per_class."
            )
        order = torch.randperm(len(own), generator=generator).tolist()
        parts = {"train": order[:per_class], "test": order[per_class : 2 * per_class]}
        parts["all"] = parts["train"] + parts["test"]
        chosen += [own[i] for i in sorted(parts[split])]
    return chosen


def _parts(split: str) -> tuple[str, ...]:
    """Folders of a split."""
    return ("train", "test") if split == "all" else (split,)


def _folders(root: Path) -> list[Path]:
    """Folders in a folder."""
    if not root.is_dir():
        raise FileNotFoundError(
            f"{root} is no folder, expected the folder of the data set; check root, "
            f"or pass download=True."
        )
    return sorted(path for path in root.iterdir() if path.is_dir())


def _meshes(folder: Path) -> list[Path]:
    """Mesh files of a folder, by name."""
    if not folder.is_dir():
        return []
    files = (p for p in folder.iterdir() if p.suffix.lower() in MESH_ENDINGS)
    return sorted(files, key=lambda path: path.name)


def _label_file(path: Path) -> Path:
    """The label file of a mesh."""
    for folder in LABEL_FOLDERS:
        for ending in LABEL_ENDINGS:
            found = (path.parent / folder / f"{path.stem}{ending}").resolve()
            if found.is_file():
                return found
    raise FileNotFoundError(
        f"{path} has no label file, expected {path.stem} with one of {LABEL_ENDINGS} "
        f"beside it or in {path.parent.parent / 'seg'}; write one label per face."
    )


def _part_names(root: Path) -> list[str]:
    """Names of the parts, where a file gives them."""
    if (root / "labels.json").is_file():
        return [str(name) for name in json.loads((root / "labels.json").read_text())]
    return []


def _found(samples: list[MeshSample], root: Path, split: str) -> list[MeshSample]:
    """The samples, of which there must be some."""
    if not samples:
        raise FileNotFoundError(
            f"{root} holds no meshes of split {split!r}, expected files with one of "
            f"{MESH_ENDINGS} in its folders; check root."
        )
    return samples
