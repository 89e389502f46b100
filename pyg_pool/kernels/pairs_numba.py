"""Numba twin of ``pairs.py``: counting instead of sorting, one pass over features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyg_pool.kernels.coalesce_numba import counted_order

Array = NDArray[Any]

# Sums may be reordered; NaN and infinity keep their meaning.
LOOSE = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True)
def is_sorted_undirected(row: Array, col: Array, num_nodes: int) -> bool:
    """Whether edges are sorted, distinct, and there in both directions."""
    cursor = np.zeros(num_nodes + 1, np.int64)
    for e in range(row.size):
        if e > 0 and (
            row[e] < row[e - 1] or (row[e] == row[e - 1] and col[e] <= col[e - 1])
        ):
            return False
        cursor[row[e] + 1] += 1
    for u in range(num_nodes):
        cursor[u + 1] += cursor[u]
    # The edges into a node come in the order of the edges out of it.
    for e in range(row.size):
        place = cursor[col[e]]
        if place >= row.size or row[place] != col[e] or col[place] != row[e]:
            return False
        cursor[col[e]] = place + 1
    return True


@njit(nogil=True, cache=True)
def distinct_pairs(edge_index: Array, num_nodes: int) -> Array:
    """Pairs of neighbours, each once, lower node first, ascending."""
    row, col = edge_index[0], edge_index[1]
    count = 0
    if is_sorted_undirected(row, col, num_nodes):
        for e in range(row.size):
            count += row[e] < col[e]
        out = np.empty((2, count), np.int64)
        count = 0
        for e in range(row.size):
            if row[e] < col[e]:
                out[0, count], out[1, count] = row[e], col[e]
                count += 1
        return out
    low, high = np.minimum(row, col), np.maximum(row, col)
    order = counted_order(low, high, num_nodes)
    out = np.empty((2, row.size), np.int64)
    for k in range(row.size):
        a, b = low[order[k]], high[order[k]]
        if a == b or (count > 0 and out[0, count - 1] == a and out[1, count - 1] == b):
            continue
        out[0, count], out[1, count] = a, b
        count += 1
    return out[:, :count].copy()


@njit(nogil=True, cache=True, fastmath=LOOSE)
def logits(x: Array, pairs: Array, weight: Array, out: Array) -> None:
    """Writes the weighted inner product of each pair of rows."""
    zero = x.dtype.type(0)
    for e in range(out.size):
        a, b = x[pairs[0, e]], x[pairs[1, e]]
        total = zero
        for f in range(weight.size):
            total += a[f] * b[f] * weight[f]
        out[e] = total


@njit(nogil=True, cache=True, fastmath=LOOSE)
def logits_backward(
    x: Array, pairs: Array, weight: Array, grad: Array, grad_x: Array,
    grad_weight: Array,
) -> None:  # fmt: skip
    """Adds the gradients of the rows and of the weights."""
    for e in range(grad.size):
        i, j, slope = pairs[0, e], pairs[1, e], grad[e]
        a, b, up, down = x[i], x[j], grad_x[i], grad_x[j]
        # Few arrays at a time, so that the loops run in vector registers.
        for f in range(weight.size):
            grad_weight[f] += slope * a[f] * b[f]
        for f in range(weight.size):
            up[f] += slope * weight[f] * b[f]
        for f in range(weight.size):
            down[f] += slope * weight[f] * a[f]


@njit(nogil=True, cache=True)
def cluster_scores(
    links: Array, logit: Array, cluster: Array, mean: Array, count: Array, slope: Array
) -> None:
    """Writes mean and number of the scores inside clusters, and their slopes."""
    one = logit.dtype.type(1)
    for e in range(logit.size):
        i, j = links[0, e], links[1, e]
        c = cluster[i]
        slope[e] = 0
        if c != cluster[j]:
            continue
        times = one if i == j else one + one
        score = one / (one + np.exp(-logit[e]))
        mean[c] += times * score
        count[c] += times
        slope[e] = times * score * (one - score)
    for c in range(count.size):
        if count[c] == 0:
            mean[c], count[c] = 1, 1
        mean[c] /= count[c]


@njit(nogil=True, cache=True, fastmath=LOOSE)
def cluster_scores_backward(
    x: Array, weight: Array, links: Array, cluster: Array, slope: Array, grad: Array,
    grad_x: Array, grad_weight: Array,
) -> float:  # fmt: skip
    """Adds the gradients of rows and weights; returns that of the offset."""
    total = 0.0
    for e in range(slope.size):
        if slope[e] == 0:
            continue
        i, j = links[0, e], links[1, e]
        step = slope[e] * grad[cluster[i]]
        total += step
        a, b, up, down = x[i], x[j], grad_x[i], grad_x[j]
        # Few arrays at a time, so that the loops run in vector registers.
        for f in range(weight.size):
            grad_weight[f] += step * a[f] * b[f]
        for f in range(weight.size):
            up[f] += step * weight[f] * b[f]
        for f in range(weight.size):
            down[f] += step * weight[f] * a[f]
    return total


@njit(nogil=True, cache=True)
def product(x: Array, pairs: Array, out: Array) -> None:
    """Writes the product of each pair of rows."""
    for e in range(out.shape[0]):
        a, b, row = x[pairs[0, e]], x[pairs[1, e]], out[e]
        for f in range(row.size):
            row[f] = a[f] * b[f]


@njit(nogil=True, cache=True)
def product_backward(x: Array, pairs: Array, grad: Array, out: Array) -> None:
    """Adds the gradients of the rows."""
    for e in range(grad.shape[0]):
        i, j, row = pairs[0, e], pairs[1, e], grad[e]
        a, b, up, down = x[i], x[j], out[i], out[j]
        for f in range(row.size):
            up[f] += row[f] * b[f]
        for f in range(row.size):
            down[f] += row[f] * a[f]
