"""Short rows of one head of a group, and what four queries do with them.

``room`` is the memory in which all this happens, by offsets. Columns stand one below
the other in rows as long as there are keys, up to a multiple of the lanes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from pyg_pool.kernels.exponential_numba import (
    LOWEST,  # noqa: F401
    exp_down,
)
from pyg_pool.kernels.lanes_numba import (
    FLOAT,
    LANES,
    add_up,
    below,
    like,
    load,
    pick,
    splat,
    store,
)
from pyg_pool.kernels.softmax_numba import zeros

__all__ = [
    "OUT", "TILE", "highest", "pack_columns", "pack_rows", "pack_tile", "soften",
    "tile_products", "tile_sums", "unpack_rows", "up_to_lanes",
]  # fmt: skip

# Queries that are taken together.
TILE = 4
# What keeps the places behind the last key out.
OUT = -1e30


def _highest_rule(context: Any, a: Any) -> Any:
    """The largest lane; NaN counts as nothing unless all are."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value, half = args[0], LANES
        while half > 1:
            half //= 2
            turn = [(lane + half) % LANES for lane in range(LANES)]
            order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), turn)
            other = builder.shuffle_vector(value, value, order)
            is_less = builder.fcmp_ordered("<", value, other)
            value = builder.select(is_less, other, value)
        return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))

    return (types.float32 if a is FLOAT else types.float64)(a), build


highest: Any = intrinsic(_highest_rule)


@njit(inline="always")
def up_to_lanes(size: int) -> int:
    """The next multiple of the lanes."""
    return (size + LANES - 1) // LANES * LANES


@njit(inline="always")
def pack_columns(
    x: Any, stride: int, at: int, rows: Any, begin: int, n: int, depth: int, room: Any,
    to: int,
) -> None:  # fmt: skip
    """Packs a head of some rows with its channels one below the other."""
    wide = up_to_lanes(n)
    for j in range(wide):
        for d in range(depth):
            room[to + d * wide + j] = np.float32(0)
    for j in range(n):
        place = rows[begin + j] * stride + at
        for d in range(depth):
            room[to + d * wide + j] = x[place + d]


@njit(inline="always")
def pack_rows(
    x: Any, stride: int, at: int, rows: Any, begin: int, n: int, depth: int, room: Any,
    to: int,
) -> None:  # fmt: skip
    """Packs a head of some rows as it is, zeros behind it."""
    wide = up_to_lanes(depth)
    for j in range(n):
        for c in range(0, depth, LANES):
            row = load(x, rows[begin + j] * stride + at + c, depth - c)
            store(room, to + j * wide + c, row, LANES)


@njit(inline="always")
def pack_tile(
    x: Any, stride: int, at: int, rows: Any, begin: int, n: int, depth: int,
    factor: Any, room: Any, to: int,
) -> None:  # fmt: skip
    """Packs a head of a tile of rows, times a factor; zeros where there are none."""
    wide, zero = up_to_lanes(depth), like(splat(factor), 0.0)
    for u in range(TILE):
        for c in range(0, depth, LANES):
            row = zero
            if u < n:
                row = load(x, rows[begin + u] * stride + at + c, depth - c)
            store(room, to + u * wide + c, row * splat(factor), LANES)


@njit(inline="always")
def tile_products(
    room: Any, lines: int, wide: int, columns: int, step: int, depth: int, j: int
) -> Any:
    """Products of the four rows of a tile with neighbouring columns."""
    a = b = c = d = zeros(load(room, 0, LANES))
    for k in range(depth):
        column = load(room, columns + k * step + j, LANES)
        a = a + splat(room[lines + k]) * column
        b = b + splat(room[lines + wide + k]) * column
        c = c + splat(room[lines + 2 * wide + k]) * column
        d = d + splat(room[lines + 3 * wide + k]) * column
    return a, b, c, d


@njit(inline="always")
def tile_sums(
    room: Any, weights: int, step: int, n: int, lines: int, wide: int, c: int
) -> Any:
    """Sums of rows with the weights of a tile."""
    a = b = e = d = zeros(load(room, 0, LANES))
    for j in range(n):
        row = load(room, lines + j * wide + c, LANES)
        a = a + splat(room[weights + j]) * row
        b = b + splat(room[weights + step + j]) * row
        e = e + splat(room[weights + 2 * step + j]) * row
        d = d + splat(room[weights + 3 * step + j]) * row
    return a, b, e, d


@njit(inline="always")
def _larger(a: Any, b: Any) -> Any:
    return pick(below(a, b), b, a)


@njit(inline="always")
def soften(room: Any, scores: int, n: int, step: int, total: Any, at: int) -> Any:
    """Turns a row of products into weights; returns one over their sum."""
    top = like(load(room, 0, LANES), OUT)
    for j in range(0, step, LANES):
        top = _larger(top, load(room, scores + j, LANES))
    high = highest(top)
    total_lanes = zeros(top)
    for j in range(0, step, LANES):
        term = exp_down(load(room, scores + j, LANES) - splat(high))
        total_lanes = total_lanes + term
        store(room, scores + j, term, LANES)
    whole = add_up(total_lanes)
    total[at] = high + np.float32(math.log(whole))
    return np.float32(1) / whole


@njit(inline="always")
def unpack_rows(
    x: Any, stride: int, at: int, rows: Any, begin: int, n: int, depth: int, room: Any,
    lines: int,
) -> None:  # fmt: skip
    """Unpacks a head of some rows."""
    wide = up_to_lanes(depth)
    for j in range(n):
        for c in range(0, depth, LANES):
            row = load(room, lines + j * wide + c, LANES)
            store(x, rows[begin + j] * stride + at + c, row, depth - c)
