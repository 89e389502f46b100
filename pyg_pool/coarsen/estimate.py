"""What a run will need, before it starts."""

from __future__ import annotations

import lzma
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pyg_pool.coarsen.read import Format, format_of
from pyg_pool.coarsen.streams import PACKED, open_stream
from pyg_pool.errors import require

__all__ = ["Estimate", "estimate"]

# Measured on one core of a 2.1 GHz server: reading, two to five levels, writing.
SECONDS_AT_REST = 3.0
SECONDS_PER_ROW = 2.5e-6
# Peak of the whole process: the program, a row as it is read, a node as it is written.
BYTES_AT_REST = 600_000_000
BYTES_PER_ROW = 100
BYTES_PER_NODE = 220
# Nodes by edges where the file does not say.
NODES_PER_ROW = 0.25
SAMPLE = 1 << 20


@dataclass(frozen=True)
class Estimate:
    """Rough needs of one run.

    Args:
        rows: Edges in the file.
        memory: Bytes at the peak, of the whole process.
        seconds: Time on one core.
    """

    rows: int
    memory: int
    seconds: float

    def __str__(self) -> str:
        """One line."""
        return (
            f"about {self.rows:,} edges, {self.memory / 1e9:.2f} GB of memory and "
            f"{self.seconds:.0f} s on one core"
        )


def estimate(path: Path, format: Format = "auto") -> Estimate:
    """Looks at the beginning of a file and at its size.

    Args:
        path: A file, folder or pattern that :func:`read_graph` reads.
        format: As for :func:`read_graph`.

    Raises:
        FileNotFoundError: If there is no such file.
    """
    kind = format_of(path) if format == "auto" else format
    if path.is_dir():
        files = [each for each in path.rglob("*") if each.is_file()]
    elif kind == "parquet" and any(sign in path.name for sign in "*?["):
        files = sorted(path.parent.glob(path.name))
    else:
        files = [path] if path.exists() else []
    if not files:
        raise FileNotFoundError(
            f"estimate got {str(path)!r}, expected an existing file or folder; "
            f"check the path."
        )
    if kind in ("parquet", "npz", "npy", "pt", "ogb"):
        rows, nodes = sum(_stored_rows(file, kind) for file in files), 0
    else:
        rows, nodes = _text_rows(path, kind)
    nodes = nodes or int(NODES_PER_ROW * rows)
    memory = BYTES_AT_REST + rows * BYTES_PER_ROW + nodes * BYTES_PER_NODE
    seconds = SECONDS_AT_REST + rows * SECONDS_PER_ROW
    return Estimate(rows, memory, seconds)


def _stored_rows(file: Path, kind: str) -> int:
    """Edges of a binary file, from its heading where that is cheap to read."""
    size = file.stat().st_size
    if kind == "parquet" and file.suffix == ".parquet":
        arrow = require("pyarrow", "coarsen")
        try:
            found = require("pyarrow.parquet", "coarsen").read_metadata(file)
        except (arrow.ArrowException, OSError):
            return size // 4  # reading will say what is wrong
        return int(found.num_rows)
    if kind == "npy":
        try:
            pairs = np.load(file, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError, OSError):
            return size // 16
        return int(pairs.size) // 2
    # Packed arrays of ids, packed text of edges, plain ids of 64 bits.
    return size // {"npz": 4, "ogb": 5}.get(kind, 16)


def _text_rows(path: Path, kind: str) -> tuple[int, int]:
    """Edges and nodes of a text file, from its heading or its first part."""
    size = path.stat().st_size
    with open_stream(path) as stream:
        text = stream.read(SAMPLE)
    heads = {
        "gr": rb"^p\s+\w+\s+(\d+)\s+(\d+)",
        "mtx": rb"^\s*(\d+)\s+\d+\s+(\d+)\s*$",
        "metis": rb"^\s*(\d+)\s+(\d+)[ \d]*$",
    }
    head = re.search(heads[kind], text, re.MULTILINE) if kind in heads else None
    if head is not None:
        nodes, rows = (int(word[:18]) for word in head.groups())
        return rows, nodes
    used = float(len(text))
    if path.suffix.lower() in PACKED:
        used = size if len(text) < SAMPLE else len(text) / _packing(text, path)
    return int(text.count(b"\n") * size / max(used, 1)), 0


def _packing(text: bytes, path: Path) -> float:
    """How much a sample shrinks when it is packed."""
    squeeze = lzma.compress if path.suffix.lower() == ".xz" else zlib.compress
    return len(text) / max(len(squeeze(text[: SAMPLE // 4])) * 4, 1)
