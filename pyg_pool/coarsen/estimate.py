"""What a run will need, before it starts."""

from __future__ import annotations

import lzma
import zlib
from dataclasses import dataclass
from pathlib import Path

from pyg_pool.coarsen.read import format_of
from pyg_pool.coarsen.streams import PACKED, open_stream

__all__ = ["Estimate", "estimate"]

# Measured on one core of a 2.1 GHz server; per directed edge and per node.
SECONDS_PER_EDGE = 0.45e-6
SECONDS_PER_ROW = 0.25e-6
BYTES_PER_EDGE = 40
BYTES_PER_NODE = 60
SAMPLE = 1 << 20


@dataclass(frozen=True)
class Estimate:
    """Rough needs of one run.

    Args:
        rows: Edges in the file.
        memory: Bytes at the peak.
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


def estimate(path: Path) -> Estimate:
    """Looks at the beginning of a file and at its size.

    Args:
        path: A file that :func:`read_graph` reads.

    Raises:
        FileNotFoundError: If there is no such file.
    """
    if not path.exists():
        raise FileNotFoundError(
            f"estimate got {str(path)!r}, expected an existing file or folder; "
            f"check the path."
        )
    files = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path]
    size = sum(file.stat().st_size for file in files)
    kind = format_of(path)
    if path.is_dir() or kind in ("parquet", "npz", "npy", "pt"):
        rows = size // {"parquet": 4, "npz": 4}.get(kind, 16)
    else:
        rows = _lines(path, size, kind)
    edges = 2 * rows
    nodes = max(edges // 8, 1)
    memory = edges * BYTES_PER_EDGE + nodes * BYTES_PER_NODE
    return Estimate(rows, memory, rows * SECONDS_PER_ROW + edges * SECONDS_PER_EDGE)


def _lines(path: Path, size: int, kind: str) -> int:
    """Edges of a text file, from those in its first part."""
    with open_stream(path) as stream:
        text = stream.read(SAMPLE)
    used = float(len(text))
    if path.suffix.lower() in PACKED:
        used = size if len(text) < SAMPLE else len(text) / _packing(text, path)
    count = len(text.split()) // 2 if kind == "metis" else text.count(b"\n")
    return int(count * size / max(used, 1))


def _packing(text: bytes, path: Path) -> float:
    """How much a sample shrinks when it is packed."""
    squeeze = lzma.compress if path.suffix.lower() == ".xz" else zlib.compress
    return len(text) / max(len(squeeze(text[: SAMPLE // 4])) * 4, 1)
