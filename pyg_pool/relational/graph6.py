"""Graphs from lines of graph6, the text form of collections of small graphs."""

from __future__ import annotations

import torch
from torch_geometric.data import Data

__all__ = ["from_graph6"]

_HEAD = ">>graph6<<"


def from_graph6(text: str) -> Data:
    """Returns the graph of a line of graph6.

    Args:
        text: A line, with or without the head ``>>graph6<<``.

    Raises:
        TypeError: If it is no text.
        ValueError: If it is no graph6.

    Note:
        Each edge comes in both directions, sorted. Of other formats, sparse6 and
        digraph6 among them, nothing is read.

    Source:
        B. McKay. Description of the formats graph6, sparse6 and digraph6.

    Example:
        >>> from pyg_pool.relational import from_graph6
        >>> from_graph6("Bw").edge_index
        tensor([[0, 0, 1, 1, 2, 2],
                [1, 2, 0, 2, 0, 1]])
    """
    if not isinstance(text, str):
        raise TypeError(
            f"from_graph6 got {text!r} of type {type(text).__name__}, expected a line "
            f"of text such as 'Bw'; decode bytes with text.decode()."
        )
    line = text.strip().removeprefix(_HEAD)
    values = [ord(letter) - 63 for letter in line]
    if not values or min(values) < 0 or max(values) > 63:
        raise _refused(text)
    if values[0] < 63:
        size, rest = values[0], values[1:]
    elif len(values) > 3 and values[1] < 63:
        size, rest = _number(values[1:4]), values[4:]
    elif len(values) > 7 and values[1] == 63:
        size, rest = _number(values[2:8]), values[8:]
    else:
        raise _refused(text)
    if len(rest) != (size * (size - 1) // 2 + 5) // 6:
        raise _refused(text)
    bits = torch.tensor(rest, dtype=torch.long).view(-1, 1)
    bits = (bits >> torch.arange(5, -1, -1)) & 1
    # The upper triangle column by column is the lower one row by row.
    order = torch.tril_indices(size, size, -1)
    low = order[:, bits.view(-1)[: order.size(1)].bool()]
    both = torch.cat([low, low.flip(0)], dim=1)
    rank = torch.argsort(both[0] * max(size, 1) + both[1])
    return Data(edge_index=both.index_select(1, rank), num_nodes=size)


def _number(parts: list[int]) -> int:
    out = 0
    for part in parts:
        out = out * 64 + part
    return out


def _refused(text: str) -> ValueError:
    shown = repr(text if len(text) <= 60 else f"{text[:57]}…")
    return ValueError(
        f"from_graph6 got {shown}, expected a line of graph6 such as 'Bw' for a "
        f"triangle; correct it, or name another format."
    )
