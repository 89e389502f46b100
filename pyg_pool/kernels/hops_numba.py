"""Compiled twin of :mod:`pyg_pool.kernels.hops`."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

__all__ = ["hop_pairs"]


@numba.njit(cache=True, nogil=True)
def hop_pairs(ptr: Any, neighbour: Any, limit: int) -> Any:
    """Offsets, nodes and distances of the balls of all nodes."""
    size = ptr.size - 1
    mark = np.full(size, -1, np.int64)
    far = np.empty(size, np.int64)
    queue = np.empty(size, np.int64)
    out = np.zeros(size + 1, np.int64)
    room = max(16, 8 * size)
    nodes = np.empty(room, np.int64)
    hops = np.empty(room, np.int64)
    used = 0
    for root in range(size):
        head, tail = 0, 1
        queue[0], mark[root], far[root] = root, root, 0
        while head < tail:
            node = queue[head]
            head += 1
            if far[node] == limit:
                continue
            for place in range(ptr[node], ptr[node + 1]):
                other = neighbour[place]
                if mark[other] != root:
                    mark[other] = root
                    far[other] = far[node] + 1
                    queue[tail] = other
                    tail += 1
        if used + tail > nodes.size:
            room = max(2 * nodes.size, used + tail)
            more_nodes, more_hops = np.empty(room, np.int64), np.empty(room, np.int64)
            more_nodes[:used] = nodes[:used]
            more_hops[:used] = hops[:used]
            nodes, hops = more_nodes, more_hops
        found = np.sort(queue[:tail])
        for place in range(tail):
            nodes[used + place] = found[place]
            hops[used + place] = far[found[place]]
        used += tail
        out[root + 1] = used
    return out, nodes[:used].copy(), hops[:used].copy()
