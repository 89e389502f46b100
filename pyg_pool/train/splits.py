"""Splits of a set of graphs: shares, folds, and files of fixed indices.

All of them are stratified where the targets are classes, and depend on nothing but
the labels and a seed. Written without scikit-learn, so that a new version of it
cannot move graphs between training and test.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["Split", "holdout", "kfold_splits", "read_splits", "share_split"]


@dataclass(frozen=True, eq=False)
class Split:
    """One division of a data set.

    Shapes:
        train, val, test: int64 indices, ascending, disjoint.
    """

    train: Tensor
    val: Tensor
    test: Tensor
    name: str = "split"

    def __getitem__(self, part: str) -> Tensor:
        """Give a part by its name.

        Raises:
            ValueError: If the name is none of train, val, test.
        """
        if part not in ("train", "val", "test"):
            raise ValueError(
                f"Split got part {part!r}, expected 'train', 'val' or 'test'; "
                "use one of these names."
            )
        chosen: Tensor = getattr(self, part)
        return chosen

    def __repr__(self) -> str:
        sizes = "/".join(str(len(part)) for part in (self.train, self.val, self.test))
        return f"Split({self.name!r}, train/val/test = {sizes})"


def strata(y: Tensor) -> np.ndarray:
    """Classes to balance: those of a class vector, else a single one."""
    if y.dim() == 1 and not y.is_floating_point():
        return y.cpu().numpy()
    return np.zeros(y.size(0), dtype=np.int64)


def holdout(
    index: Tensor, y: Tensor, *, share: float, seed: int
) -> tuple[Tensor, Tensor]:
    r"""Take a seeded, stratified share out of some graphs.

    Args:
        index: The graphs to divide.
        y: Targets of the whole set.
        share: Part of ``index`` to take out, 0 <= share < 1.
        seed: Same seed, same result.

    Returns:
        The rest and the part taken out, both ascending. The part has
        ``round(share * len(index))`` graphs (at least one where share > 0 and two
        graphs are there); each class gives its share, rounded down, and those with
        the largest remainders one more.

    Shapes:
        index: [n] int64; y: [G] int64 (classes) or [G, T].

    Raises:
        ValueError: If the share is outside its range.

    Example:
        >>> rest, part = holdout(torch.arange(6), torch.tensor([0, 0, 0, 0, 1, 1]),
        ...                      share=0.5, seed=3)
        >>> len(rest), len(part), int((part >= 4).sum())
        (3, 3, 1)
    """
    if not 0 <= share < 1:
        raise ValueError(
            f"holdout got share={share}, expected 0 <= share < 1; "
            "give the part to take out, such as 0.1."
        )
    members = np.sort(index.cpu().numpy())
    size = round(share * len(members))
    if share > 0 and len(members) > 1:
        size = min(max(size, 1), len(members) - 1)
    labels = strata(y)[members]
    rng = np.random.default_rng(seed)
    classes, counts = np.unique(labels, return_counts=True)
    exact = counts * (size / max(len(members), 1))
    take = np.floor(exact + 1e-9).astype(np.int64)
    # Stable, so that among equal remainders the smaller class number wins.
    order = np.argsort(take - exact, kind="stable")
    take[order[: size - int(take.sum())]] += 1
    chosen = [
        rng.permutation(members[labels == c])[:k]
        for c, k in zip(classes, take, strict=True)
    ]
    part = np.sort(np.concatenate(chosen)) if chosen else members
    rest = np.setdiff1d(members, part, assume_unique=True)
    return torch.from_numpy(rest), torch.from_numpy(part)


def share_split(
    y: Tensor, *, val_share: float = 0.1, test_share: float = 0.1, seed: int = 0
) -> Split:
    """Divide a whole set into stratified train, validation and test parts.

    Example:
        >>> share_split(torch.tensor([0, 1] * 10), seed=5)
        Split('seed5', train/val/test = 16/2/2)
    """
    everything = torch.arange(y.size(0))
    rest, test = holdout(everything, y, share=test_share, seed=seed)
    inner = min(val_share / (1 - test_share), 0.999)
    train, val = holdout(rest, y, share=inner, seed=seed + 1)
    return Split(train, val, test, f"seed{seed}")


def kfold_splits(
    y: Tensor, *, folds: int, val_share: float = 0.1, seed: int = 0
) -> tuple[Split, ...]:
    r"""Stratified folds: each graph is in exactly one test part.

    From the graphs outside a test part, a stratified share becomes its validation
    part. Class counts of the test parts differ by at most one, and so do their sizes.

    Args:
        y: Targets of the whole set.
        folds: Number of folds, from 2 to the number of graphs.
        val_share: Part of the remaining graphs used for validation.
        seed: Same seed, same folds.

    Shapes:
        y: [G] int64 (classes) or [G, T].

    Raises:
        ValueError: If there are fewer graphs than folds.

    Example:
        >>> kfold_splits(torch.tensor([0, 0, 0, 0, 1, 1]), folds=2, seed=3)[0]
        Split('fold1of2', train/val/test = 2/1/3)
    """
    if not 2 <= folds <= y.size(0):
        raise ValueError(
            f"kfold_splits got folds={folds}, expected 2 to {y.size(0)} "
            "(the number of graphs); choose a number in between, such as 10."
        )
    labels = strata(y)
    rng = np.random.default_rng(seed)
    fold = np.empty(len(labels), dtype=np.int64)
    dealt = 0
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        # Going on where the last class stopped keeps the fold sizes equal too.
        fold[members] = (dealt + np.arange(len(members))) % folds
        dealt += len(members)
    result = []
    for k in range(folds):
        rest = torch.from_numpy(np.flatnonzero(fold != k))
        train, val = holdout(rest, y, share=val_share, seed=seed + 1 + k)
        test = torch.from_numpy(np.flatnonzero(fold == k))
        result.append(Split(train, val, test, f"fold{k + 1}of{folds}"))
    return tuple(result)


def read_splits(
    path: str | Path, y: Tensor, *, val_share: float = 0.1, seed: int = 0
) -> tuple[Split, ...]:
    r"""Read fixed splits from a ``.json`` or ``.json.gz`` file.

    The file holds a list of ``{"train": [...], "val": [...], "test": [...]}`` with
    indices from 0, or an object that has this list under ``"folds"``. Where a fold
    has no ``"val"``, a stratified share of its train part is taken.

    Args:
        path: The file.
        y: Targets of the whole set.
        val_share: Share of train for validation where the file has none.
        seed: Seed of that share.

    Raises:
        ValueError: If the file is no such list, or its indices do not fit the set.
        FileNotFoundError: If there is no such file.
    """
    path = Path(path)
    entries = _read_json(path)
    if isinstance(entries, dict):
        entries = entries.get("folds")
    if not isinstance(entries, list) or not entries:
        raise ValueError(
            f"split file {path} holds {type(entries).__name__}, expected a list of "
            'folds {"train": [...], "test": [...]}; write one object per fold.'
        )
    return tuple(
        _fold(entry, k, path=path, y=y, val_share=val_share, seed=seed)
        for k, entry in enumerate(entries)
    )


def _read_json(path: Path) -> Any:
    """Parse the file, and say which file it was where that fails."""
    if not path.is_file():
        raise FileNotFoundError(
            f"split file {path} is not there, expected a .json or .json.gz file; "
            "check the path."
        )
    try:
        with path.open("rb") as stream:
            packed = stream.read(2) == b"\x1f\x8b"
        text = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
        return json.loads(text)
    except (OSError, EOFError, ValueError) as error:
        raise ValueError(
            f"split file {path} cannot be read ({error}), expected JSON text, "
            "gzipped or not; write it again."
        ) from error


def _fold(
    entry: Any, k: int, *, path: Path, y: Tensor, val_share: float, seed: int
) -> Split:
    """Check one fold and fill in its validation part."""
    where = f"split file {path}, fold {k}"
    if not isinstance(entry, dict) or not {"train", "test"} <= set(entry):
        keys = sorted(entry) if isinstance(entry, dict) else type(entry).__name__
        raise ValueError(
            f"{where} has {keys}, expected the keys 'train' and 'test' (and 'val'); "
            "write each fold as one object."
        )
    parts = {}
    for name in ("train", "val", "test"):
        if entry.get(name) is not None:
            parts[name] = _indices(entry[name], f"{where}, {name}", y.size(0))
    seen: dict[int, str] = {}
    for name, part in parts.items():
        twice = next((i for i in part.tolist() if i in seen), None)
        if twice is not None:
            raise ValueError(
                f"{where} has graph {twice} in {seen[twice]} and {name}, expected "
                "disjoint parts; remove it from one of them."
            )
        seen.update(dict.fromkeys(part.tolist(), name))
    if "val" not in parts:
        train, val = holdout(parts["train"], y, share=val_share, seed=seed + 1 + k)
        parts.update(train=train, val=val)
    return Split(parts["train"], parts["val"], parts["test"], f"fold{k + 1}")


def _indices(values: Any, where: str, size: int) -> Tensor:
    """Turn a list of JSON numbers into ascending indices."""
    good = isinstance(values, list) and all(type(i) is int for i in values)
    if not good or not values:
        raise ValueError(
            f"{where} is {str(values)[:40]}, expected a list of whole numbers, not "
            "empty; write the indices of the graphs."
        )
    low, high = min(values), max(values)
    if low < 0 or high >= size:
        raise ValueError(
            f"{where} has indices from {low} to {high}, expected 0 to {size - 1} for "
            f"{size} graphs; check that the file belongs to this set."
        )
    if len(set(values)) != len(values):
        raise ValueError(
            f"{where} names {len(values) - len(set(values))} graphs twice, expected "
            "each once; remove the repeats."
        )
    return torch.tensor(sorted(values), dtype=torch.int64)
