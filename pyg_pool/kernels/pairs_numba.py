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
def sorted_pairs(row: Array, col: Array, num_nodes: int, out: Array) -> int:
    """Writes the pairs of sorted, distinct edges that are there in both directions.

    Returns:
        Their number, or -1 where the edges are not like that.
    """
    cursor = np.zeros(num_nodes, np.int64)
    count, met, node, before = 0, 0, -1, -1
    for e in range(row.size):
        if row[e] != node:
            if row[e] < node:
                return -1
            node, before = row[e], -1
            cursor[node] = count
        other = col[e]
        if other <= before or other == node:
            return -1
        before = other
        if other > node:
            out[0, count], out[1, count] = node, other
            count += 1
            continue
        # Edges to lower nodes come in the order of the pairs of these.
        place = cursor[other]
        if place >= count or out[0, place] != other or out[1, place] != node:
            return -1
        cursor[other] = place + 1
        met += 1
    return count if count == met else -1


@njit(nogil=True, cache=True)
def write_pairs(edge_index: Array, num_nodes: int, out: Array) -> int:
    """Writes the pairs of neighbours, lower node first, ascending; returns how many.

    Args:
        edge_index: Edges in any direction and number.
        num_nodes: Number of nodes.
        out: Place for a pair per edge.
    """
    row, col = edge_index[0], edge_index[1]
    count = sorted_pairs(row, col, num_nodes, out)
    if count >= 0:
        return count
    low, high = np.minimum(row, col), np.maximum(row, col)
    order = counted_order(low, high, num_nodes)
    count = 0
    for k in range(row.size):
        a, b = low[order[k]], high[order[k]]
        if a == b or (count > 0 and out[0, count - 1] == a and out[1, count - 1] == b):
            continue
        out[0, count], out[1, count] = a, b
        count += 1
    return count


@njit(nogil=True, cache=True)
def distinct_pairs(edge_index: Array, num_nodes: int) -> Array:
    """Pairs of neighbours, each once, lower node first, ascending."""
    out = np.empty((2, edge_index.shape[1]), np.int64)
    return out[:, : write_pairs(edge_index, num_nodes, out)].copy()


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
    links: Array, logit: Array, cluster: Array, mean: Array, count: Array
) -> tuple[Array, Array]:
    """Writes mean and number of the scores inside; returns these links, their slopes.

    A pair counts twice, a loop once.
    """
    one = logit.dtype.type(1)
    place, size = np.empty(logit.size + 1, np.int32), 0
    for e in range(logit.size):
        place[size] = e  # counts only where it is inside
        size += cluster[links[0, e]] == cluster[links[1, e]]
    inside, slope = np.empty((2, size), np.int64), np.empty(size, logit.dtype)
    for k in range(size):
        e = place[k]
        i, j = links[0, e], links[1, e]
        times = one if i == j else one + one
        score = one / (one + np.exp(-logit[e]))
        mean[cluster[i]] += times * score
        count[cluster[i]] += times
        inside[0, k], inside[1, k] = i, j
        slope[k] = times * score * (one - score)
    for c in range(count.size):
        if count[c] == 0:
            mean[c], count[c] = 1, 1
        mean[c] /= count[c]
    return inside, slope


@njit(nogil=True, cache=True, fastmath=LOOSE)
def cluster_scores_backward(
    x: Array, weight: Array, links: Array, cluster: Array, slope: Array, grad: Array,
    count: Array, grad_x: Array, grad_weight: Array,
) -> float:  # fmt: skip
    """Adds the gradients of rows and weights; returns that of the offset."""
    total = 0.0
    for e in range(slope.size):
        i, j = links[0, e], links[1, e]
        step = slope[e] * grad[cluster[i]] / count[cluster[i]]
        total += step
        a, b, up, down = x[i], x[j], grad_x[i], grad_x[j]
        for f in range(weight.size):
            one, other, pull = a[f], b[f], step * weight[f]
            grad_weight[f] += step * one * other
            up[f] += pull * other
            down[f] += pull * one
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
