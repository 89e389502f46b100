"""Numba twin of ``layer_mix.py``: one pass over the rows, long sums in float64.

Neighbouring rows of one group are taken together; each layer is cut into lanes.
``r``, weighted rows and their gradients hold a column per layer behind those of x.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from pyg_pool.kernels.attention_tile_numba import highest
from pyg_pool.kernels.entry_numba import entry
from pyg_pool.kernels.lanes_numba import (
    LANES,
    add_up,
    below,
    load,
    pick,
    splat,
    store,
)
from pyg_pool.kernels.segment_numba import RUN, run_end  # noqa: F401
from pyg_pool.kernels.softmax_numba import zeros


@njit(inline="always")
def _clear(place: Any, n: int) -> None:
    for i in range(n):
        place[i] = 0.0


@entry("n n n x i x")
def largest(n: int, width: int, size: int, x: Any, index: Any, out: Any) -> int:
    """Largest magnitude of the rows of each group; NaN where there is one."""
    for b in range(size):
        out[b] = 0.0
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        zero = zeros(load(x, 0, 0))
        top = total = zero
        for c in range(0, width, LANES):
            for k in range(i, j):
                value = load(x, k * width + c, width - c)
                value = pick(below(value, zero), zero - value, value)
                top, total = pick(below(top, value), value, top), total + value
        # The sum of magnitudes is NaN where one of them is.
        most = add_up(total)
        most = highest(top) if most == most else most
        if out[b] == out[b] and not most <= out[b]:
            out[b] = most
        i = j
    return 0


@njit(inline="always")
def _product(
    r: Any, x: Any, wide: int, width: int, i: int, j: int, span: Any, factor: Any
) -> Any:
    """Sum of products of the rows of a run in the columns of one layer."""
    total = zeros(splat(factor))
    for c in range(span[0], span[1], LANES):
        left = span[1] - c
        for k in range(i, j):
            row = load(x, k * width + c, left) * splat(factor)
            total = total + load(r, k * wide + c, left) * row
    return add_up(total)


@entry("n n n n i x x i x d x")
def dots(
    n: int, width: int, layers: int, size: int, starts: Any, r: Any, x: Any,
    index: Any, scale: Any, total: Any, out: Any,
) -> int:  # fmt: skip
    """Inner products of each layer, summed over the rows of each group."""
    wide = width + layers
    _clear(total, size * layers)
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        factor = scale[b]
        for layer in range(layers):
            span = starts[layer], starts[layer + 1]
            more = float(_product(r, x, wide, width, i, j, span, factor))
            for k in range(i, j):
                more += r[k * wide + width + layer] * factor
            total[b * layers + layer] += more
        i = j
    for place in range(size * layers):
        out[place] = total[place]
    return 0


@entry("n n n i x x i x x x x")
def dots_backward(
    n: int, width: int, layers: int, starts: Any, r: Any, x: Any, index: Any,
    scale: Any, grad: Any, grad_r: Any, grad_x: Any,
) -> int:  # fmt: skip
    """Writes the gradients of both factors."""
    wide = width + layers
    for i in range(n):
        b = index[i]
        for layer in range(layers):
            slope = grad[b * layers + layer] * scale[b]
            for c in range(starts[layer], starts[layer + 1], LANES):
                left = starts[layer + 1] - c
                row, other = load(x, i * width + c, left), load(r, i * wide + c, left)
                store(grad_r, i * wide + c, splat(slope) * row, left)
                store(grad_x, i * width + c, splat(slope) * other, left)
            grad_r[i * wide + width + layer] = slope
    return 0


@entry("n n n i x x i x x")
def mix(
    n: int, width: int, layers: int, starts: Any, weights: Any, x: Any, index: Any,
    scale: Any, out: Any,
) -> int:  # fmt: skip
    """Writes weighted activations and weights."""
    wide = width + layers
    for i in range(n):
        b = index[i]
        factor = scale[b]
        for layer in range(layers):
            weight = weights[b * layers + layer]
            for c in range(starts[layer], starts[layer + 1], LANES):
                left = starts[layer + 1] - c
                row = load(x, i * width + c, left) * splat(factor) * splat(weight)
                store(out, i * wide + c, row, left)
            out[i * wide + width + layer] = factor * weight
    return 0


@entry("n n n n i x x i x x d x x")
def mix_backward(
    n: int, width: int, layers: int, size: int, starts: Any, weights: Any, x: Any,
    index: Any, scale: Any, grad: Any, total: Any, grad_weights: Any, grad_x: Any,
) -> int:  # fmt: skip
    """Writes the gradients of the weights and of the activations."""
    wide = width + layers
    _clear(total, size * layers)
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        factor = scale[b]
        for layer in range(layers):
            start, stop = starts[layer], starts[layer + 1]
            weight = weights[b * layers + layer] * factor
            more = float(_product(grad, x, wide, width, i, j, (start, stop), factor))
            for k in range(i, j):
                more += grad[k * wide + width + layer] * factor
                for c in range(start, stop, LANES):
                    up = load(grad, k * wide + c, stop - c)
                    store(grad_x, k * width + c, splat(weight) * up, stop - c)
            total[b * layers + layer] += more
        i = j
    for place in range(size * layers):
        grad_weights[place] = total[place]
    return 0
