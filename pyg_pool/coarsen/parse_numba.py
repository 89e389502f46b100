"""Compiled loops that read numbers from text, a block of lines at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]

NEWLINE, RETURN, SPACE, TAB, COMMA, SEMICOLON = 10, 13, 32, 9, 44, 59
HASH, PERCENT, LETTER_A, LETTER_C, LETTER_E, LETTER_P = 35, 37, 97, 99, 101, 112
MINUS, PLUS, DOT, ZERO, NINE, CAPITAL_E = 45, 43, 46, 48, 57, 69
BAD = -1
# The largest value that takes another digit without leaving 64 bits.
LIMIT = 922337203685477579


@njit(nogil=True, cache=True)
def skip_gaps(text: Array, at: int) -> int:
    """The next place that is no separator; stops at the end of the line."""
    while at < text.size and (
        text[at] == SPACE
        or text[at] == TAB
        or text[at] == COMMA
        or text[at] == SEMICOLON
        or text[at] == RETURN
    ):
        at += 1
    return at


@njit(nogil=True, cache=True)
def read_integer(text: Array, at: int) -> tuple[int, int]:
    """An integer and the place after it, or the place ``BAD``."""
    negative = at < text.size and text[at] == MINUS
    at += negative
    value: Any = 0
    begin = at
    while at < text.size and ZERO <= text[at] <= NINE:
        if value > LIMIT:
            return 0, BAD
        value = 10 * value + np.int64(text[at] - ZERO)
        at += 1
    if at == begin:
        return 0, BAD
    if at < text.size and text[at] != NEWLINE and skip_gaps(text, at) == at:
        return 0, BAD
    return (-value if negative else value), at


@njit(nogil=True, cache=True)
def read_number(text: Array, at: int) -> tuple[float, int]:
    """A decimal number and the place after it, or the place ``BAD``."""
    negative = at < text.size and text[at] == MINUS
    at += at < text.size and (text[at] == MINUS or text[at] == PLUS)
    value, digits, shift = 0.0, 0, 0
    while at < text.size and ZERO <= text[at] <= NINE:
        value = 10 * value + (text[at] - ZERO)
        digits += 1
        at += 1
    if at < text.size and text[at] == DOT:
        at += 1
        while at < text.size and ZERO <= text[at] <= NINE:
            value = 10 * value + (text[at] - ZERO)
            digits += 1
            shift -= 1
            at += 1
    if digits == 0:
        return 0.0, BAD
    if at < text.size and (text[at] == LETTER_E or text[at] == CAPITAL_E):
        at += 1
        down = at < text.size and text[at] == MINUS
        at += at < text.size and (text[at] == MINUS or text[at] == PLUS)
        power: Any = 0
        begin = at
        while at < text.size and ZERO <= text[at] <= NINE:
            power = min(10 * power + np.int64(text[at] - ZERO), 9999)
            at += 1
        if at == begin:
            return 0.0, BAD
        shift += -power if down else power
    if at < text.size and text[at] != NEWLINE and skip_gaps(text, at) == at:
        return 0.0, BAD
    value = value * 10.0**shift if shift >= 0 else value / 10.0 ** (-shift)
    return (-value if negative else value), at


@njit(nogil=True, cache=True)
def line_end(text: Array, at: int) -> int:
    """The place of the next end of line, or of the text."""
    while at < text.size and text[at] != NEWLINE:
        at += 1
    return at


@njit(nogil=True, cache=True)
def parse_edges(
    text: Array, letters: bool, row: Array, col: Array, weight: Array
) -> tuple[int, int, int]:
    """Reads lines ``row col [weight]``; comments and empty lines are skipped.

    ``weight`` may be empty: then further columns are passed over. A line of ``#`` or
    ``%`` is a comment. With ``letters`` a line may start with the letter ``a`` or
    ``e``, and one with ``c`` or ``p`` is passed over; else letters are names of nodes.

    Returns:
        The number of edges and of lines, and the place of a bad line, or ``BAD``.
    """
    count, lines, at = 0, 0, 0
    while at < text.size:
        begin = at
        lines += 1
        at = skip_gaps(text, at)
        if at >= text.size or text[at] == NEWLINE:
            at += 1
            continue
        first = text[at]
        alone = letters and at + 1 < text.size
        alone = alone and (text[at + 1] == SPACE or text[at + 1] == TAB)
        if first in (HASH, PERCENT) or (alone and first in (LETTER_C, LETTER_P)):
            at = line_end(text, at) + 1
            continue
        if alone and first in (LETTER_A, LETTER_E):
            at = skip_gaps(text, at + 1)
        row[count], at = read_integer(text, at)
        if at == BAD:
            return count, lines, begin
        col[count], at = read_integer(text, skip_gaps(text, at))
        if at == BAD:
            return count, lines, begin
        if weight.size > 0:
            weight[count], at = read_number(text, skip_gaps(text, at))
            if at == BAD:
                return count, lines, begin
        count += 1
        at = line_end(text, at) + 1
    return count, lines, BAD


@njit(nogil=True, cache=True)
def parse_adjacency(
    text: Array,
    nodes: int,
    skip: int,
    weighted: bool,
    row: Array,
    col: Array,
    weight: Array,
) -> tuple[int, int, int]:
    """Reads one line of 1-based neighbours per node; ``%`` starts a comment.

    ``skip`` numbers at the start of a line belong to the node itself. An empty line is
    a node without neighbours.

    Returns:
        The number of entries and of nodes read, and the place of a bad line or ``BAD``.
    """
    count, node, at = 0, 0, 0
    while at < text.size and node < nodes:
        begin = at
        at = skip_gaps(text, at)
        if at < text.size and text[at] == PERCENT:
            at = line_end(text, at) + 1
            continue
        for _ in range(skip):
            _value, at = read_number(text, at)
            if at == BAD:
                return count, node, begin
            at = skip_gaps(text, at)
        while at < text.size and text[at] != NEWLINE:
            if count >= row.size:
                return count, node, begin
            other, at = read_integer(text, at)
            if at == BAD or other < 1 or other > nodes:
                return count, node, begin
            at = skip_gaps(text, at)
            if weighted:
                weight[count], at = read_number(text, at)
                if at == BAD:
                    return count, node, begin
                at = skip_gaps(text, at)
            row[count] = node
            col[count] = other - 1
            count += 1
        node += 1
        at += 1
    return count, node, BAD
