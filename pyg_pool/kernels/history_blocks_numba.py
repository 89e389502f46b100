"""Layer normalisation summed over groups, for float32; widths fill whole lanes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from pyg_pool.kernels.entry_numba import entry
from pyg_pool.kernels.lanes_numba import LANES, add_up, load, splat, store
from pyg_pool.kernels.softmax_numba import zeros

EPS = 1e-5


@njit(inline="always")
def _row(a: Any, b: Any, place: int, left: int) -> Any:
    return load(a, place, left) + load(b, place, left)


@entry("n n n i x x x x")
def pool(
    n: int, width: int, size: int, index: Any, a: Any, b: Any, stats: Any, sums: Any
) -> int:
    """Sums the normalised rows of ``a + b`` over groups; keeps mean and deviation."""
    for place in range(size * width):
        sums[place] = np.float32(0)
    for i in range(n):
        total = zeros(load(a, 0, 0))
        for c in range(0, width, LANES):
            total = total + _row(a, b, i * width + c, width - c)
        mean = np.float32(add_up(total) / width)
        total = zeros(total)
        for c in range(0, width, LANES):
            gap = _row(a, b, i * width + c, width - c) - splat(mean)
            total = total + gap * gap
        inverse = np.float32(1.0 / math.sqrt(add_up(total) / width + EPS))
        stats[2 * i], stats[2 * i + 1] = mean, inverse
        for c in range(0, width, LANES):
            gap = _row(a, b, i * width + c, width - c) - splat(mean)
            at = index[i] * width + c
            row = load(sums, at, width - c) + gap * splat(inverse)
            store(sums, at, row, width - c)
    return 0


@entry("n n i x x x x x")
def unpool(
    n: int, width: int, index: Any, a: Any, b: Any, stats: Any, grad: Any, out: Any
) -> int:
    """Gradient of the rows from those of the sums."""
    for i in range(n):
        mean, inverse = stats[2 * i], stats[2 * i + 1]
        flat = tilt = zeros(load(a, 0, 0))
        for c in range(0, width, LANES):
            up = load(grad, index[i] * width + c, width - c)
            row = _row(a, b, i * width + c, width - c) - splat(mean)
            flat, tilt = flat + up, tilt + up * (row * splat(inverse))
        level = np.float32(add_up(flat) / width)
        slope = np.float32(add_up(tilt) / width)
        for c in range(0, width, LANES):
            up = load(grad, index[i] * width + c, width - c)
            row = _row(a, b, i * width + c, width - c) - splat(mean)
            found = up - splat(level) - row * splat(inverse) * splat(slope)
            store(out, i * width + c, found * splat(inverse), width - c)
    return 0
