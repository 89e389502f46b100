"""Numba twin of ``segment_attention.py``: no weight is held for a score per channel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pyg_pool.kernels.entry_numba import entry
from pyg_pool.kernels.exponential_numba import exp, exp_down
from pyg_pool.kernels.lanes_numba import LANES, add_up, like, load, splat, store
from pyg_pool.kernels.segment_numba import (
    UNMET,
    WIDE,
    aside,
    four,
    plus,
    put,
    run_end,
)
from pyg_pool.kernels.softmax_numba import not_zero, shift_of, top_of, zeros
from pyg_pool.kernels.wide_numba import (
    all_exp,
    all_exp_down,
    all_not_zero,
    all_shift_of,
    divided,
    larger,
    minus,
    product,
    same,
    times,
)

# What a backward kernel writes: gradients of values, of scores, or of both as one.
VALUES, SCORES, SAME = 1, 2, 4


@njit(inline="always")
def _wide_forward(
    scores: Any, values: Any, i: int, j: int, width: int, c: int, at: int, block: int,
    is_new: Any, kept: Any, out: Any,
) -> None:  # fmt: skip
    """What ``forward`` does with some rows, for ``WIDE`` channels."""
    zero = load(scores, 0, 0)
    added = mixed = same(zero)
    top = same(like(zero, -np.inf))
    if not is_new:
        top = four(kept, at)
    new = top
    for k in range(i, j):
        new = larger(new, four(scores, k * width + c))
    shift = all_shift_of(new)
    if not is_new:
        share = all_exp(minus(all_shift_of(top), shift))
        added = times(share, four(kept, block + at))
        mixed = times(share, four(out, at))
    for k in range(i, j):
        here = k * width + c
        weight = all_exp_down(minus(four(scores, here), shift))
        added = plus(added, weight)
        mixed = plus(mixed, times(weight, four(values, here)))
    put(kept, at, new)
    put(kept, block + at, added)
    put(out, at, mixed)


@entry("n n n n n x x i x x")
def forward(
    start: int, stop: int, n: int, width: int, size: int, scores: Any, values: Any,
    index: Any, kept: Any, out: Any,
) -> int:  # fmt: skip
    """Weighted sums in one pass; ``kept`` gets largest scores, sums of exponentials."""
    block, i = size * width, 0
    for e in range(size):
        for c in range(start, stop, LANES):
            at, left, zero = e * width + c, stop - c, load(scores, 0, 0)
            store(kept, block + at, like(zero, UNMET), left)
            store(out, at, zero, left)
    while i < n:
        b, j = index[i], run_end(index, i, n)
        if b < 0 or b >= size:
            return 1
        aside(scores, i, j, n, width, start, stop)
        is_new = start < stop and kept[block + b * width + start] == UNMET
        c = start
        while c + WIDE <= stop:
            at = b * width + c
            _wide_forward(
                scores, values, i, j, width, c, at, block, is_new, kept, out
            )  # fmt: skip
            c += WIDE
        while c < stop:
            at, left = b * width + c, stop - c
            top = like(load(scores, 0, 0), -np.inf)
            if not is_new:
                top = load(kept, at, left)
            new = top_of(scores, i, j, width, c, left, top)
            shift = shift_of(new)
            added, mixed = zeros(new), zeros(new)
            if not is_new:
                share = exp(shift_of(top) - shift)
                added = share * load(kept, block + at, left)
                mixed = share * load(out, at, left)
            for k in range(i, j):
                here = k * width + c
                weight = exp_down(load(scores, here, left) - shift)
                added = added + weight
                mixed = mixed + weight * load(values, here, left)
            store(kept, at, new, left)
            store(kept, block + at, added, left)
            store(out, at, mixed, left)
            c += LANES
        i = j
    for e in range(size):
        for c in range(start, stop, LANES):
            at, left = e * width + c, stop - c
            mean = load(out, at, left)
            mean = mean / not_zero(load(kept, block + at, left))
            store(out, at, mean + zeros(mean), left)
    return 0


@njit(inline="always")
def _wide_backward(
    i: int, j: int, width: int, c: int, at: int, block: int, scores: Any, values: Any,
    kept: Any, out: Any, grad: Any, wanted: int, grad_values: Any, grad_scores: Any,
) -> None:  # fmt: skip
    """What ``backward`` does with some rows, for ``WIDE`` channels."""
    shift = all_shift_of(four(kept, at))
    factor = divided(four(grad, at), all_not_zero(four(kept, block + at)))
    mean = four(out, at)
    if wanted == SAME:
        mean = minus(mean, same(like(mean[0], 1.0)))
    for k in range(i, j):
        here = k * width + c
        weight = all_exp_down(minus(four(scores, here), shift))
        weight = times(weight, factor)
        if wanted & VALUES:
            put(grad_values, here, weight)
        if wanted & (SCORES | SAME):
            put(grad_scores, here, times(weight, minus(four(values, here), mean)))


@entry("n n n n x x i x x x n x x")
def backward(
    start: int, stop: int, width: int, size: int, scores: Any, values: Any,
    index: Any, kept: Any, out: Any, grad: Any, wanted: int, grad_values: Any,
    grad_scores: Any,
) -> int:  # fmt: skip
    """Writes the gradients that are wanted."""
    i = start
    while i < stop:
        b, j = index[i], run_end(index, i, stop)
        aside(scores, i, j, stop, width, 0, width)
        c = 0
        while c + WIDE <= width:
            _wide_backward(
                i, j, width, c, b * width + c, size * width, scores, values, kept,
                out, grad, wanted, grad_values, grad_scores,
            )  # fmt: skip
            c += WIDE
        while c < width:
            at, left = b * width + c, width - c
            shift = shift_of(load(kept, at, left))
            total = load(kept, size * width + at, left)
            factor = load(grad, at, left) / not_zero(total)
            mean = load(out, at, left)
            if wanted == SAME:
                mean = mean - like(mean, 1.0)
            for k in range(i, j):
                here = k * width + c
                weight = exp_down(load(scores, here, left) - shift) * factor
                if wanted & VALUES:
                    store(grad_values, here, weight, left)
                if wanted & (SCORES | SAME):
                    moved = weight * (load(values, here, left) - mean)
                    store(grad_scores, here, moved, left)
            c += LANES
        i = j
    return 0


@entry("n n n n n n x x i x")
def add_weighted(
    start: int, stop: int, n: int, heads: int, depth: int, size: int, weight: Any,
    values: Any, index: Any, out: Any,
) -> int:  # fmt: skip
    """Sums of rows times the weight of their head; a head has ``depth`` channels."""
    width = heads * depth
    for e in range(size):
        for c in range(start, stop, LANES):
            store(out, e * width + c, load(values, 0, 0), stop - c)
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        aside(values, i, j, n, width, start, stop)
        for h in range(start // depth, (stop + depth - 1) // depth):
            c, last = max(start, h * depth), min(stop, (h + 1) * depth)
            while c + WIDE <= last:
                mixed = four(out, b * width + c)
                for k in range(i, j):
                    w, v = splat(weight[k * heads + h]), four(values, k * width + c)
                    mixed = plus(mixed, (w * v[0], w * v[1], w * v[2], w * v[3]))
                put(out, b * width + c, mixed)
                c += WIDE
            while c < last:
                at, left = b * width + c, last - c
                total = load(out, at, left)
                for k in range(i, j):
                    value = load(values, k * width + c, left)
                    total = total + splat(weight[k * heads + h]) * value
                store(out, at, total, left)
                c += LANES
        i = j
    return 0


@njit(inline="always")
def _product(x: Any, i: int, y: Any, j: int, depth: int) -> Any:
    """Sum of products of neighbouring numbers."""
    total = load(x, 0, 0)
    for c in range(0, depth, LANES):
        total = total + load(x, i + c, depth - c) * load(y, j + c, depth - c)
    return add_up(total)


@njit(inline="always")
def _head_backward(
    i: int, j: int, heads: int, depth: int, h: int, up: int, weight: Any, values: Any,
    grad: Any, wanted: int, grad_values: Any, grad_scores: Any,
) -> None:  # fmt: skip
    """Gradients of some rows through one head; those of scores lack the weight."""
    width, c = heads * depth, 0
    while c + WIDE <= depth:
        slopes = four(grad, up + c)
        for k in range(i, j):
            e, here = k * heads + h, k * width + h * depth + c
            if wanted & SCORES:
                grad_scores[e] += product(slopes, values, here)
            if wanted & VALUES:
                put(grad_values, here, times(same(splat(weight[e])), slopes))
        c += WIDE
    while c < depth:
        slope, left = load(grad, up + c, depth - c), depth - c
        for k in range(i, j):
            e, here = k * heads + h, k * width + h * depth + c
            if wanted & SCORES:
                grad_scores[e] += add_up(slope * load(values, here, left))
            if wanted & VALUES:
                store(grad_values, here, splat(weight[e]) * slope, left)
        c += LANES


@entry("n n n n x x i x x n x x")
def weighted_backward(
    start: int, stop: int, heads: int, depth: int, weight: Any, values: Any,
    index: Any, out: Any, grad: Any, wanted: int, grad_values: Any, grad_scores: Any,
) -> int:  # fmt: skip
    """Gradients of weighted sums for rows ``start`` to ``stop``, those wanted."""
    width = heads * depth
    i = start
    while i < stop:
        b, j = index[i], run_end(index, i, stop)
        aside(values, i, j, stop, width, 0, width)
        for h in range(heads):
            up = b * width + h * depth
            if wanted & SCORES:
                inner = _product(grad, up, out, up, depth)
                for k in range(i, j):
                    grad_scores[k * heads + h] = -inner
            _head_backward(
                i, j, heads, depth, h, up, weight, values, grad, wanted, grad_values,
                grad_scores,
            )  # fmt: skip
            if wanted & SCORES:
                for k in range(i, j):
                    grad_scores[k * heads + h] *= weight[k * heads + h]
        i = j
    return 0
