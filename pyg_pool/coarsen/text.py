"""Graphs written as text: edge lists, METIS, DIMACS, PACE, Matrix Market."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.edge_text import (
    Edges,
    first_line,
    is_header,
    is_number,
    is_text,
    read_text_ids,
    refuse,
    split_fields,
)
from pyg_pool.coarsen.parse_numba import BAD, parse_adjacency, parse_edges
from pyg_pool.coarsen.streams import line_blocks

__all__ = ["read_edge_list", "read_gr", "read_metis", "read_mtx"]

Array = NDArray[Any]
MOST_NODES = 1 << 40


def read_edge_list(path: Path, weighted: bool | None = None) -> Edges:
    """Lines of two ids and maybe a weight, after comments and maybe a header.

    Args:
        path: The file; separated by commas, tabs, semicolons or spaces.
        weighted: Whether a third column is a weight; ``None``: if it is a number.
    """
    parts: list[tuple[Array, Array, Array]] = []
    columns, lines, first = 0, 0, True
    for block in line_blocks(path):
        text = block
        if first and (head := first_line(text)):
            start, line = head
            names = split_fields(line)
            if is_header(names, text[start + len(line) :]):
                text, lines = text[start + len(line) :], text[:start].count(b"\n") + 1
                head = first_line(text)
                names = split_fields(head[1]) if head else []
            columns, first = len(names), head is None
            if columns > 2 and weighted is None:
                weighted = is_number(names[2])
        found, count, bad = _parse(text, bool(weighted) and columns > 2, False)
        if bad != BAD:
            line_text = text[bad:].split(b"\n", 1)[0]
            if is_text(line_text):
                return read_text_ids(path, bool(weighted))
            refuse(path, lines + count, line_text)
        parts.append(found)
        lines += count
    return _joined(parts)


def read_gr(path: Path) -> Edges:
    """DIMACS (``p sp``, lines ``a u v w``) or PACE (``p tw``, lines ``u v``)."""
    header, weighted, parts, lines = None, False, [], 0
    for block in line_blocks(path):
        if header is None:
            match = re.search(rb"^p\s+(\w+)\s+(\d+)\s+(\d+)", block, re.MULTILINE)
            if match is None:
                raise ValueError(
                    f"{path} starts without a line 'p sp NODES EDGES' or 'p tw …', "
                    f"expected DIMACS or PACE; pass format='edges' for a plain list."
                )
            header = _size(path, match.group(2))
            weighted = re.search(rb"^a\s+\d+\s+\d+\s+\S", block, re.M) is not None
        found, count, bad = _parse(block, weighted, True)
        if bad != BAD:
            refuse(path, lines + count, block[bad:].split(b"\n", 1)[0])
        parts.append(found)
        lines += count
    if header is None:
        raise ValueError(f"{path} is empty, expected a line 'p …'; fetch it again.")
    return _one_based(path, _joined(parts), header)


def read_mtx(path: Path) -> Edges:
    """Matrix Market, coordinate form, of pattern, real or integer values."""
    text = b"".join(line_blocks(path))
    head, _, body = text.partition(b"\n")
    words = head.decode("ascii", "replace").lower().split()
    if words[:3] != ["%%matrixmarket", "matrix", "coordinate"] or len(words) < 5:
        raise ValueError(
            f"{path} starts with {head[:60]!r}, expected '%%MatrixMarket matrix "
            f"coordinate …'; write it in coordinate form."
        )
    if words[3] not in ("pattern", "real", "integer") or words[4] not in (
        "general",
        "symmetric",
    ):
        raise ValueError(
            f"{path} holds {words[3]} {words[4]} values, expected pattern, real or "
            f"integer and general or symmetric; convert it."
        )
    start = first_line(body)
    sizes = start[1].split() if start else []
    if len(sizes) != 3 or not all(s.isdigit() for s in sizes) or sizes[0] != sizes[1]:
        raise ValueError(
            f"{path} has the size line {b' '.join(sizes)!r}, expected 'N N ENTRIES' of "
            f"a square matrix; fetch it again."
        )
    at, line = start if start else (0, b"")
    found, count, bad = _parse(body[at + len(line) :], words[3] != "pattern", False)
    rest = body[at + len(line) :]
    if bad != BAD:
        refuse(path, count + 2, rest[bad:].split(b"\n", 1)[0])
    if found[0].size != int(sizes[2]):
        raise ValueError(
            f"{path} holds {found[0].size} entries, expected {int(sizes[2])} as its "
            f"size line says; fetch it again."
        )
    return _one_based(path, _joined([found]), _size(path, sizes[0]))


def read_metis(path: Path) -> Edges:
    """METIS or Chaco: a line ``NODES EDGES [FORMAT [WEIGHTS]]``, then one per node."""
    text = b"".join(line_blocks(path))
    start = first_line(text)
    words = start[1].split() if start else []
    code = words[2].decode("ascii", "replace").zfill(3) if len(words) > 2 else "000"
    known = code in ("000", "001", "010", "011", "100", "101", "110", "111")
    if len(words) < 2 or not all(w.isdigit() for w in words) or not known:
        raise ValueError(
            f"{path} starts with {b' '.join(words)[:60]!r}, expected 'NODES EDGES "
            f"[FORMAT]' with a format such as 0, 1, 10, 11 or 100; fetch it again."
        )
    nodes, edges = _size(path, words[0]), int(words[1])
    at, line = start if start else (0, b"")
    body = np.frombuffer(text, np.uint8)[at + len(line) :]
    room = min(2 * edges + 1, body.size + 1)
    if nodes > body.size + 1:
        raise ValueError(
            f"{path} names {nodes} nodes in {body.size} bytes, expected a line for "
            f"each; fetch it again."
        )
    row, col = np.empty(room, np.int64), np.empty(room, np.int64)
    weighted = code[2] == "1"
    weight = np.ones(room if weighted else 0)
    per_node = int(words[3]) if len(words) > 3 else 1
    skip = (code[0] == "1") + (per_node if code[1] == "1" else 0)
    count, seen, bad = parse_adjacency(body, nodes, skip, weighted, row, col, weight)
    if bad != BAD:
        refuse(path, seen + 2, body[bad : bad + 60].tobytes().split(b"\n", 1)[0])
    if seen < nodes and seen < nodes - 1 - body.tobytes().count(b"\n"):
        raise ValueError(
            f"{path} ends after {seen} of {nodes} nodes, expected a line for each; "
            f"fetch it again."
        )
    if count != 2 * edges:
        raise ValueError(
            f"{path} lists {count} neighbours, expected {2 * edges}, twice the number "
            f"of edges in its first line; fetch it again."
        )
    values = weight[:count] if weighted else None
    return Edges(row[:count], col[:count], values, nodes, first_id=1)


def _parse(
    text: bytes, weighted: bool, letters: bool
) -> tuple[tuple[Array, Array, Array], int, int]:
    """Edges of whole lines, the number of lines, the place of a bad one."""
    data = np.frombuffer(text, np.uint8)
    room = text.count(b"\n") + 1
    row, col = np.empty(room, np.int64), np.empty(room, np.int64)
    weight = np.empty(room if weighted else 0)
    count, lines, bad = parse_edges(data, letters, row, col, weight)
    return (row[:count], col[:count], weight[: count if weighted else 0]), lines, bad


def _joined(parts: list[tuple[Array, Array, Array]]) -> Edges:
    """The edges of all blocks."""
    if not parts:
        none = np.empty(0, np.int64)
        return Edges(none, none, None)
    row, col, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Edges(row, col, weight if weight.size == row.size and row.size else None)


def _one_based(path: Path, edges: Edges, nodes: int) -> Edges:
    """Edges of a file that counts its nodes from 1, with ids from 0 on."""
    for ends in (edges.row, edges.col):
        if ends.size and (ends.min() < 1 or ends.max() > nodes):
            raise ValueError(
                f"{path} names node {int(ends.min())} to {int(ends.max())}, expected 1 "
                f"to {nodes} as its header says; fetch it again."
            )
    return Edges(edges.row - 1, edges.col - 1, edges.weight, nodes, first_id=1)


def _size(path: Path, word: bytes) -> int:
    """A number of nodes that can be meant."""
    nodes = int(word) if len(word) < 20 else MOST_NODES
    most = min(MOST_NODES, 1000 * (path.stat().st_size + 1000))
    if nodes >= most:
        raise ValueError(
            f"{path} names {word.decode('ascii', 'replace')[:30]} nodes, which its "
            f"size makes unlikely, expected fewer than {most}; fetch it again."
        )
    return nodes
