"""Compiled loops on a dense similarity: Ward merging, moves of single nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]


@njit(nogil=True, cache=True)
def pair_cost(q: Array, c: Array, k: int, j: int) -> float:
    """What merging two clusters adds to the objective."""
    total = c[k] + c[j]
    return q[k, k] / c[k] + q[j, j] / c[j] - (q[k, k] + q[j, j] + 2 * q[k, j]) / total


@njit(nogil=True, cache=True)
def _nearest(q: Array, c: Array, alive: Array, k: int) -> tuple[int, float]:
    """The cheapest partner above ``k``, the first one on ties."""
    best, cost = -1, np.inf
    for j in range(k + 1, c.size):
        if alive[j]:
            w = pair_cost(q, c, k, j)
            if w < cost:
                best, cost = j, w
    return best, cost


@njit(nogil=True, cache=True)
def ward_merges(q: Array, c: Array, target: int) -> Array:
    """Merges the cheapest pair until ``target`` clusters are left.

    ``q`` and ``c`` are overwritten. Returns the first member of each node's cluster.
    """
    n = c.size
    alive = np.ones(n, np.bool_)
    owner = np.arange(n)
    partner = np.full(n, -1)
    cost = np.full(n, np.inf)
    for k in range(n):
        partner[k], cost[k] = _nearest(q, c, alive, k)
    for _ in range(n - target):
        k = int(np.argmin(cost))
        j = partner[k]
        alive[j] = False
        cost[j] = np.inf
        c[k] += c[j]
        for i in range(n):
            q[k, i] += q[j, i]
        for i in range(n):
            q[i, k] += q[i, j]
        for i in range(n):
            if owner[i] == j:
                owner[i] = k
        partner[k], cost[k] = _nearest(q, c, alive, k)
        for i in range(n):
            if not alive[i] or i == k:
                continue
            if partner[i] == j or partner[i] == k:
                partner[i], cost[i] = _nearest(q, c, alive, i)
            elif i < k:
                w = pair_cost(q, c, i, k)
                if w < cost[i] or (w == cost[i] and k < partner[i]):
                    partner[i], cost[i] = k, w
    return owner


@njit(nogil=True, cache=True)
def single_moves(q: Array, m: Array, label: Array, n: int, limit: int) -> int:
    """Moves single nodes to better clusters, in order, until none improves.

    ``label`` is overwritten. Returns the number of moves.
    """
    size = m.size
    c = np.zeros(n)
    count = np.zeros(n, np.int64)
    own = np.zeros(n)
    for i in range(size):
        c[label[i]] += m[i]
        count[label[i]] += 1
        for j in range(size):
            if label[j] == label[i]:
                own[label[i]] += q[i, j]
    total = 0
    for _ in range(limit):
        moved = 0
        for i in range(size):
            a = label[i]
            if count[a] < 2:
                continue
            s = np.zeros(n)
            for j in range(size):
                if j != i:
                    s[label[j]] += q[i, j]
            loss = own[a] / c[a] - (own[a] - 2 * s[a] - q[i, i]) / (c[a] - m[i])
            best, gain = -1, 1e-12 * max(1.0, abs(loss))
            for b in range(n):
                if b != a:
                    new = (own[b] + 2 * s[b] + q[i, i]) / (c[b] + m[i]) - own[b] / c[b]
                    if new - loss > gain:
                        best, gain = b, new - loss
            if best >= 0:
                own[a] -= 2 * s[a] + q[i, i]
                own[best] += 2 * s[best] + q[i, i]
                c[a] -= m[i]
                c[best] += m[i]
                count[a] -= 1
                count[best] += 1
                label[i] = best
                moved += 1
        total += moved
        if moved == 0:
            break
    return total


@njit(nogil=True, cache=True)
def mgc_merges(a: Array, target: int) -> Array:
    """Merges the pair of nearest normalised rows until ``target`` nodes are left.

    ``a`` is overwritten. A merged node takes the last place; returns the final labels.
    """
    n = a.shape[0]
    owner = np.arange(n)
    size = n
    while size > target:
        rows = np.zeros((size, size))
        for i in range(size):
            total = a[i, :size].sum()
            if total != 0:
                rows[i] = a[i, :size] / total
        left, right, least = 0, 1, np.inf
        for i in range(size):
            for j in range(i + 1, size):
                gap = np.abs(rows[i] - rows[j]).sum()
                if gap < least:
                    left, right, least = i, j, gap
        place = np.empty(size, np.int64)
        count = 0
        for i in range(size):
            if i != left and i != right:
                place[i] = count
                count += 1
        place[left] = count
        place[right] = count
        small = np.zeros((size - 1, size - 1))
        for i in range(size):
            for j in range(size):
                small[place[i], place[j]] += a[i, j]
        for i in range(n):
            owner[i] = place[owner[i]]
        size -= 1
        a[:size, :size] = small
    return owner
