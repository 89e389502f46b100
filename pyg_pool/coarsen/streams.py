"""Files as streams of bytes, unpacked on the way."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pyg_pool.errors import require

__all__ = ["PACKED", "inner_suffix", "line_blocks", "open_stream"]

PACKED = (".gz", ".bz2", ".xz", ".zst")
BLOCK = 1 << 24
# What unpacking a damaged file may raise.
DAMAGES = (EOFError, OSError, lzma.LZMAError, zlib.error, ValueError)


def inner_suffix(path: Path) -> str:
    """The suffix that says what a file holds, without that of its packing."""
    name = path.name.lower()
    for packed in PACKED:
        name = name.removesuffix(packed)
    return Path(name).suffix


@contextmanager
def open_stream(path: Path) -> Iterator[IO[bytes]]:
    """Opens a file for reading; ``.gz``, ``.bz2``, ``.xz`` and ``.zst`` are unpacked.

    Raises:
        ValueError: If the packing is damaged.
    """
    suffix = path.suffix.lower()
    with path.open("rb") as raw:
        stream: Any = raw
        if suffix == ".gz":
            stream = gzip.GzipFile(fileobj=raw)
        elif suffix == ".bz2":
            stream = bz2.BZ2File(raw)
        elif suffix == ".xz":
            stream = lzma.LZMAFile(raw)  # noqa: SIM115
        elif suffix == ".zst":
            stream = require("pyarrow", "coarsen").CompressedInputStream(raw, "zstd")
        try:
            yield stream
        except DAMAGES as error:
            raise ValueError(
                f"{path} cannot be unpacked ({error}), expected a complete file; fetch "
                f"it again."
            ) from error


def line_blocks(path: Path) -> Iterator[bytes]:
    """Whole lines of a text file, some megabytes at a time.

    Raises:
        ValueError: If the file is damaged.
    """
    rest = b""
    with open_stream(path) as stream:
        while block := stream.read(BLOCK):
            cut = block.rfind(b"\n") + 1
            if cut == 0:
                rest += block
                continue
            yield rest + block[:cut]
            rest = block[cut:]
    if rest:
        yield rest
