"""Sets of the TU Dortmund collection, from their text files.

PyG's reader parses the text. Its ``TUDataset`` object is not built: PyG falls back to
unrestricted unpickling where its cache does not load. Our cache is a ``.npz`` file
without pickle.
"""

from __future__ import annotations

import logging
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch_geometric.data import download_url, extract_zip
from torch_geometric.datasets import TUDataset
from torch_geometric.io import read_tu_data

from pyg_pool.train.store import GraphStore

__all__ = ["TU_SETS", "TuSet", "is_laid_out", "load_tu"]

log = logging.getLogger(__name__)

CACHE = "pyg_pool_v1.npz"

_CELLS = {
    "MCF-7": "breast cancer",
    "MOLT-4": "leukaemia",
    "NCI-H23": "lung cancer",
    "OVCAR-8": "ovarian cancer",
    "P388": "mouse leukaemia",
    "PC-3": "prostate cancer",
    "SF-295": "brain cancer",
    "SN12C": "kidney cancer",
    "SW-620": "colon cancer",
    "UACC257": "melanoma",
    "Yeast": "yeast",
}
_TOX21 = (
    *("AhR", "AR", "AR-LBD", "ARE", "aromatase", "ATAD5", "ER", "ER-LBD"),
    *("HSE", "MMP", "p53", "PPAR-gamma"),
)
_MD17 = (
    *("aspirin", "benzene", "ethanol", "malonaldehyde", "naphthalene"),
    *("salicylic_acid", "toluene", "uracil"),
)
_TEMPORAL = ("dblp", "facebook", "highschool", "infectious", "mit", "tumblr")

TU_SETS = {
    "MUTAG": "mutagenic nitro compounds; 188 graphs, 2 classes",
    "PTC_MR": "carcinogenic for male rats; 344 graphs, 2 classes",
    "PTC_FR": "carcinogenic for female rats; 2 classes",
    "PTC_MM": "carcinogenic for male mice; 2 classes",
    "PTC_FM": "carcinogenic for female mice; 2 classes",
    "NCI1": "active against lung cancer cells; 4,110 graphs, 2 classes",
    "NCI109": "active against ovarian cancer cells; 4,127 graphs, 2 classes",
    "Mutagenicity": "mutagenic molecules; 4,337 graphs, 2 classes",
    "AIDS": "active against HIV; 2,000 graphs, 2 classes",
    "BZR": "ligands of the benzodiazepine receptor; 2 classes",
    "BZR_MD": "BZR as complete graphs with distances; 2 classes",
    "COX2": "inhibitors of cyclooxygenase-2; 2 classes",
    "COX2_MD": "COX2 as complete graphs with distances; 2 classes",
    "DHFR": "inhibitors of dihydrofolate reductase; 2 classes",
    "DHFR_MD": "DHFR as complete graphs with distances; 2 classes",
    "ER_MD": "ligands of the oestrogen receptor; 2 classes",
    "FRANKENSTEIN": "mutagenic molecules with picture attributes; 2 classes",
    **{k: f"active against {v} cells; 2 classes" for k, v in _CELLS.items()},
    **{f"{k}H": f"{k} with hydrogen atoms; 2 classes" for k in _CELLS},
    **{
        f"Tox21_{assay}_{part}": f"toxicity, assay {assay}, {part} part; 2 classes"
        for assay in _TOX21
        for part in ("training", "testing", "evaluation")
    },
    "QM9": "quantum properties of small molecules; regression",
    "alchemy_full": "quantum properties of molecules; regression",
    **{f"ZINC_{k}": f"solubility, {k} part; regression" for k in ("train", "val")},
    **{f"ZINC_{k}": f"solubility, {k} part; regression" for k in ("test", "full")},
    **{name: f"energies of {name} in motion; regression" for name in _MD17},
    "PROTEINS": "is a protein an enzyme; 1,113 graphs, 2 classes",
    "PROTEINS_full": "PROTEINS with 29 node attributes; 2 classes",
    "ENZYMES": "top class of an enzyme; 600 graphs, 6 classes",
    "DD": "is a protein an enzyme, nodes are residues; 1,178 graphs, 2 classes",
    "KKI": "brain networks; 2 classes",
    "OHSU": "brain networks; 2 classes",
    "Peking_1": "brain networks; 2 classes",
    "MSRC_9": "pictures as graphs of segments; 221 graphs, 8 classes",
    "MSRC_21": "pictures as graphs of segments; 20 classes",
    "MSRC_21C": "pictures as graphs of segments; 20 classes",
    "Letter-high": "letters drawn with strong distortion; 15 classes",
    "Letter-med": "letters drawn with medium distortion; 15 classes",
    "Letter-low": "letters drawn with weak distortion; 15 classes",
    "Fingerprint": "skeletons of fingerprints",
    "FIRSTMM_DB": "objects as point clouds; 11 classes",
    "Cuneiform": "cuneiform signs; 30 classes",
    "COIL-DEL": "objects seen from many sides; 100 classes",
    "COIL-RAG": "objects as graphs of regions; 100 classes",
    "IMDB-BINARY": "co-actors of a film's cast, by genre; 1,000 graphs, 2 classes",
    "IMDB-MULTI": "co-actors of a film's cast, by genre; 1,500 graphs, 3 classes",
    "REDDIT-BINARY": "threads of four forums, by type; 2,000 graphs, 2 classes",
    "REDDIT-MULTI-5K": "threads of five forums; 5 classes",
    "REDDIT-MULTI-12K": "threads of eleven forums; 11 classes",
    "COLLAB": "co-authors of a physicist, by field; 5,000 graphs, 3 classes",
    "DBLP_v1": "papers and what they cite, by field; 2 classes",
    "TWITTER-Real-Graph-Partial": "words of tweets, by mood; 2 classes",
    "github_stargazers": "users who follow a project; 2 classes",
    "deezer_ego_nets": "friends of users of a music service; 2 classes",
    "twitch_egos": "friends of users of a streaming service; 2 classes",
    "reddit_threads": "is a thread a discussion; 2 classes",
    **{f"{k}_ct1": f"spreading in {k} networks; 2 classes" for k in _TEMPORAL},
    **{f"{k}_ct2": f"spreading in {k} networks; 2 classes" for k in _TEMPORAL},
    "SYNTHETIC": "random graphs with attributes; 2 classes",
    "SYNTHETICnew": "random graphs with attributes; 2 classes",
    "Synthie": "random graphs with attributes; 4 classes",
    "COLORS-3": "count green nodes; 11 classes",
    "TRIANGLES": "count triangles; 10 classes",
}
"""Sets of the collection by name; others load once their files are laid out."""


@dataclass(frozen=True, eq=False)
class TuSet:
    """Graphs of a TU set and the labels its classes have in the files."""

    graphs: GraphStore
    class_names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Raw:
    """The tensors of the text files, before any choice of features."""

    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor
    y: Tensor
    node_ptr: Tensor
    edge_ptr: Tensor
    widths: Tensor  # node attributes, edge attributes: leading columns


def is_laid_out(name: str, root: Path) -> bool:
    """Whether the folder has text files of a set of this name."""
    return (root / name / "raw" / f"{name}_A.txt").is_file()


def load_tu(
    name: str,
    root: Path,
    *,
    use_node_attr: bool = False,
    use_edge_attr: bool = False,
    node_features: Literal["auto", "degree", "constant"] = "auto",
    max_degree: int = 64,
    download: bool = True,
) -> TuSet:
    """Read a set of the TU collection.

    Args:
        name: Name of the set, such as "PROTEINS".
        root: Folder that holds (or will hold) ``PROTEINS/raw/PROTEINS_A.txt``.
        use_node_attr: Put measured node attributes before the one-hot node labels.
        use_edge_attr: The same for edges.
        node_features: "auto" takes those of the set, and degrees where it has none.
            "degree" is a one-hot code of the number of edges that enter a node, with
            one column for all numbers from ``max_degree`` on. "constant" is 1.
        max_degree: Cap of the degree code.
        download: Whether a missing set may be fetched.

    Returns:
        Graphs in the order of the files. ``y`` is int64 [G] for classes, and float
        [G, T] where the set has graph attributes instead.

    Raises:
        FileNotFoundError: If files are missing and cannot be fetched; names them.
        ValueError: If the files contradict each other.
    """
    folder = root / name / "raw"
    if not is_laid_out(name, root):
        _fetch(name, folder, download=download)
    raw = _read(name, folder)
    node_attr, edge_attr = raw.widths.tolist()
    x = raw.x if use_node_attr else raw.x[:, node_attr:]
    edges = raw.edge_attr if use_edge_attr else raw.edge_attr[:, edge_attr:]
    if node_features == "constant":
        x = torch.ones(raw.x.size(0), 1)
    elif node_features == "degree" or x.size(1) == 0:
        if node_features == "auto" and node_attr > 0:
            log.warning("%s has node attributes only; see use_node_attr", name)
        x = _degree_code(raw, max_degree)
    graphs = GraphStore(
        x.contiguous(),
        raw.edge_index,
        y=raw.y,
        node_ptr=raw.node_ptr,
        edge_ptr=raw.edge_ptr,
        edge_attr=edges.contiguous() if edges.size(1) > 0 else None,
    )
    names = () if raw.y.is_floating_point() else _class_names(name, folder)
    return TuSet(graphs, names)


def _degree_code(raw: _Raw, cap: int) -> Tensor:
    """One-hot number of entering edges; the widest column that occurs is the last."""
    shift = raw.node_ptr[:-1].repeat_interleave(raw.edge_ptr.diff())
    degree = torch.bincount(raw.edge_index[1] + shift, minlength=raw.x.size(0))
    return functional.one_hot(degree.clamp(max=cap)).float()


def _class_names(name: str, folder: Path) -> tuple[str, ...]:
    """Labels as they stand in the file, in the order of the class numbers."""
    text = (folder / f"{name}_graph_labels.txt").read_text(encoding="utf-8")
    return tuple(str(v) for v in sorted({int(float(v)) for v in text.split()}))


def _fetch(name: str, folder: Path, *, download: bool) -> None:
    """Download a set beside its place and move it there when it is complete."""
    first = folder / f"{name}_A.txt"
    if not download:
        raise FileNotFoundError(
            f"{name}: no file {first}, expected the text files of the TU collection "
            "there; give the root that holds them, or allow the download."
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as part:
            archive = download_url(f"{TUDataset.url}/{name}.zip", part, log=False)
            extract_zip(archive, part, log=False)
            (Path(part) / name).replace(folder)
    except (OSError, zipfile.BadZipFile) as error:
        raise FileNotFoundError(
            f"{name}: no file {first}, and the download failed ({error}); connect to "
            "the network, or give the root of a folder laid out beforehand."
        ) from error


def _read(name: str, folder: Path) -> _Raw:
    """Read our cache if it fits the text files, else the text, and cache it."""
    cache = folder.parent / "processed" / CACHE
    files = sorted(folder.glob(f"{name}_*.txt"))
    stamp = np.array([[f.stat().st_size, f.stat().st_mtime_ns] for f in files])
    cached = _read_cache(cache, stamp)
    if cached is not None:
        return cached
    raw = _parse(name, folder)
    arrays = {key: value.numpy() for key, value in vars(raw).items()}
    try:
        cache.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache.parent, prefix=".") as part:
            np.savez(Path(part) / CACHE, stamp=stamp, **arrays)
            (Path(part) / CACHE).replace(cache)
    except OSError as error:
        log.info("%s: the cache %s cannot be written (%s)", name, cache, error)
    return raw


def _read_cache(cache: Path, stamp: np.ndarray) -> _Raw | None:
    """Read the cache; a missing, broken or outdated one counts as none."""
    try:
        with np.load(cache, allow_pickle=False) as file:
            if not np.array_equal(file["stamp"], stamp):
                return None
            fields = _Raw.__dataclass_fields__
            return _Raw(**{key: torch.from_numpy(file[key]) for key in fields})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        log.info("cache %s is made anew (%s)", cache, error)
        return None


def _parse(name: str, folder: Path) -> _Raw:
    """Parse the text files by PyG's reader."""
    _check_files(name, folder)
    data, slices, sizes = read_tu_data(str(folder), name)
    if data.x is None:
        counts = torch.tensor(data._num_nodes)
        node_ptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        data.x = torch.empty(int(node_ptr[-1]), 0)
    else:
        node_ptr = slices["x"]
    num_graphs = node_ptr.numel() - 1
    edge_ptr = slices["edge_index"]
    # PyG's borders stop at the last graph that has an edge.
    edge_ptr = torch.cat(
        [edge_ptr, edge_ptr[-1:].expand(num_graphs + 1 - len(edge_ptr))]
    )
    y = data.y
    if y is None or y.size(0) != num_graphs:
        given = "no graph labels" if y is None else f"{y.size(0)} graph labels"
        raise ValueError(
            f"{name}: {folder} has {given} for {num_graphs} graphs, expected one per "
            f"graph; check {name}_graph_labels.txt."
        )
    if y.is_floating_point():
        y = y.view(num_graphs, -1)
    attr = data.edge_attr
    if attr is None:
        attr = torch.empty(data.edge_index.size(1), 0)
    widths = [sizes["num_node_attributes"], sizes["num_edge_attributes"]]
    return _Raw(
        data.x.float(),
        data.edge_index.contiguous(),
        attr.float(),
        y,
        node_ptr,
        edge_ptr,
        torch.tensor(widths),
    )


def _check_files(name: str, folder: Path) -> None:
    """Say which file is missing before PyG's reader stumbles."""
    targets = [folder / f"{name}_graph_{what}.txt" for what in ("labels", "attributes")]
    needed = [folder / f"{name}_A.txt", folder / f"{name}_graph_indicator.txt"]
    missing = [str(path) for path in needed if not path.is_file()]
    if not any(path.is_file() for path in targets):
        missing.append(str(targets[0]))
    if missing:
        raise FileNotFoundError(
            f"{name}: {folder} has no {', '.join(missing)}, expected the text files "
            "of the TU collection; add them, or delete the folder to download it anew."
        )
