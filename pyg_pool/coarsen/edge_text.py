"""Lines of an edge list: their fields, and files whose ids are text."""

from __future__ import annotations

import contextlib
import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.streams import line_blocks

__all__ = [
    "COMMENTS",
    "Edges",
    "first_line",
    "is_header",
    "is_number",
    "is_text",
    "read_text_ids",
    "refuse",
    "split_fields",
]

Array = NDArray[Any]
COMMENTS = (b"#", b"%")
HEADS = {b"source", b"src", b"from", b"node_1", b"node1", b"u", b"id1", b"i"}
_GAPS = re.compile(rb"[\s,;]+")
_QUOTED = re.compile(rb'"[^"]*"')
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class Edges:
    """Edges as they stand in a file.

    Args:
        row: First ends, integers or text.
        col: Second ends.
        weight: Weights, or ``None``.
        num_nodes: Number of nodes where the file names it; ids are then 0..N-1.
        first_id: What the file calls node 0 of these.
    """

    def __init__(
        self,
        row: Array,
        col: Array,
        weight: Array | None,
        num_nodes: int | None = None,
        first_id: int = 0,
    ) -> None:
        self.row, self.col, self.weight = row, col, weight
        self.num_nodes, self.first_id = num_nodes, first_id


def split_fields(line: bytes) -> list[bytes]:
    """The fields of a line: by tabs, commas, semicolons or, without these, by spaces.

    A field may hold spaces where another sign separates, and that sign in quotes.
    Numbers are told apart whatever stands between them.
    """
    words = [word for word in _GAPS.split(line.strip()) if word]
    if all(is_number(word) for word in words):
        return words
    bare = _QUOTED.sub(b"", line)
    sign = next((sign for sign in (b"\t", b",", b";") if sign in bare), None)
    if sign is None:
        return [word.strip(b'"') for word in line.split()]
    if b'"' in line:
        text = line.strip().decode("latin-1")
        rows = csv.reader([text], delimiter=sign.decode(), skipinitialspace=True)
        with contextlib.suppress(csv.Error):
            return [part.strip().encode("latin-1") for part in next(rows)]
    return [part.strip() for part in line.strip().split(sign)]


def is_number(word: bytes) -> bool:
    """Whether a word is a decimal number."""
    return _NUMBER.fullmatch(word) is not None


def is_text(line: bytes) -> bool:
    """Whether a line the parser refused has ids of letters, many digits or quotes."""
    words = split_fields(line)
    if len(words) < 2 or not words[0] or not words[1]:
        return False
    plain = all(is_number(w) and len(w) < 19 and b"." not in w for w in words[:2])
    return b'"' in line or not plain


def first_line(text: bytes) -> tuple[int, bytes] | None:
    """Place and content of the first line that is neither empty nor a comment."""
    at = 0
    for line in text.split(b"\n", 10_000):
        if line.strip() and not line.lstrip().startswith(COMMENTS):
            return at, text[at : at + len(line) + 1]
        at += len(line) + 1
    return None


def is_header(names: list[bytes], rest: bytes) -> bool:
    """Whether a first line has a usual heading, or the second one holds numbers."""
    if not names or is_number(names[0]):
        return False
    second = first_line(rest)
    words = split_fields(second[1]) if second else []
    head = names[0].lower().strip(b'"')
    return head in HEADS or (bool(words) and is_number(words[0]))


def read_text_ids(path: Path, weighted: bool) -> Edges:
    """Edges whose ids are text, or numbers in quotes.

    A file of numbers with a few odd words is refused.
    """
    ends: tuple[list[bytes], list[bytes]] = ([], [])
    weight: list[float] = []
    lines, odd = 0, (0, b"")
    for block in line_blocks(path):
        for line in block.splitlines():
            lines += 1
            if not line.strip() or line.lstrip().startswith(COMMENTS):
                continue
            words = split_fields(line)
            if not ends[0] and words[0].lower() in HEADS:
                continue
            short = len(words) < 2 + weighted or not words[0] or not words[1]
            if short or (weighted and not is_number(words[2])):
                refuse(path, lines, line)
            if odd[0] == 0 and is_text(line):
                odd = (lines, line)
            ends[0].append(words[0])
            ends[1].append(words[1])
            if weighted:
                weight.append(float(words[2]))
    words, values = ends[0] + ends[1], np.array(weight) if weighted else None
    whole = all(len(word) < 19 and word.lstrip(b"-").isdigit() for word in words)
    plain = sum(is_number(word) and len(word) < 19 for word in ends[0])
    if not whole and plain > len(ends[0]) / 2:
        refuse(path, *odd)
    try:
        names: Array = np.char.decode(np.array(words), "utf-8")
        names = names.astype(np.int64) if whole else names
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} holds bytes that are no UTF-8 ({error.reason}), expected text; "
            f"convert it."
        ) from error
    return Edges(names[: len(ends[0])], names[len(ends[0]) :], values)


def refuse(path: Path, line: int, text: bytes) -> None:
    """Raises for a line that is no edge."""
    raise ValueError(
        f"{path} line {line} reads {text[:60].decode('utf-8', 'replace')!r}, expected "
        f"two node ids and at most a weight; mend or remove the line."
    )
