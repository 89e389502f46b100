"""Numba twin of ``pick.py``: rows are scored and picked, gradients written in order.

On the way back rows are taken in their own order, so that each is written once and no
matrix of zeros is needed; the gradients they need are fetched ahead.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from pyg_pool.kernels.entry_numba import entry
from pyg_pool.kernels.lanes_numba import LANES, add_up, fetch, like, load, store
from pyg_pool.kernels.topk_numba import COUNTERS, best_of, keeps_of

__all__ = [
    "BLOCK", "COUNTERS", "backward", "choose", "gather", "head", "put_edges",
    "scores", "unit_backward",
]  # fmt: skip

# Rows whose part of the vector's gradient is added up on its own, in any thread.
BLOCK = 2048
# How many rows ahead memory is asked for.
AHEAD = 8
# The same where rows are read in order.
STREAM = 16
# Rows that are set to 0 at once, before some of them get their gradient.
CLEARED = 32
# Edges whose ends are checked before they are looked up.
CHECKED = 512


@njit(nogil=True, cache=True)
def _unit(width: int, normalize: int, weight: Any, out: Any) -> None:
    """A vector over its length, if asked for, then the length; 0 stays 0."""
    top, total = 0.0, 0.0
    for f in range(width):
        out[f] = weight[f]
        top = max(top, abs(weight[f]))
    top = 1.0 if top == 0 else top
    for f in range(width):
        total += (weight[f] / top) ** 2
    length = math.sqrt(total)
    length = 1.0 if length == 0 else length
    if normalize:
        for f in range(width):
            out[f] = weight[f] / top / length
    out[width] = length * top if normalize else 1.0


@entry("n n n n n x x x x x")
def scores(
    start: int, stop: int, normalize: int, width: int, shifted: int, x: Any,
    weight: Any, vector: Any, bias: Any, out: Any,
) -> int:  # fmt: skip
    """Products of rows and a vector, and a number more.

    The vector is made of the weight first, unless ``normalize`` is -1.
    """
    if normalize >= 0:
        _unit(width, normalize, weight, vector)
    shift = float(bias[0]) if shifted else 0.0
    full = width - width % LANES
    for i in range(start, stop):
        total = load(x, 0, 0)
        for c in range(0, full, LANES):
            fetch(x, (i + STREAM) * width + c)
            total = total + load(x, i * width + c, LANES) * load(vector, c, LANES)
        if full < width:
            left = width - full
            last = load(x, i * width + full, left) * load(vector, full, left)
            total = total + last
        out[i] = add_up(total) + shift
    return 0


@njit(nogil=True, cache=True)
def _kept_edges(n: int, edges: int, index: Any, place: Any, out: Any) -> int:
    """Edges between picked rows; their number, or -1 for a row out of range."""
    count = 0
    for start in range(0, edges, CHECKED):
        stop, wrong = min(edges, start + CHECKED), 0
        for e in range(start, stop):
            row, column = index[e], index[edges + e]
            wrong |= row | column | (n - 1 - row) | (n - 1 - column)
        if wrong < 0:  # some number was
            return -1
        for e in range(start, stop):
            out[count] = e
            # No branch: whether an edge stays is hard to predict.
            count += 1 + ((place[index[e]] | place[index[edges + e]]) >> 63)
    return count


@entry("n n n n n f n n n j i i i i i i j j")
def choose(
    n: int, graphs: int, edges: int, total: int, ranked: int, share: float, each: int,
    up: int, min_nodes: int, score: Any, batch: Any, index: Any, count: Any,
    keep: Any, first: Any, second: Any, place: Any, ids: Any,
) -> int:  # fmt: skip
    """Rows and edges that are kept: 2^31 times the number of rows and that of edges.

    A fault in the input gives -1. Rows are left in ``first``; if they are ``ranked``,
    they lie there before. Their number ``total`` is -1 where it is to be counted.
    """
    if total < 0:
        total = keeps_of(n, graphs, share, each, up, min_nodes, batch, keep)
        if total < 0:
            return -1
    found = first
    if not ranked:
        found = best_of(n, graphs, total, score, batch, keep, count, first, second)
    for i in range(n):
        place[i] = -1
    for k in range(total):
        row = found[k]
        place[row] = k
        first[k] = row
    between = _kept_edges(n, edges, index, place, ids)
    return -1 if between < 0 else (total << 31) | between


@entry("n n n n n i i i j j x x x x i i i i")
def head(
    rows: int, count: int, edges: int, width: int, many: int, found: Any, batch: Any,
    index: Any, place: Any, ids: Any, raw: Any, attr: Any, score: Any, out_attr: Any,
    kept: Any, clusters: Any, graph: Any, out: Any,
) -> int:  # fmt: skip
    """All of the kept rows but their features, and their edges."""
    for k in range(rows):
        row = found[k]
        kept[k], clusters[k], score[k] = row, k, raw[row]
        graph[k] = batch[row] if many else 0
    for k in range(count):
        e = ids[k]
        out[k], out[count + k] = place[index[e]], place[index[edges + e]]
    for k in range(count):
        for c in range(width):
            out_attr[k * width + c] = attr[ids[k] * width + c]
    return 0


@entry("n n n n x i x x")
def gather(
    start: int, stop: int, count: int, width: int, x: Any, kept: Any, score: Any,
    out: Any,
) -> int:  # fmt: skip
    """Picked rows times their gates."""
    full = width - width % LANES
    for k in range(start, stop):
        later, at = kept[min(k + AHEAD, count - 1)] * width, kept[k] * width
        gate = like(load(x, 0, 0), float(score[k]))
        for c in range(0, full, LANES):
            fetch(x, later + c)
            store(out, k * width + c, load(x, at + c, LANES) * gate, LANES)
        if full < width:
            left = width - full
            fetch(x, later + full)
            store(out, k * width + full, load(x, at + full, left) * gate, left)
    return 0


@entry("n n n j x x")
def put_edges(edges: int, count: int, width: int, ids: Any, up: Any, out: Any) -> int:
    """Gradients of all edges from those of the kept ones."""
    for i in range(edges * width):
        out[i] = 0
    for k in range(count):
        for c in range(width):
            out[ids[k] * width + c] = up[k * width + c]
    return 0


@njit(nogil=True, cache=True)
def _clear(start: int, stop: int, width: int, out: Any) -> None:
    for i in range(start * width, stop * width):
        out[i] = 0


@njit(nogil=True, cache=True)
def _dot(width: int, x: Any, i: int, up: Any, k: int, ahead: int, later: int) -> Any:
    """Product of two rows; asks for two others."""
    total, full = load(x, 0, 0), width - width % LANES
    for c in range(0, full, LANES):
        fetch(up, later * width + c)
        fetch(x, ahead * width + c)
        total = total + load(up, k * width + c, LANES) * load(x, i * width + c, LANES)
    if full < width:
        left = width - full
        last = load(up, k * width + full, left) * load(x, i * width + full, left)
        total = total + last
    return add_up(total)


@njit(nogil=True, cache=True)
def _add(
    c: int, left: int, x: Any, at: int, slant: Any, partial: Any, here: int
) -> None:
    """Adds a piece of a row to the gradient of the vector."""
    added = load(partial, here + c, left) + slant * load(x, at + c, left)
    store(partial, here + c, added, left)


@njit(nogil=True, cache=True)
def _put(
    c: int, left: int, up: Any, k: int, gates: Any, slant: Any, vector: Any, out: Any,
    at: int,
) -> None:  # fmt: skip
    """Writes a piece of the gradient of a row."""
    moved = load(up, k + c, left) * gates + slant * load(vector, c, left)
    store(out, at + c, moved, left)


@entry("n n n n n n x x x j j x x x x x")
def backward(
    start: int, stop: int, n: int, width: int, gate: int, wanted: int, x: Any,
    vector: Any, score: Any, place: Any, picks: Any, up: Any, up_score: Any, out: Any,
    partial: Any, slopes: Any,
) -> int:  # fmt: skip
    """Gradients of all rows, and of the vector and the bias by blocks of rows.

    ``gate`` is 1 for sigmoid, 2 for tanh, 0 for none.
    """
    zero, full = load(x, 0, 0), width - width % LANES
    for block in range(start, stop):
        base, shift, m = block * BLOCK, 0.0, 0
        last, cleared, here = min(n, base + BLOCK), base, block * width
        for i in range(base, last):  # no branch: hard to predict
            picks[base + m] = i
            m += 1 + (place[i] >> 63)
        _clear(block, block + 1, width, partial)
        for j in range(m):
            i, ahead = picks[base + j], picks[base + min(j + AHEAD, m - 1)]
            k = place[i]
            slope = float(_dot(width, x, i, up, k, ahead, place[ahead]))
            gated, slope = float(score[k]), slope + float(up_score[k])
            if gate == 1:
                slope *= gated * (1.0 - gated)
            elif gate == 2:
                slope *= 1.0 - gated * gated
            shift += slope
            slant, at = like(zero, slope), i * width
            for c in range(0, full, LANES):
                _add(c, LANES, x, at, slant, partial, here)
            if full < width:
                _add(full, width - full, x, at, slant, partial, here)
            if not wanted:
                continue
            if cleared <= i:
                _clear(cleared, min(last, i + CLEARED), width, out)
                cleared = min(last, i + CLEARED)
            gates, k = like(zero, gated), k * width
            for c in range(0, full, LANES):
                _put(c, LANES, up, k, gates, slant, vector, out, at)
            if full < width:
                _put(full, width - full, up, k, gates, slant, vector, out, at)
        if wanted:
            _clear(cleared, last, width, out)
        slopes[block] = shift
    return 0


@entry("n n n x x x x x")
def unit_backward(
    width: int, blocks: int, normalize: int, vector: Any, partial: Any, slopes: Any,
    out: Any, shift: Any,
) -> int:  # fmt: skip
    """Gradients of the weight and the bias from their parts."""
    inner, total = 0.0, 0.0
    for block in range(blocks):
        total += slopes[block]
    shift[0] = total
    for f in range(width):
        total = 0.0
        for block in range(blocks):
            total += partial[block * width + f]
        out[f] = total
        inner += total * vector[f]
    if normalize:
        for f in range(width):
            out[f] = (out[f] - vector[f] * inner) / vector[width]
    return 0
