r"""Local variation and matching methods of Loukas, for comparison on small graphs.

The target is a number of nodes and is never overshot. Costs are measured on vectors
``A`` that carry the slow part of the spectrum: at the first level
:math:`U_K \Lambda_K^{-1/2}` of the smallest eigenpairs of ``L = D - A``, later
:math:`B \Delta^{-1/2} V` with ``B`` handed up and :math:`B^\top L B = V \Delta V^\top`
(scaled and turned in the order, and with the general eigensolver, of the reference
code, whose clusters this reproduces).

Source: Andreas Loukas: Graph reduction with spectral and cut guarantees, JMLR 20
(2019).
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.graph import without_diagonal
from pyg_pool.coarsen.labels import compact

__all__ = ["METHODS", "edge_costs", "loukas", "neighborhood_costs", "slow_vectors"]

Array = NDArray[Any]
METHODS = (
    "variation_edges",
    "variation_neighborhoods",
    "variation_cliques",
    "heavy_edge",
    "algebraic",
    "affinity",
)
LEVELS = 10
VECTORS = 10
SMALL = 1e-10


def loukas(method: str, adjacency: Any, target: int, seed: int = 0) -> Array:
    """Cluster of each node after at most ten levels.

    Args:
        method: One of ``METHODS``.
        adjacency: Symmetric SciPy matrix; its diagonal is left out.
        target: Number of clusters not to go below.
        seed: Seed of the random vectors of two of the methods.
    """
    weights = adjacency.tocsr().astype(np.float64)
    label = np.arange(weights.shape[0])
    random = np.random.default_rng(seed)
    basis: Array | None = None
    for _ in range(LEVELS):
        size = weights.shape[0]
        if size <= target:
            break
        weights = without_diagonal(weights)
        vectors, basis = slow_vectors(weights, basis)
        merged = _level(method, weights, vectors, size - target, random)
        step = compact(merged)
        count = int(step.max()) + 1
        if count == size:
            break
        label = step[label]
        weights, basis = _coarse(weights, basis, step, count)
    return label


def laplacian(weights: Any) -> Array:
    """``D - A``, dense."""
    dense = np.asarray(weights.toarray())
    return np.asarray(np.diag(dense.sum(1)) - dense)


def slow_vectors(weights: Any, basis: Array | None) -> tuple[Array, Array]:
    """The vectors that costs are measured on, and those to hand up."""
    lap = laplacian(weights)
    if basis is None:
        count = min(VECTORS, max(lap.shape[0] - 1, 1))
        values, vectors = np.linalg.eigh(lap)
        out = vectors[:, :count] * _inverse_root(values[:count])
        return out, out
    values, turn = np.linalg.eig(basis.T @ lap @ basis)
    return (basis * _inverse_root(values.real)) @ turn.real, basis


def _inverse_root(values: Array) -> Array:
    """``x ** -1/2``, and 0 for values that are 0 but for rounding."""
    keep = values > SMALL
    return np.where(keep, 1 / np.sqrt(np.where(keep, values, 1.0)), 0.0)


def _coarse(weights: Any, basis: Array, label: Array, count: int) -> tuple[Any, Array]:
    """Weights summed and vectors projected on the clusters."""
    from scipy.sparse import csr_matrix

    nodes = np.arange(label.size)
    member = csr_matrix((np.ones(label.size), (label, nodes)), (count, label.size))
    sizes = np.bincount(label, minlength=count)
    return (member @ weights @ member.T).tocsr(), (member @ basis) / np.sqrt(sizes)[
        :, None
    ]


def _level(method: str, weights: Any, vectors: Array, need: int, random: Any) -> Array:
    """First member of each node's set after one level."""
    size = weights.shape[0]
    if method == "variation_edges":
        row, col = _pairs(weights)
        return _match(row, col, edge_costs(weights, vectors, row, col), need, size)
    if method in ("variation_neighborhoods", "variation_cliques"):
        sets = (
            _neighborhoods(weights) if method.endswith("hoods") else _cliques(weights)
        )
        return _contract_sets(weights, vectors, sets, need)
    row, col = _pairs(weights)
    return _match(row, col, -_proximity(method, weights, row, col, random), need, size)


def _pairs(weights: Any) -> tuple[Array, Array]:
    """Edges, lower node first, in ascending order."""
    coo = weights.tocoo()
    upper = coo.row < coo.col
    row, col = coo.row[upper], coo.col[upper]
    order = np.lexsort((col, row))
    return row[order].astype(np.int64), col[order].astype(np.int64)


def _match(row: Array, col: Array, cost: Array, need: int, size: int) -> Array:
    """Disjoint edges, cheapest first."""
    owner = np.arange(size)
    used = np.zeros(size, dtype=bool)
    for e in np.argsort(cost, kind="stable"):
        i, j = row[e], col[e]
        if need <= 0:
            break
        if not used[i] and not used[j]:
            used[i] = used[j] = True
            owner[j] = i
            need -= 1
    return owner


def edge_costs(weights: Any, vectors: Array, row: Array, col: Array) -> Array:
    """Variation of contracting each edge."""
    degree = np.asarray(weights.sum(axis=1)).ravel()
    # Centred, the two rows are +-(a_i - a_j) / 2, so that the weight cancels out.
    half = (vectors[row] - vectors[col]) / 2
    gram = np.einsum("ek,el->ekl", half, half)
    factor = 2 * degree[row] + 2 * degree[col]
    return np.asarray(factor * np.sqrt((gram**2).sum(axis=(1, 2))))


def set_cost(weights: Any, degree: Array, vectors: Array, nodes: Array) -> float:
    """Variation of contracting a set, by its number of merges."""
    inner = np.asarray(weights[nodes][:, nodes].toarray())
    local = np.diag(2 * degree[nodes] - inner.sum(1)) - inner
    centred = vectors[nodes] - vectors[nodes].mean(axis=0)
    return float(np.linalg.norm(centred.T @ local @ centred) / (nodes.size - 1))


def neighborhood_costs(weights: Any, vectors: Array) -> Array:
    """Variation of contracting each node with its neighbours; infinite without any."""
    degree = np.asarray(weights.sum(axis=1)).ravel()
    return np.array(
        [
            set_cost(weights, degree, vectors, s) if s.size > 1 else np.inf
            for s in _neighborhoods(weights)
        ]
    )


def _neighborhoods(weights: Any) -> list[Array]:
    """Each node with its neighbours."""
    ptr, ids = weights.indptr, weights.indices
    return [
        np.unique(np.append(ids[ptr[i] : ptr[i + 1]], i))
        for i in range(weights.shape[0])
    ]


def _cliques(weights: Any) -> list[Array]:
    """Maximal cliques of at least two nodes."""
    import networkx

    graph = networkx.from_scipy_sparse_array(weights)
    found = [np.array(sorted(c)) for c in networkx.find_cliques(graph) if len(c) > 1]
    return sorted(found, key=lambda nodes: nodes.tolist())


def _contract_sets(weights: Any, vectors: Array, sets: list[Array], need: int) -> Array:
    """Cheapest sets first; what a set has lost to others is taken out of it."""
    degree = np.asarray(weights.sum(axis=1)).ravel()
    heap = [
        (set_cost(weights, degree, vectors, nodes), number, nodes)
        for number, nodes in enumerate(sets)
        if nodes.size > 1
    ]
    heapq.heapify(heap)
    owner = np.arange(weights.shape[0])
    used = np.zeros(owner.size, dtype=bool)
    while heap and need > 0:
        _, number, nodes = heapq.heappop(heap)
        free = nodes[~used[nodes]]
        if free.size == nodes.size and nodes.size - 1 <= need:
            used[nodes] = True
            owner[nodes] = nodes[0]
            need -= nodes.size - 1
        elif free.size != nodes.size and free.size > 1:
            cost = set_cost(weights, degree, vectors, free)
            heapq.heappush(heap, (cost, number, free))
    return owner


def _proximity(method: str, weights: Any, row: Array, col: Array, random: Any) -> Array:
    """Closeness of the ends of each edge; larger is closer."""
    if method == "heavy_edge":
        top = np.asarray(weights.max(axis=1).toarray()).ravel()
        weight = np.asarray(weights[row, col]).ravel()
        return np.asarray(weight / np.maximum(top[row], top[col]))
    degree = np.asarray(weights.sum(axis=1)).ravel()
    inverse = np.where(degree > 0, 1 / np.where(degree > 0, degree, 1), 0)[:, None]
    vectors = random.standard_normal((weights.shape[0], VECTORS))
    if method == "algebraic":
        for _ in range(20):
            vectors = vectors / 2 + inverse * (weights @ vectors) / 2
        gap = (vectors[row] - vectors[col]) ** 2
        return np.asarray((1 / np.maximum(gap, 1e-6)).min(axis=1))
    vectors = _gauss_seidel(weights, vectors, degree)
    square = (vectors**2).sum(axis=1)
    inner = np.einsum("ek,ek->e", vectors[row], vectors[col]) ** 2
    return np.asarray(inner / np.maximum(square[row] * square[col], SMALL) ** 2)


def _gauss_seidel(weights: Any, vectors: Array, degree: Array) -> Array:
    """One step towards vectors with ``L x = 0``, node by node."""
    out = vectors.copy()
    ptr, ids, data = weights.indptr, weights.indices, weights.data
    for i in range(degree.size):
        if degree[i] > 0:
            span = slice(ptr[i], ptr[i + 1])
            out[i] = data[span] @ out[ids[span]] / degree[i]
    return out
