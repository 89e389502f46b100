"""Synthetic graphs of any size: planted partition, shuffled grid, RMAT."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_matrix

GRAPHS = ("sbm", "grid", "rmat")
# Scale and edges drawn by nodes; between these, about ten edges for each node.
_RMAT = {100_000: (14, 7), 1_000_000: (17, 8), 10**7: (20, 10), 5 * 10**7: (22, 13)}


def symmetric(row: Any, col: Any, size: int) -> Any:
    """Undirected, without loops and duplicates, as CSR of float32 ones."""
    kept = row != col
    row, col = row[kept], col[kept]
    low, high = np.minimum(row, col), np.maximum(row, col)
    key = np.unique(low.astype(np.int64) * size + high)
    low, high = (key // size).astype(np.int32), (key % size).astype(np.int32)
    del key
    both = (np.concatenate([low, high]), np.concatenate([high, low]))
    out = coo_matrix((np.ones(both[0].size, np.float32), both), (size, size)).tocsr()
    out.sort_indices()
    return out


def sbm(edges: int, seed: int = 7) -> Any:
    """Blocks of 100 nodes, mean degree 16 inside and 4 outside."""
    random = np.random.default_rng(seed)
    size = max(edges // 1000 * 100, 200)
    inner, outer = size * 8, size * 2
    block = random.integers(0, size // 100, inner) * 100
    row = block + random.integers(0, 100, inner)
    col = block + random.integers(0, 100, inner)
    far = random.integers(0, size, (2, outer))
    return symmetric(np.concatenate([row, far[0]]), np.concatenate([col, far[1]]), size)


def grid(edges: int, seed: int = 7) -> Any:
    """A square grid whose nodes are shuffled."""
    side = round((edges / 2) ** 0.5)
    name = np.random.default_rng(seed).permutation(side * side)
    node = np.arange(side * side).reshape(side, side)
    row = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
    col = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
    return symmetric(name[row], name[col], side * side)


def rmat(edges: int, seed: int = 7) -> Any:
    """Recursive matrix graph (.57, .19, .19, .05): heavy tails, isolated nodes."""
    scale = max(round(np.log2(edges / 10)), 1)
    count = edges
    if edges in _RMAT:
        scale, factor = _RMAT[edges]
        count = factor << scale
    random = np.random.default_rng(seed)
    row = np.zeros(count, np.int64)
    col = np.zeros(count, np.int64)
    for _ in range(scale):
        draw = random.random(count, dtype=np.float32)
        down = draw >= 0.76
        right = ((draw >= 0.57) & (draw < 0.76)) | (draw >= 0.95)
        row = 2 * row + down
        col = 2 * col + right
    return symmetric(row, col, 1 << scale)


def make(name: str, edges: int) -> Any:
    """One of the graphs as a SciPy CSR matrix."""
    return {"sbm": sbm, "grid": grid, "rmat": rmat}[name](edges)
