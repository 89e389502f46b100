"""Methods to compare with: exact on small graphs, slow on large ones.

Source: Yu Jin, Andreas Loukas, Joseph JaJa: Graph Coarsening with Preserved Spectral
Properties, AISTATS 2020 (``"mgc"``, ``"sgc"``); ``loukas`` and ``kron`` name theirs.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.dense_numba import mgc_merges
from pyg_pool.coarsen.graph import Graph
from pyg_pool.coarsen.kron import kron
from pyg_pool.coarsen.loukas import loukas
from pyg_pool.coarsen.spectral import normalised_laplacian

__all__ = ["mgc", "rival", "sgc"]

Array = NDArray[Any]


def rival(
    method: str, graph: Graph, target: int, seed: int = 0
) -> tuple[Array, Array | None]:
    """Cluster of each node, and the nodes kept by a method without clusters."""
    adjacency = graph.to_scipy()
    if method == "mgc":
        return mgc(adjacency, target), None
    if method == "sgc":
        return sgc(adjacency, target, seed), None
    if method == "kron":
        kept = kron(adjacency, target)
        label = np.full(graph.num_nodes, -1)
        label[kept] = np.arange(kept.size)
        return label, kept
    return loukas(method, adjacency, target, seed), None


def mgc(adjacency: Any, target: int) -> Array:
    """Merges the pair whose normalised rows are nearest in sum of differences.

    Of all pairs, neighbours or not, the first one on ties; a merged node goes last.
    """
    return np.asarray(mgc_merges(np.asarray(adjacency.toarray(), np.float64), target))


def sgc(adjacency: Any, target: int, seed: int = 0) -> Array:
    """Ordinary k-means on slow and fast eigenvectors; the best split of them wins."""
    from scipy.cluster.vq import kmeans2

    values, vectors = np.linalg.eigh(
        normalised_laplacian(np.asarray(adjacency.toarray()))
    )
    n, size = target, values.size
    low, high = values[:n], values[size - n :]
    best, least = np.zeros(size, np.int64), np.inf
    for k in range(n):
        if low[k] > 1 or (k < n - 1 and high[k + 1] < 1):
            continue
        rows = np.concatenate(
            [vectors[:, : k + 1], vectors[:, size - (n - k - 1) :]], axis=1
        )
        label = _filled(rows, n, seed, kmeans2)
        member = np.eye(n)[label]
        found = np.linalg.eigvalsh(normalised_laplacian(member.T @ adjacency @ member))
        gap = np.abs(found[: k + 1] - low[: k + 1]).sum()
        gap += np.abs(found[k + 1 :] - high[k + 1 :]).sum()
        if gap < least:
            best, least = label, float(gap)
    return best if np.isfinite(least) else _filled(vectors[:, :n], n, seed, kmeans2)


def _filled(rows: Array, n: int, seed: int, kmeans2: Any) -> Array:
    """Labels of k-means of which none is empty: lone ones get the farthest rows."""
    random = np.random.default_rng(seed)
    word = "rng" if "rng" in signature(kmeans2).parameters else "seed"  # SciPy 1.15
    drawn = {word: random}
    centres, label = kmeans2(rows, n, minit="++", missing="warn", **drawn)
    label = label.astype(np.int64)
    count = np.bincount(label, minlength=n)
    order = iter(np.argsort(-((rows - centres[label]) ** 2).sum(1), kind="stable"))
    for k in np.flatnonzero(count == 0):
        for i in order:
            if count[label[i]] > 1:
                count[label[i]] -= 1
                label[i] = k
                break
    return label
