"""Graphs in binary files: Parquet, Arrow, NumPy, SciPy, torch, OGB folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pyg_pool.coarsen.edge_text import Edges
from pyg_pool.coarsen.text import read_edge_list
from pyg_pool.errors import require

__all__ = [
    "edges_of",
    "names_of",
    "read_numpy",
    "read_ogb",
    "read_scipy",
    "read_table",
    "read_torch",
]

Array = NDArray[Any]
SOURCES = ("src", "source", "from", "row", "u", "node_1", "node1")
TARGETS = ("dst", "target", "to", "col", "v", "node_2", "node2")
WEIGHTS = ("weight", "w", "value")
# What loaders raise at damaged bytes: the parsers below them know no common error.
DAMAGES = Exception


def read_table(path: Any, columns: tuple[str, ...] | None = None) -> Edges:
    """Parquet, Arrow or Feather: a file, a folder (partitions too), or a pattern.

    Args:
        path: Where it is.
        columns: Names of source, target and maybe weight; ``None`` finds usual ones.
    """
    dataset = require("pyarrow.dataset", "coarsen")
    arrow = require("pyarrow", "coarsen")
    path = Path(path)
    files: Any = str(path)
    if any(sign in path.name for sign in "*?["):
        files = sorted(str(each) for each in path.parent.glob(path.name))
        if not files:
            raise FileNotFoundError(f"no file fits {path}; check the pattern.")
    elif not path.exists():
        raise FileNotFoundError(
            f"read_table got {str(path)!r}, expected an existing file or folder; "
            f"check the path."
        )
    first = files[0] if isinstance(files, list) else files
    form = "feather" if Path(first).suffix in (".arrow", ".feather") else "parquet"
    try:
        table = dataset.dataset(files, format=form, partitioning="hive")
        names = names_of(path, table.schema.names, columns)
        data = table.to_table(columns=list(names)).combine_chunks()
        parts = [data.column(name).to_numpy() for name in names]
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} cannot be read as {form} ({error}), expected a complete file; "
            f"write it again."
        ) from error
    return edges_of(path, names, parts)


def edges_of(path: Path, names: tuple[str, ...], parts: list[Array]) -> Edges:
    """Edges of columns, checked."""
    for name, part in zip(names[:2], parts[:2], strict=True):
        if part.dtype.kind not in "iuOU":
            raise ValueError(
                f"{path} column {name!r} holds {part.dtype}, expected ids, integers or "
                f"text, without gaps; cast it."
            )
    if len(parts) > 2 and parts[2].dtype.kind not in "iuf":
        raise ValueError(
            f"{path} column {names[2]!r} holds {parts[2].dtype}, expected weights; "
            f"name a column of numbers."
        )
    ends = parts[:2]
    if any(part.dtype.kind in "OU" for part in ends):
        pairs = zip(names, ends, strict=False)
        ends = [_as_text(path, name, part) for name, part in pairs]
    return Edges(ends[0], ends[1], parts[2] if len(parts) > 2 else None)


def _as_text(path: Path, name: str, part: Array) -> Array:
    """Ids as text; raises where some are missing or are no text."""
    words = [
        word.decode("utf-8", "replace") if isinstance(word, bytes) else word
        for word in part.tolist()
    ]
    for row, word in enumerate(words):
        if word is None or word == "" or (isinstance(word, str) and "\ufffd" in word):
            raise ValueError(
                f"{path} column {name!r} holds {part[row]!r} in row {row + 1}, "
                f"expected an id of text or a number; mend or remove the row."
            )
    return np.array(words, dtype=str)


def names_of(
    path: Path, names: list[str], columns: tuple[str, ...] | None
) -> tuple[str, ...]:
    """Names of the columns to read."""
    if columns is not None:
        missing = [name for name in columns if name not in names]
        if missing or len(columns) not in (2, 3):
            raise ValueError(
                f"{path} has the columns {names}, expected {list(columns)}; name the "
                f"source, the target and maybe the weight column."
            )
        return columns
    lower = {name.lower(): name for name in names}
    source = next((lower[name] for name in SOURCES if name in lower), None)
    target = next((lower[name] for name in TARGETS if name in lower), None)
    if source is None or target is None:
        raise ValueError(
            f"{path} has the columns {names}, expected 'src' and 'dst'; pass "
            f"columns=('…', '…')."
        )
    weight = next((lower[name] for name in WEIGHTS if name in lower), None)
    return (source, target) if weight is None else (source, target, weight)


def read_scipy(path: Path) -> Edges:
    """``.npz``: a SciPy sparse matrix, or arrays ``row``, ``col`` or ``edge_index``."""
    from scipy.sparse import load_npz

    try:
        # Opened here, as NumPy leaves a damaged file open.
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            if "format" not in file.files:
                return _pairs(path, dict(file.items()))
        with path.open("rb") as raw:
            coo = load_npz(raw).tocoo()
    except DAMAGES as error:
        raise ValueError(
            f"{path} cannot be read ({error}), expected a SciPy sparse matrix or edge "
            f"pairs; write it again."
        ) from error
    if coo.shape[0] != coo.shape[1]:
        raise ValueError(
            f"{path} holds a matrix of shape {list(coo.shape)}, expected a square one; "
            f"write the adjacency."
        )
    return _edges(path, coo.row, coo.col, coo.data, coo.shape[0])


def _edges(path: Path, row: Any, col: Any, weight: Any, size: int | None) -> Edges:
    """Edges with ids from 0 on, checked against the number of nodes."""
    row, col = np.asarray(row), np.asarray(col)
    ends = (row, col)
    wrong = row.shape != col.shape or any(e.dtype.kind not in "iu" for e in ends)
    if wrong or (row.size and min(row.min(), col.min()) < 0):
        raise ValueError(
            f"{path} holds ends of shapes {list(row.shape)} and {list(col.shape)} and "
            f"dtype {row.dtype}, expected integers >= 0 of one length; write it again."
        )
    if size is not None and row.size and max(row.max(), col.max()) >= size:
        raise ValueError(
            f"{path} names node {max(row.max(), col.max())}, expected ids below "
            f"{size}; write it again."
        )
    values = None if weight is None else np.asarray(weight).ravel()
    if values is not None and values.shape != row.shape:
        raise ValueError(
            f"{path} holds {values.size} weights for {row.size} edges, expected one "
            f"each; write it again."
        )
    if values is not None and values.dtype.kind not in "fiub":
        raise ValueError(
            f"{path} holds weights of dtype {values.dtype}, expected numbers; write it "
            f"again."
        )
    return Edges(row.astype(np.int64), col.astype(np.int64), values, size)


def _pairs(path: Path, arrays: dict[str, Array]) -> Edges:
    """Edges from named arrays."""
    if "edge_index" in arrays:
        pair = _two_rows(path, arrays["edge_index"])
    elif "row" in arrays and "col" in arrays:
        pair = (arrays["row"], arrays["col"])
    else:
        raise ValueError(
            f"{path} holds the arrays {sorted(arrays)}, expected 'edge_index', or "
            f"'row' and 'col'; write it again."
        )
    size = int(arrays["num_nodes"]) if "num_nodes" in arrays else None
    return _edges(path, *pair, arrays.get("edge_weight"), size)


def _two_rows(path: Path, array: Array) -> tuple[Array, Array]:
    """The two ends of ``[2, E]`` or ``[E, 2]`` pairs."""
    if array.ndim == 2 and array.shape[0] == 2:
        return array[0], array[1]
    if array.ndim == 2 and array.shape[1] == 2:
        return array[:, 0], array[:, 1]
    raise ValueError(
        f"{path} holds an array of shape {list(array.shape)}, expected pairs of shape "
        f"[2, E] or [E, 2]; write it again."
    )


def read_numpy(path: Path) -> Edges:
    """``.npy``: pairs of ids, ``[2, E]`` or ``[E, 2]``."""
    try:
        with path.open("rb") as raw:
            array = np.load(raw, allow_pickle=False)
    except DAMAGES as error:
        raise ValueError(
            f"{path} cannot be read ({error}), expected an array of pairs; write it "
            f"again."
        ) from error
    return _edges(path, *_two_rows(path, array), None, None)


def read_torch(path: Path) -> Edges:
    """``.pt``: a PyG ``Data``, a dict of tensors, or ``(edge_index[, weight])``.

    Loaded without running code from the file.
    """
    from torch_geometric import data as parts

    names = (
        "Data",
        "data.DataEdgeAttr",
        "data.DataTensorAttr",
        "storage.GlobalStorage",
    )
    known = []
    for name in names:
        thing: Any = parts
        for word in name.split("."):
            thing = getattr(thing, word, None)
        known += [] if thing is None else [thing]
    try:
        with torch.serialization.safe_globals(known):
            found = torch.load(path, map_location="cpu", weights_only=True)
        found = found.to_dict() if hasattr(found, "to_dict") else found
    except DAMAGES as error:
        raise ValueError(
            f"{path} cannot be read safely ({str(error)[:200]}), expected a PyG Data "
            f"or tensors; save it with torch.save(data.to_dict(), path)."
        ) from error
    if isinstance(found, dict):
        index, weight = found.get("edge_index"), found.get("edge_weight")
        size = found.get("num_nodes")
        if size is None and isinstance(found.get("x"), torch.Tensor):
            size = found["x"].size(0)
    else:
        pair = found if isinstance(found, (tuple, list)) else (found,)
        index, weight = pair[0] if pair else None, pair[1] if len(pair) > 1 else None
        size = None
    if not isinstance(index, torch.Tensor) or index.dim() != 2 or index.size(0) != 2:
        raise ValueError(
            f"{path} holds {type(found).__name__} without edge_index [2, E], expected "
            f"a PyG Data or (edge_index, weight); write it again."
        )
    values = weight.numpy() if isinstance(weight, torch.Tensor) else None
    row, col = index.numpy()
    return _edges(path, row, col, values, None if size is None else int(size))


def read_ogb(folder: Path) -> Edges:
    """A raw OGB folder of one graph: ``edge.csv.gz`` and ``num-node-list.csv.gz``."""
    raw = folder / "raw" if (folder / "raw").is_dir() else folder
    edges, sizes = raw / "edge.csv.gz", raw / "num-node-list.csv.gz"
    if not edges.is_file() or not sizes.is_file():
        raise FileNotFoundError(
            f"{folder} holds neither edge.csv.gz with num-node-list.csv.gz nor Parquet "
            f"files; name a folder of one of these kinds."
        )
    import gzip

    counts = gzip.decompress(sizes.read_bytes()).split()
    if len(counts) != 1 or not counts[0].isdigit():
        raise ValueError(
            f"{folder} holds {len(counts)} graphs, expected one; use the Coarsen "
            f"transform for sets of graphs."
        )
    found = read_edge_list(edges, weighted=False)
    return _edges(edges, found.row, found.col, None, int(counts[0]))
