"""Kron reduction: keeps nodes and eliminates the others, without clusters.

Source: Florian Dörfler, Francesco Bullo: Kron reduction of graphs with applications to
electrical networks, IEEE Transactions on Circuits and Systems I 60 (2013); the kept
half has the largest entries of the top eigenvector of the Laplacian.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyg_pool.coarsen.graph import Graph

__all__ = ["kron", "kron_edges"]

Array = NDArray[Any]
SMALL = 1e-12


def kron(adjacency: Any, target: int) -> Array:
    """Nodes to keep, ascending: halves, until ``target`` are left."""
    dense = np.asarray(adjacency.toarray(), dtype=np.float64)
    np.fill_diagonal(dense, 0)
    lap = np.diag(dense.sum(1)) - dense
    kept = np.arange(lap.shape[0])
    while kept.size > target:
        count = max(target, -(-kept.size // 2))
        _, vectors = np.linalg.eigh(lap)
        top = vectors[:, -1]
        top = top * np.sign(top[np.argmax(np.abs(top))])
        chosen = np.sort(np.argsort(-top, kind="stable")[:count])
        lap = _schur(lap, chosen)
        kept = kept[chosen]
    return kept


def _schur(lap: Array, kept: Array) -> Array:
    """The Laplacian on the kept nodes after the others are eliminated."""
    gone = np.setdiff1d(np.arange(lap.shape[0]), kept)
    inner = np.linalg.pinv(lap[np.ix_(gone, gone)], hermitian=True)
    side = lap[np.ix_(kept, gone)]
    return np.asarray(lap[np.ix_(kept, kept)] - side @ inner @ side.T)


def kron_edges(graph: Graph, kept: Tensor) -> tuple[Tensor, Tensor]:
    """Edges and weights between the kept nodes."""
    dense = graph.to_scipy(loops=False).toarray()
    lap = _schur(np.diag(dense.sum(1)) - dense, kept.numpy())
    weight = -lap
    np.fill_diagonal(weight, 0)
    weight = (weight + weight.T) / 2
    row, col = np.nonzero(weight > SMALL * max(weight.max(initial=0.0), 1.0))
    index = torch.from_numpy(np.stack([row, col]))
    return index, torch.from_numpy(weight[row, col]).float()
