"""Numba twin of attention inside groups, for float32 and groups of small size.

Each head of each group is packed into a few short rows, then four queries at a time
meet all keys: products with 16 keys (or 8) stand in one register, so nothing is padded
but the last one. For the gradient the weights are computed anew from the logarithm of
their sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pyg_pool.kernels.attention_tile_numba import (
    OUT,
    TILE,
    pack_columns,
    pack_rows,
    pack_tile,
    soften,
    tile_products,
    tile_sums,
    unpack_rows,
    up_to_lanes,
)
from pyg_pool.kernels.entry_numba import entry
from pyg_pool.kernels.exponential_numba import (
    LOWEST,  # noqa: F401
    exp,
)
from pyg_pool.kernels.lanes_numba import LANES, add_up, load, splat, store
from pyg_pool.kernels.softmax_numba import zeros


@entry("n n n n n n x x x i i i i x x x x")
def forward(
    start: int, stop: int, heads: int, depth: int, q_stride: int, k_stride: int,
    q: Any, k: Any, v: Any, q_rows: Any, k_rows: Any, q_ptr: Any, k_ptr: Any,
    factor: Any, room: Any, out: Any, total: Any,
) -> int:  # fmt: skip
    """Results of groups ``start`` to ``stop`` and logarithms of the sums."""
    wide, width = up_to_lanes(depth), heads * depth
    for group in range(start, stop):
        n, keys = k_ptr[group + 1] - k_ptr[group], k_ptr[group]
        step = up_to_lanes(n)
        columns, lines = 0, depth * step
        ours = lines + n * wide
        scores = ours + TILE * wide
        for head in range(heads):
            at = head * depth
            pack_columns(k, k_stride, at, k_rows, keys, n, depth, room, columns)
            pack_rows(v, k_stride, at, k_rows, keys, n, depth, room, lines)
            for i in range(q_ptr[group], q_ptr[group + 1], TILE):
                here = min(TILE, q_ptr[group + 1] - i)
                if n == 0:
                    for u in range(here):
                        for d in range(depth):
                            out[q_rows[i + u] * width + at + d] = np.float32(0)
                    continue
                pack_tile(
                    q, q_stride, at, q_rows, i, here, depth, factor[group], room, ours
                )
                for j in range(0, step, LANES):
                    found = tile_products(room, ours, wide, columns, step, depth, j)
                    store(room, scores + j, found[0], LANES)
                    store(room, scores + step + j, found[1], LANES)
                    store(room, scores + 2 * step + j, found[2], LANES)
                    store(room, scores + 3 * step + j, found[3], LANES)
                for u in range(TILE):
                    for j in range(n, step):
                        room[scores + u * step + j] = np.float32(OUT)
                for u in range(here):
                    spot = q_rows[i + u] * heads + head
                    room[ours + u] = soften(
                        room, scores + u * step, n, step, total, spot
                    )
                for c in range(0, depth, LANES):
                    rows = tile_sums(room, scores, step, n, lines, wide, c)
                    place, left = at + c, depth - c
                    one = splat(room[ours])
                    store(out, q_rows[i] * width + place, rows[0] * one, left)
                    if here > 1:
                        one = splat(room[ours + 1])
                        store(out, q_rows[i + 1] * width + place, rows[1] * one, left)
                    if here > 2:
                        one = splat(room[ours + 2])
                        store(out, q_rows[i + 2] * width + place, rows[2] * one, left)
                    if here > 3:
                        one = splat(room[ours + 3])
                        store(out, q_rows[i + 3] * width + place, rows[3] * one, left)
    return 0


@njit(inline="always")
def _weights(
    room: Any, found: Any, up: Any, logs: Any, means: Any, scores: int, slopes: int,
    step: int, j: int,
) -> None:  # fmt: skip
    """Weights of a tile and the gradients of their products."""
    a = exp(found[0] - splat(logs[0]))
    store(room, scores + j, a, LANES)
    store(room, slopes + j, a * (up[0] - splat(means[0])), LANES)
    b = exp(found[1] - splat(logs[1]))
    store(room, scores + step + j, b, LANES)
    store(room, slopes + step + j, b * (up[1] - splat(means[1])), LANES)
    c = exp(found[2] - splat(logs[2]))
    store(room, scores + 2 * step + j, c, LANES)
    store(room, slopes + 2 * step + j, c * (up[2] - splat(means[2])), LANES)
    d = exp(found[3] - splat(logs[3]))
    store(room, scores + 3 * step + j, d, LANES)
    store(room, slopes + 3 * step + j, d * (up[3] - splat(means[3])), LANES)


@njit(inline="always")
def _spread(
    room: Any, weights: int, step: int, n: int, lines: int, wide: int, c: int, to: int
) -> None:
    """Adds the rows of a tile to those of the keys, with the weights of both."""
    a, b = load(room, lines + c, LANES), load(room, lines + wide + c, LANES)
    e = load(room, lines + 2 * wide + c, LANES)
    d = load(room, lines + 3 * wide + c, LANES)
    for j in range(n):
        row = load(room, to + j * wide + c, LANES)
        row = row + splat(room[weights + j]) * a
        row = row + splat(room[weights + step + j]) * b
        row = row + splat(room[weights + 2 * step + j]) * e
        row = row + splat(room[weights + 3 * step + j]) * d
        store(room, to + j * wide + c, row, LANES)


@njit(inline="always")
def _slope_of_tile(
    room: Any, tile: Any, places: Any, n: int, depth: int, factor: Any
) -> None:
    """Gradients that a tile of queries gives to itself and to all keys."""
    ours, up, own, logs, means = tile
    columns, values, lines, for_k, for_v, scores, slopes = places
    step, wide = up_to_lanes(n), up_to_lanes(depth)
    for j in range(0, step, LANES):
        found = tile_products(room, ours, wide, columns, step, depth, j)
        back = tile_products(room, up, wide, values, step, depth, j)
        _weights(room, found, back, logs, means, scores, slopes, step, j)
    for c in range(0, depth, LANES):
        rows = tile_sums(room, slopes, step, n, lines, wide, c)
        store(room, own + c, rows[0] * splat(factor), LANES)
        store(room, own + wide + c, rows[1] * splat(factor), LANES)
        store(room, own + 2 * wide + c, rows[2] * splat(factor), LANES)
        store(room, own + 3 * wide + c, rows[3] * splat(factor), LANES)
        _spread(room, scores, step, n, up, wide, c, for_v)
        _spread(room, slopes, step, n, ours, wide, c, for_k)


@entry("n n n n n n x x x i i i i x x x x x n n x x x")
def backward(
    start: int, stop: int, heads: int, depth: int, q_stride: int, k_stride: int,
    q: Any, k: Any, v: Any, q_rows: Any, k_rows: Any, q_ptr: Any, k_ptr: Any,
    factor: Any, room: Any, out: Any, total: Any, grad: Any, q_step: int, k_step: int,
    grad_q: Any, grad_k: Any, grad_v: Any,
) -> int:  # fmt: skip
    """Gradients of groups ``start`` to ``stop``, in rows of given steps."""
    wide, width, one = up_to_lanes(depth), heads * depth, np.float32(1)
    for group in range(start, stop):
        n, keys = k_ptr[group + 1] - k_ptr[group], k_ptr[group]
        step, scale = up_to_lanes(n), factor[group]
        values = depth * step
        lines = 2 * values
        for_k = lines + n * wide
        for_v = for_k + n * wide
        scores = for_v + n * wide
        slopes = scores + TILE * step
        ours = slopes + TILE * step
        up, own = ours + TILE * wide, ours + 2 * TILE * wide
        places = 0, values, lines, for_k, for_v, scores, slopes
        for head in range(heads):
            at = head * depth
            pack_columns(k, k_stride, at, k_rows, keys, n, depth, room, 0)
            pack_columns(v, k_stride, at, k_rows, keys, n, depth, room, values)
            pack_rows(k, k_stride, at, k_rows, keys, n, depth, room, lines)
            for place in range(for_k, scores):
                room[place] = np.float32(0)
            for i in range(q_ptr[group], q_ptr[group + 1], TILE):
                here = min(TILE, q_ptr[group + 1] - i)
                pack_tile(q, q_stride, at, q_rows, i, here, depth, scale, room, ours)
                pack_tile(grad, width, at, q_rows, i, here, depth, one, room, up)
                logs = _logs(total, q_rows, i, here, heads, head)
                means = _means(out, room, up, q_rows, i, here, width, at, depth)
                tile = ours, up, own, logs, means
                _slope_of_tile(room, tile, places, n, depth, scale)
                unpack_rows(grad_q, q_step, at, q_rows, i, here, depth, room, own)
            unpack_rows(grad_k, k_step, at, k_rows, keys, n, depth, room, for_k)
            unpack_rows(grad_v, k_step, at, k_rows, keys, n, depth, room, for_v)
    return 0


@njit(inline="always")
def _logs(total: Any, rows: Any, i: int, here: int, heads: int, head: int) -> Any:
    """Logarithms of the sums of a tile; 0 where there is no query."""
    zero = np.float32(0)
    a = total[rows[i] * heads + head]
    b = total[rows[i + 1] * heads + head] if here > 1 else zero
    c = total[rows[i + 2] * heads + head] if here > 2 else zero
    d = total[rows[i + 3] * heads + head] if here > 3 else zero
    return a, b, c, d


@njit(inline="always")
def _mean(out: Any, room: Any, up: int, place: int, depth: int) -> Any:
    """Product of a result with its gradient."""
    lanes = zeros(load(room, 0, LANES))
    for c in range(0, depth, LANES):
        lanes = lanes + load(out, place + c, depth - c) * load(room, up + c, LANES)
    return add_up(lanes)


@njit(inline="always")
def _means(
    out: Any, room: Any, up: int, rows: Any, i: int, here: int, width: int, at: int,
    depth: int,
) -> Any:  # fmt: skip
    """Products of the results of a tile with their gradients."""
    wide, zero = up_to_lanes(depth), np.float32(0)
    a = _mean(out, room, up, rows[i] * width + at, depth)
    b = c = d = zero
    if here > 1:
        b = _mean(out, room, up + wide, rows[i + 1] * width + at, depth)
    if here > 2:
        c = _mean(out, room, up + 2 * wide, rows[i + 2] * width + at, depth)
    if here > 3:
        d = _mean(out, room, up + 3 * wide, rows[i + 3] * width + at, depth)
    return a, b, c, d
