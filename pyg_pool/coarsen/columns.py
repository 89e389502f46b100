"""Columns of text files by the names in their header."""

from __future__ import annotations

from pathlib import Path

from pyg_pool.coarsen.edge_text import Edges, first_line
from pyg_pool.coarsen.streams import line_blocks, open_stream
from pyg_pool.coarsen.tables import edges_of, names_of
from pyg_pool.errors import require

__all__ = ["header_of", "read_columns"]


def read_columns(path: Path, columns: tuple[str, ...]) -> Edges:
    """Named columns of a text file with a header: commas, tabs, semicolons or spaces.

    Args:
        path: The file, maybe packed.
        columns: Names of source, target and maybe weight.
    """
    csv = require("pyarrow.csv", "coarsen")
    arrow = require("pyarrow", "coarsen")
    head, skipped = header_of(path)
    sign = next((sign for sign in ",\t;" if sign in head), " ")
    names = [name.strip().strip('"') for name in head.split(sign)]
    found = names_of(path, names, columns)
    try:
        with open_stream(path) as stream:
            data = csv.read_csv(
                stream,
                csv.ReadOptions(skip_rows=skipped + 1, column_names=names),
                csv.ParseOptions(delimiter=sign),
                csv.ConvertOptions(include_columns=list(found)),
            ).combine_chunks()
            parts = [data.column(name).to_numpy() for name in found]
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} cannot be read by columns ({error}), expected a header and lines "
            f"of {len(names)} fields; mend the line, or leave columns out."
        ) from error
    return edges_of(path, found, parts)


def header_of(path: Path) -> tuple[str, int]:
    """The first line that is no comment, and how many lines precede it."""
    for block in line_blocks(path):
        if head := first_line(block):
            line = head[1].strip().decode("utf-8", "replace")
            return line, block[: head[0]].count(b"\n")
    return "", 0
