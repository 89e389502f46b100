"""A graph from a file: which reader, which names of nodes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.build import Duplicates, graph_from_edges
from pyg_pool.coarsen.edge_text import Edges
from pyg_pool.coarsen.graph import Graph
from pyg_pool.coarsen.streams import inner_suffix
from pyg_pool.coarsen.text import read_edge_list, read_gr, read_metis, read_mtx
from pyg_pool.errors import check_choice

__all__ = ["FORMATS", "content_hash", "format_of", "read_graph"]

Array = NDArray[Any]
Format = Literal[
    "auto", "edges", "metis", "gr", "mtx", "parquet", "npz", "npy", "pt", "ogb"
]
FORMATS = ("edges", "metis", "gr", "mtx", "parquet", "npz", "npy", "pt", "ogb")
SUFFIXES = {
    ".csv": "edges",
    ".tsv": "edges",
    ".txt": "edges",
    ".edges": "edges",
    ".el": "edges",
    ".graph": "metis",
    ".metis": "metis",
    ".gr": "gr",
    ".mtx": "mtx",
    ".parquet": "parquet",
    ".arrow": "parquet",
    ".feather": "parquet",
    ".npz": "npz",
    ".npy": "npy",
    ".pt": "pt",
}


def read_graph(
    path: str | os.PathLike[str],
    *,
    format: Format = "auto",
    weighted: bool | None = None,
    columns: tuple[str, ...] | None = None,
    duplicates: Duplicates = "sum",
) -> Graph:
    r"""Reads a graph from a file or folder; edges are undirected.

    Args:
        path: Edge list (``.csv .tsv .txt``, SNAP comments), METIS ``.graph``, DIMACS or
            PACE ``.gr``, Matrix Market ``.mtx``, each also packed as ``.gz .bz2 .xz
            .zst``; Parquet, Arrow or Feather (file, folder, pattern); ``.npz``,
            ``.npy``, ``.pt``; a raw OGB folder.
        format: One of ``"edges", "metis", "gr", "mtx", "parquet", "npz", "npy", "pt",
            "ogb"``; ``"auto"`` goes by the name.
        weighted: Whether edges have weights; ``None``: if the file holds some, which an
            edge list does where its third column is a number.
        columns: Names of the columns of a table, or of an edge list with a header:
            source, target, maybe weight.
        duplicates: How equal edges are merged, see :func:`coarsen`. A pair listed in
            both directions is one edge.

    Returns:
        The graph. Where ids are text, leave gaps or count from 1, nodes are renumbered
        in ascending order and ``ids`` keeps their names; ``facts`` counts rows, self
        loops, duplicates and isolated nodes.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is damaged or not of this format.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from pyg_pool.coarsen import read_graph
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "edges.csv"
        ...     _ = path.write_text("source,target\n7,9\n9,12\n")
        ...     graph = read_graph(path)
        >>> graph, graph.ids.tolist()
        (Graph(num_nodes=3, num_edges=2), [7, 9, 12])
    """
    check_choice("read_graph", "format", format, ("auto", *FORMATS))
    path = Path(path)
    kind = format_of(path) if format == "auto" else format
    has_pattern = kind == "parquet" and any(sign in path.name for sign in "*?[")
    if not path.exists() and not has_pattern:
        raise FileNotFoundError(
            f"read_graph got {str(path)!r}, expected an existing file or folder; "
            f"check the path."
        )
    if columns is not None and kind not in ("edges", "parquet"):
        raise ValueError(
            f"read_graph got columns={columns} for the format {kind!r}, expected a "
            f"table or an edge list with a header; leave columns out."
        )
    if kind == "edges" and columns is not None:
        from pyg_pool.coarsen.columns import read_columns

        edges = read_columns(path, columns)
    elif kind == "edges":
        edges = read_edge_list(path, weighted)
    elif kind == "parquet":
        from pyg_pool.coarsen.tables import read_table

        edges = read_table(path, columns)
    else:
        edges = _reader(kind)(path)
    if weighted is False:
        edges.weight = None
    elif weighted and edges.weight is None and edges.row.size:
        raise ValueError(
            f"{path} holds edges without weights, expected some as weighted=True says; "
            f"leave weighted out, or name their column with columns=(…, …, …)."
        )
    return _graph(edges, duplicates)


def format_of(path: Path) -> str:
    """The format that a name stands for.

    Raises:
        ValueError: If the name tells nothing.
    """
    if path.is_dir():
        tables = any(path.rglob("*.parquet")) or any(path.rglob("*.arrow"))
        return "parquet" if tables else "ogb"
    suffix = inner_suffix(path)
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    raise ValueError(
        f"read_graph got {path.name!r}, expected one of {sorted(SUFFIXES)}, maybe "
        f"packed; pass format=... to say what it is."
    )


def _reader(kind: str) -> Any:
    """The function that reads a format."""
    from pyg_pool.coarsen import tables

    return {
        "metis": read_metis,
        "gr": read_gr,
        "mtx": read_mtx,
        "npz": tables.read_scipy,
        "npy": tables.read_numpy,
        "pt": tables.read_torch,
        "ogb": tables.read_ogb,
    }[kind]


def _graph(edges: Edges, duplicates: Duplicates) -> Graph:
    """Nodes renumbered where needed, directions joined."""
    row, col, ids = edges.row, edges.col, None
    if edges.num_nodes is None:
        row, col, ids, size = _renumber(row, col)
    else:
        size, first = edges.num_nodes, edges.first_id
        ids = np.arange(first, first + size) if first else None
    graph = graph_from_edges(
        row,
        col,
        edges.weight,
        num_nodes=size,
        symmetrize="max",
        duplicates=duplicates,
    )
    graph.ids = ids
    graph.facts["isolated"] = int(np.count_nonzero(np.diff(graph.indptr) == 0))
    return graph


def _renumber(row: Array, col: Array) -> tuple[Array, Array, Any, int]:
    """Ids 0..N-1 in ascending order, and their names where they changed."""
    if row.size == 0:
        return row.astype(np.int64), col.astype(np.int64), None, 0
    if row.dtype.kind in "iu":
        low, high = min(row.min(), col.min()), max(row.max(), col.max())
        if low >= 0 and high < 8 * row.size + 1_000_000:
            used = np.zeros(int(high) + 1, dtype=bool)
            used[row] = True
            used[col] = True
            names = np.flatnonzero(used)
            if names.size == used.size:
                return row, col, None, names.size
            rank = np.cumsum(used) - 1
            return rank[row], rank[col], names, names.size
    names, place = np.unique(np.concatenate([row, col]), return_inverse=True)
    place = place.ravel()
    return place[: row.size], place[row.size :], names, names.size


def content_hash(path: Path) -> str:
    """SHA-256 of a file, or of the files of a folder in order of their names."""
    digest = hashlib.sha256()
    files = (
        sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    )
    for file in files:
        with file.open("rb") as stream:
            while block := stream.read(1 << 22):
                digest.update(block)
    return digest.hexdigest()
