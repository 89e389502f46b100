"""Graphs that the tests of this room share."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_matrix

from pyg_pool.coarsen import Graph, graph_from_rows


def blocks(size: int, seed: int = 3, weighted: bool = False) -> Any:
    """Blocks of 50 nodes with some edges between them, as a SciPy matrix."""
    random = np.random.default_rng(seed)
    inner = random.integers(0, size // 50, 6 * size) * 50
    row = np.concatenate(
        [inner + random.integers(0, 50, inner.size), random.integers(0, size, size)]
    )
    col = np.concatenate(
        [inner + random.integers(0, 50, inner.size), random.integers(0, size, size)]
    )
    kept = row != col
    value = random.random(row.size) + 0.1 if weighted else np.ones(row.size)
    out = coo_matrix((value[kept], (row[kept], col[kept])), (size, size)).tocsr()
    out = (out + out.T).tocsr()
    if not weighted:
        out.data[:] = 1
    out.sort_indices()
    return out


def graph(size: int, seed: int = 3, weighted: bool = False) -> Graph:
    rows = blocks(size, seed, weighted)
    return graph_from_rows(rows.indptr, rows.indices, rows.data)


def ring(size: int) -> Any:
    nodes = np.arange(size)
    both = (np.append(nodes, (nodes + 1) % size), np.append((nodes + 1) % size, nodes))
    return coo_matrix((np.ones(2 * size), both), (size, size)).tocsr()
