"""Numba twin of ``parse_bounded.py``: links one by one, groups by union."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]


@njit(nogil=True, cache=True)
def _find(root: Array, node: int) -> int:
    """The node that stands for a group; shortens the way there."""
    while root[node] != node:
        root[node] = root[root[node]]
        node = root[node]
    return node


@njit(nogil=True, cache=True)
def roots(order: Array, link: Array, max_size: int) -> Array:
    """A node of its group for each node, links taken in the order of ``order``."""
    root, size = np.arange(link.size), np.ones(link.size, np.int64)
    for k in range(order.size):
        a, b = _find(root, order[k]), _find(root, link[order[k]])
        if a != b and size[a] + size[b] <= max_size:
            low, high = min(a, b), max(a, b)
            root[high] = low
            size[low] += size[high]
    return root
