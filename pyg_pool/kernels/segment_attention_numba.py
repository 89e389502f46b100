"""Numba twin of ``segment_attention.py``: no weight is held for a score per channel."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyg_pool.kernels.entry_numba import entry
from pyg_pool.kernels.exponential_numba import exp, exp_down
from pyg_pool.kernels.lanes_numba import LANES, add_up, like, load, splat, store
from pyg_pool.kernels.segment_numba import not_zero, run_end, shift_of, top_of, zeros

# What a backward kernel writes: gradients of values, of scores, or of both as one.
VALUES, SCORES, SAME = 1, 2, 4


@entry("n n n n n x x i x x x")
def forward(
    start: int, stop: int, n: int, width: int, size: int, scores: Any, values: Any,
    index: Any, top: Any, total: Any, out: Any,
) -> int:  # fmt: skip
    """Weighted sums, the largest scores and the sums of exponentials, in one pass."""
    for b in range(size):
        for c in range(start, stop, LANES):
            zero = load(scores, 0, 0)
            store(top, b * width + c, like(zero, -np.inf), stop - c)
            store(total, b * width + c, zero, stop - c)
            store(out, b * width + c, zero, stop - c)
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        for c in range(start, stop, LANES):
            at, left = b * width + c, stop - c
            old = load(top, at, left)
            new = top_of(scores, i, j, width, c, left, old)
            shift = shift_of(new)
            kept = exp(shift_of(old) - shift)
            added, mixed = zeros(new), zeros(new)
            for k in range(i, j):
                here = k * width + c
                weight = exp_down(load(scores, here, left) - shift)
                added = added + weight
                mixed = mixed + weight * load(values, here, left)
            store(top, at, new, left)
            store(total, at, load(total, at, left) * kept + added, left)
            store(out, at, load(out, at, left) * kept + mixed, left)
        i = j
    for b in range(size):
        for c in range(start, stop, LANES):
            at, left = b * width + c, stop - c
            mean = load(out, at, left) / not_zero(load(total, at, left))
            store(out, at, mean, left)
    return 0


@entry("n n n x x i x x x x n x x")
def backward(
    start: int, stop: int, width: int, scores: Any, values: Any, index: Any,
    top: Any, total: Any, out: Any, grad: Any, wanted: int, grad_values: Any,
    grad_scores: Any,
) -> int:  # fmt: skip
    """Writes the gradients that are wanted."""
    i = start
    while i < stop:
        b, j = index[i], run_end(index, i, stop)
        for c in range(0, width, LANES):
            at, left = b * width + c, width - c
            shift = shift_of(load(top, at, left))
            factor = load(grad, at, left) / not_zero(load(total, at, left))
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
        i = j
    return 0


@entry("n n n x i x x x")
def head_weights(
    n: int, heads: int, size: int, scores: Any, index: Any, top: Any, total: Any,
    weight: Any,
) -> int:  # fmt: skip
    """Softmax over rows with few scores each; exponentials run over many rows."""
    for e in range(size * heads):
        top[e], total[e] = -np.inf, 0.0
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        for h in range(heads):
            high = top[b * heads + h]
            for k in range(i, j):
                high = max(high, scores[k * heads + h])
            top[b * heads + h] = high
        i = j
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        for h in range(heads):
            high = top[b * heads + h]
            shift = high if abs(high) < np.inf else np.float32(0)
            for k in range(i, j):
                weight[k * heads + h] = scores[k * heads + h] - shift
        i = j
    for e in range(0, n * heads, LANES):
        left = n * heads - e
        store(weight, e, exp_down(load(weight, e, left)), left)
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        for h in range(heads):
            added = np.float32(0)
            for k in range(i, j):
                added += weight[k * heads + h]
            total[b * heads + h] += added
        i = j
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        for h in range(heads):
            added = total[b * heads + h]
            factor = np.float32(1) if added == 0 else np.float32(1) / added
            for k in range(i, j):
                weight[k * heads + h] *= factor
        i = j
    return 0


@entry("n n n n n n x x i x")
def add_weighted(
    start: int, stop: int, n: int, heads: int, depth: int, size: int, weight: Any,
    values: Any, index: Any, out: Any,
) -> int:  # fmt: skip
    """Sums of rows times the weight of their head; a head has ``depth`` channels."""
    width = heads * depth
    for b in range(size):
        for c in range(start, stop, LANES):
            store(out, b * width + c, load(values, 0, 0), stop - c)
    i = 0
    while i < n:
        b, j = index[i], run_end(index, i, n)
        for h in range(start // depth, (stop + depth - 1) // depth):
            last = min(stop, (h + 1) * depth)
            for c in range(max(start, h * depth), last, LANES):
                at, left = b * width + c, last - c
                mixed = load(values, 0, 0)
                for k in range(i, j):
                    value = load(values, k * width + c, left)
                    mixed = mixed + splat(weight[k * heads + h]) * value
                store(out, at, load(out, at, left) + mixed, left)
        i = j
    return 0


@entry("n n n x x x")
def head_products(
    size: int, heads: int, depth: int, grad: Any, out: Any, inner: Any
) -> int:
    """For each segment and head the product of its result and gradient."""
    for e in range(size * heads):
        total = load(grad, 0, 0)
        for c in range(e * depth, (e + 1) * depth, LANES):
            left = (e + 1) * depth - c
            total = total + load(grad, c, left) * load(out, c, left)
        inner[e] = add_up(total)
    return 0


@entry("n n n n x x i x x n x x")
def weighted_backward(
    start: int, stop: int, heads: int, depth: int, weight: Any, values: Any,
    index: Any, grad: Any, inner: Any, wanted: int, grad_values: Any,
    grad_scores: Any,
) -> int:  # fmt: skip
    """Gradients of weighted sums for rows ``start`` to ``stop``, those wanted."""
    width = heads * depth
    for i in range(start, stop):
        b = index[i]
        for h in range(heads):
            factor = weight[i * heads + h]
            factors, total = splat(factor), load(values, 0, 0)
            for c in range(h * depth, (h + 1) * depth, LANES):
                left = (h + 1) * depth - c
                up = load(grad, b * width + c, left)
                if wanted & VALUES:
                    store(grad_values, i * width + c, factors * up, left)
                if wanted & SCORES:
                    total = total + up * load(values, i * width + c, left)
            if wanted & SCORES:
                moved = add_up(total) - inner[b * heads + h]
                grad_scores[i * heads + h] = factor * moved
    return 0
