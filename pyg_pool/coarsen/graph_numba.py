"""Compiled loops that turn edge lists into sorted symmetric rows of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]

# How duplicates and opposite directions are merged.
SUM, MAX, FIRST, MEAN = 0, 1, 2, 3


@njit(nogil=True, cache=True)
def is_sorted(row: Array, col: Array) -> bool:
    """Whether edges ascend by row and column, each pair once and no self loops."""
    for e in range(row.size):
        if row[e] == col[e]:
            return False
        if e > 0 and (
            row[e] < row[e - 1] or (row[e] == row[e - 1] and col[e] <= col[e - 1])
        ):
            return False
    return True


@njit(nogil=True, cache=True)
def bucket(
    key: Array, other: Array, weight: Array, start: Array, out: Array, out_weight: Array
) -> None:
    """Puts ``other`` into the bucket of ``key``, in the order of the edges.

    ``start`` holds the first place of each bucket and is moved on.
    """
    weighted = weight.size > 0
    for e in range(key.size):
        place = start[key[e]]
        out[place] = other[e]
        if weighted:
            out_weight[place] = weight[e]
        start[key[e]] = place + 1


@njit(nogil=True, cache=True)
def transpose(
    indptr: Array,
    indices: Array,
    weight: Array,
    start: Array,
    out: Array,
    out_weight: Array,
) -> None:
    """Rows become columns; columns of each row then ascend."""
    weighted = weight.size > 0
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            place = start[indices[e]]
            out[place] = i
            if weighted:
                out_weight[place] = weight[e]
            start[indices[e]] = place + 1


@njit(nogil=True, cache=True)
def merge_duplicates(
    indptr: Array, indices: Array, weight: Array, loop: Array, how: int
) -> tuple[int, int]:
    """Merges equal neighbours in place, moves self loops to ``loop``.

    Rows are sorted; ``indptr`` is rewritten. A weight must be there to be summed.

    Returns:
        The number of self loops and of duplicates found.
    """
    weighted = weight.size > 0
    place, loops, duplicates = 0, 0, 0
    first = 0
    for i in range(indptr.size - 1):
        last = indptr[i + 1]
        begin = place
        seen_loop = False
        for e in range(first, last):
            w = weight[e] if weighted else 1.0
            if indices[e] == i:
                loops += 1
                if seen_loop:
                    duplicates += 1
                if not seen_loop or how == SUM:
                    loop[i] += w
                elif how == MAX:
                    loop[i] = max(loop[i], w)
                seen_loop = True
            elif place > begin and indices[place - 1] == indices[e]:
                duplicates += 1
                if weighted and how == SUM:
                    weight[place - 1] += w
                elif weighted and how == MAX:
                    weight[place - 1] = max(weight[place - 1], w)
            else:
                indices[place] = indices[e]
                if weighted:
                    weight[place] = w
                place += 1
        first = last
        indptr[i + 1] = place
    return loops, duplicates


@njit(nogil=True, cache=True)
def has_duplicates(indptr: Array, indices: Array) -> bool:
    """Whether a sorted row names a neighbour twice, or its own node."""
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] == i:
                return True
            if e > indptr[i] and indices[e] == indices[e - 1]:
                return True
    return False


@njit(nogil=True, cache=True)
def check_rows(
    bounds: tuple[int, int], indptr: Array, indices: Array, weight: Array
) -> tuple[bool, bool, np.uint64, int]:
    """Reads the edges of some rows once.

    With a hash g of the nodes, the sum of ``w ((i + 1) g_j - (j + 1) g_i)`` over all
    edges is 0 where they are symmetric, and else is 0 by a rare chance only.

    Returns:
        Whether rows are sorted without repeats and loops, whether ids are in range,
        that sum, and the first edge of a negative or no finite weight, or -1.
    """
    n = indptr.size - 1
    bad: Any = -1
    dirty, total = 0, np.uint64(0)
    one = np.uint64(1)
    for i in range(bounds[0], bounds[1]):
        first, last = np.uintp(indptr[i]), np.uintp(indptr[i + 1])
        if first == last:
            continue
        before = np.int64(-1)
        hashes, names = np.uint64(0), np.uint64(0)
        if weight.size > 0:
            for e in range(first, last):
                w = weight[e]
                if not (w >= 0 and w < np.inf) and bad < 0:
                    bad = np.int64(e)
                fixed = np.uint64(np.int64(w * 1048576.0))
                j = np.int64(indices[e])
                dirty += (j <= before) | (j == i)
                before = j
                hashes += fixed * node_hash(np.uint64(j))
                names += fixed * (np.uint64(j) + one)
        else:
            for e in range(first, last):
                j = np.int64(indices[e])
                dirty += (j <= before) | (j == i)
                before = j
                hashes += node_hash(np.uint64(j))
                names += np.uint64(j) + one
        total += (np.uint64(i) + one) * hashes - node_hash(np.uint64(i)) * names
        if dirty:
            for e in range(first, last):
                if indices[e] < 0 or indices[e] >= n:
                    return False, False, total, bad
        elif indices[first] < 0 or indices[last - np.uintp(1)] >= n:
            return False, False, total, bad
    return dirty == 0, True, total, bad


@njit(nogil=True, cache=True, inline="always")
def node_hash(i: np.uint64) -> np.uint64:
    """A number for a node that looks random."""
    key = (i + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
    return key ^ (key >> np.uint64(29))


@njit(nogil=True, cache=True)
def join_rows(
    left: tuple[Array, Array, Array],
    right: tuple[Array, Array, Array],
    how: int,
    indptr: Array,
    indices: Array,
    weight: Array,
) -> None:
    """Row by row union of two sorted sets of rows, weights merged as ``how`` says.

    With an empty ``indices`` only the row lengths are written, into ``indptr``.
    """
    a_ptr, a, a_weight = left
    b_ptr, b, b_weight = right
    fill = indices.size > 0
    weighted = a_weight.size > 0
    place = 0
    for i in range(a_ptr.size - 1):
        x, y = a_ptr[i], b_ptr[i]
        x_end, y_end = a_ptr[i + 1], b_ptr[i + 1]
        while x < x_end or y < y_end:
            has_a = x < x_end and (y >= y_end or a[x] <= b[y])
            has_b = y < y_end and (x >= x_end or b[y] <= a[x])
            if fill:
                indices[place] = a[x] if has_a else b[y]
                if weighted:
                    u = a_weight[x] if has_a else 0.0
                    v = b_weight[y] if has_b else 0.0
                    if how == MAX:
                        weight[place] = max(u, v)
                    elif how == MEAN:
                        weight[place] = 0.5 * (u + v)
                    else:
                        weight[place] = u + v
            x += has_a
            y += has_b
            place += 1
        if not fill:
            indptr[i + 1] = place
