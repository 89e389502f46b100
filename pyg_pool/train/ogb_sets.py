"""OGB's molecule sets, read by OGB's own class, without its traps.

Version 1.3.6 of ogb (a) reads its cache with ``torch.load``, which since torch 2.6
refuses harmless classes of PyG: they are allowed here, for the time of reading
only; (b) asks on standard input where a release file is missing, and deletes the
folder before a second download: here an incomplete folder is an error, and a download
goes to a fresh folder that is moved into place; (c) writes its cache in place: here it
appears complete or not at all; (d) asks the network for its newest version when it is
imported: here it does not.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import logging
import pickle
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyg_pool.train.molecules import ogb_module
from pyg_pool.train.scores import Task
from pyg_pool.train.splits import Split
from pyg_pool.train.store import GraphStore

__all__ = ["OGB_SETS", "OgbSet", "load_ogb"]

log = logging.getLogger(__name__)

OGB_SETS = {
    "ogbg-molhiv": "stopping HIV from multiplying; 41,127 graphs, 1 task",
    "ogbg-molpcba": "activity in 128 bioassays; 437,929 graphs, some labels missing",
    "ogbg-molbace": "inhibiting the enzyme BACE-1; 1,513 graphs, 1 task",
    "ogbg-molbbbp": "passing the blood-brain barrier; 2,039 graphs, 1 task",
    "ogbg-molclintox": "approval and toxicity of drugs; 1,477 graphs, 2 tasks",
    "ogbg-molmuv": "17 virtual screening tasks; 93,087 graphs, most labels missing",
    "ogbg-molsider": "side effects in 27 organ classes; 1,427 graphs, 27 tasks",
    "ogbg-moltox21": "toxicity in 12 assays; 7,831 graphs, some labels missing",
    "ogbg-moltoxcast": "toxicity in 617 assays; 8,576 graphs, some labels missing",
    "ogbg-molchembl": "activity in 1,310 assays of ChEMBL, most labels missing",
    "ogbg-molesol": "solubility in water; 1,128 graphs, regression",
    "ogbg-molfreesolv": "hydration free energy; 642 graphs, regression",
    "ogbg-mollipo": "lipophilicity; 4,200 graphs, regression",
}


RAW_FILES = (
    *("edge", "node-feat", "edge-feat", "graph-label"),
    *("num-node-list", "num-edge-list"),
)


@dataclass(frozen=True, eq=False)
class OgbSet:
    """What OGB says about a set, and its graphs."""

    graphs: GraphStore
    split: Split
    task: Task
    metric: str
    task_names: tuple[str, ...]
    molecules: tuple[str, ...] | None


def load_ogb(name: str, root: Path, *, download: bool) -> OgbSet:
    """Read a molecule set of OGB.

    Args:
        name: Such as "ogbg-molhiv".
        root: Folder that holds (or will hold) ``ogbg_molhiv``.
        download: Whether OGB may fetch a set that is not there.

    Returns:
        The graphs with ``y`` [G, T] float (NaN where not measured), OGB's own split,
        and the SMILES strings where the folder has them.

    Raises:
        FileNotFoundError: If files are missing and cannot be fetched; names them.
        ValueError: If the cache cannot be read.
        ImportError: If ogb is missing.
    """
    pack = ogb_module("ogb.graphproppred")
    folder = root / name.replace("-", "_")
    if folder.with_name(f"{folder.name}_pyg").exists():
        folder = folder.with_name(f"{folder.name}_pyg")
    if not folder.exists():
        _fetch(pack, name, root, folder, download=download)
    _check_folder(name, folder, pack)
    dataset, split = _construct(pack, name, folder)
    data, slices = dataset._data, dataset.slices
    graphs = GraphStore(
        data.x,
        data.edge_index,
        y=data.y.float(),
        node_ptr=slices["x"],
        edge_ptr=slices["edge_index"],
        edge_attr=data.edge_attr,
    )
    names, molecules = _mapping(folder, len(graphs))
    kind: Task = "regression" if dataset.task_type == "regression" else "binary"
    return OgbSet(graphs, split, kind, dataset.eval_metric, names, molecules)


def _meta(pack: Any, name: str) -> Any:
    """Row of OGB's own table of sets."""
    table = Path(pack.__file__).with_name("master.csv")
    with table.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    column = rows[0].index(name)
    return {row[0]: row[column] for row in rows[1:]}


def _check_folder(name: str, folder: Path, pack: Any) -> None:
    """Refuse an incomplete folder, about which ogb would ask, or which it deletes."""
    meta = _meta(pack, name)
    split = folder / "split" / meta["split"]
    wanted = [folder / f"RELEASE_v{meta['version']}.txt"]
    wanted += [folder / "raw" / f"{part}.csv.gz" for part in RAW_FILES]
    if not (split / "split_dict.pt").exists():
        wanted += [split / f"{part}.csv.gz" for part in ("train", "valid", "test")]
    missing = [str(path) for path in wanted if not path.exists()]
    if missing:
        raise FileNotFoundError(
            f"{name}: {folder} has no {', '.join(missing)}, expected a complete OGB "
            "folder; add these files, or delete the folder to have it downloaded anew."
        )


def _fetch(pack: Any, name: str, root: Path, folder: Path, *, download: bool) -> None:
    """Download a set beside its place and move it there when it is complete."""
    first = folder / "raw" / "edge.csv.gz"
    if not download:
        raise FileNotFoundError(
            f"{name}: no file {first}, expected the OGB folder there; give the root "
            "that holds it, or allow the download."
        )
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root, prefix=f".{folder.name}.") as part:
            _construct(pack, name, Path(part) / folder.name)
            (Path(part) / folder.name).replace(folder)
    except (OSError, RuntimeError) as error:
        raise FileNotFoundError(
            f"{name}: no file {first}, and the download failed ({error}); connect to "
            "the network, or give the root of a folder laid out beforehand."
        ) from error


def _construct(pack: Any, name: str, folder: Path) -> tuple[Any, Split]:
    """Build OGB's object and read its split, with unpickling kept restricted."""
    cached = (folder / "processed").exists()
    try:
        # ogb prints its progress; a library does not.
        with (
            torch.serialization.safe_globals(_safe_classes(folder)),
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()) as said,
        ):
            # ogb wraps read-only arrays of pandas, and copies them at once.
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            dataset = _dataset_class(pack)(name=name, root=str(folder.parent))
            parts = dataset.get_idx_split()
    except (pickle.UnpicklingError, EOFError, RuntimeError) as error:
        if not cached:
            raise
        raise ValueError(
            f"{name}: {folder / 'processed'} or {folder / 'split'} cannot be read "
            f"({type(error).__name__}), expected what ogb writes; delete the folder "
            "processed to have it made anew."
        ) from error
    log.debug("%s", said.getvalue())
    train, val, test = (
        torch.as_tensor(parts[k]).long().sort().values
        for k in ("train", "valid", "test")
    )
    return dataset, Split(train, val, test, dataset.meta_info["split"])


def _safe_classes(folder: Path) -> list[Any]:
    """Exactly the classes in OGB's files that torch does not know."""
    from torch_geometric.data.data import Data, DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    classes: list[Any] = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]
    if any(folder.glob("split/*/split_dict.pt")):
        # Such a file holds NumPy arrays of int64, from before NumPy 2 or after.
        build = np.empty(0).__reduce__()[0]
        modules = ("numpy.core.multiarray", "numpy._core.multiarray")
        classes += [(build, f"{module}._reconstruct") for module in modules]
        classes += [np.ndarray, np.dtype, type(np.dtype(np.int64))]
    return classes


def _dataset_class(pack: Any) -> Any:
    """OGB's class, with a cache that appears whole or not at all."""

    class WholeCache(pack.PygGraphPropPredDataset):
        part: str | None = None

        @property
        def processed_dir(self) -> str:
            return self.part or str(Path(self.root) / "processed")

        def _process(self) -> None:
            # PyG's own method would also unpickle two files beside the cache.
            target = Path(self.processed_paths[0])
            if target.exists():
                return
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as part:
                self.part = part
                try:
                    self.process()
                finally:
                    self.part = None
                (Path(part) / target.name).replace(target)

    return WholeCache


def _mapping(folder: Path, size: int) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """Names of the tasks and the SMILES strings, if the folder has them."""
    path = folder / "mapping" / "mol.csv.gz"
    if not path.exists():
        return (), None
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    head = rows[0]
    if "smiles" not in head or len(rows) != size + 1:
        log.warning(
            "%s has %d rows for %d graphs; molecules cannot be drawn",
            path,
            len(rows) - 1,
            size,
        )
        return (), None
    column = head.index("smiles")
    names = tuple(h for h in head if h not in ("smiles", "mol_id"))
    return names, tuple(row[column] for row in rows[1:])


def as_array(values: Tensor) -> np.ndarray:
    """Give OGB's Evaluator what it takes."""
    return values.detach().cpu().float().numpy()


def evaluate(name: str, y_true: Tensor, y_pred: Tensor) -> float:
    """Score by OGB's Evaluator; NaN where its metric is not defined."""
    evaluator = ogb_module("ogb.graphproppred").Evaluator(name)
    try:
        found = evaluator.eval({"y_true": as_array(y_true), "y_pred": as_array(y_pred)})
    except RuntimeError as error:
        if "labeled data" not in str(error):
            raise
        log.warning("%s: %s is undefined: one class only", name, evaluator.eval_metric)
        return float("nan")
    return float(found[evaluator.eval_metric])
