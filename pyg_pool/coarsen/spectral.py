r"""Random coordinates that carry the large eigenvectors of the similarity.

.. math::
    X = W^{-1/2} (U / \lambda)^t G, \qquad
    \operatorname{Tr} X^\top W X = \alpha \operatorname{Tr} U

with a Gaussian ``G``: adding ``X X^T`` to the kernel makes moves keep what the product
keeps, the slow part of the spectrum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.state import State

__all__ = ["eigenvalue_errors", "normalised_laplacian", "random_coordinates"]

Array = NDArray[Any]
POWER, WIDTH = 10, 16
DENSE = 600
ZERO = 1e-9


def random_coordinates(state: State, weight: float, seed: int) -> Array:
    """``[N, 16]`` coordinates with ``weight`` times the trace of the similarity."""
    operator = state.operator()
    bound = float(abs(operator).sum(axis=1).max()) if operator.nnz else 1.0
    draw = np.random.default_rng(seed).standard_normal((state.num_nodes, WIDTH))
    for _ in range(POWER):
        draw = operator @ draw / bound
    trace = float((state.own / state.mass).sum())
    norm = float((draw**2).sum())
    scale = np.sqrt(weight * trace / norm) if norm > 0 else 0.0
    return np.ascontiguousarray(draw * scale / np.sqrt(state.mass)[:, None])


def eigenvalue_errors(state: State, coarse: State, k: int) -> dict[str, Any]:
    """The ``k`` largest eigenvalues of both similarities and their relative gaps."""
    k = min(k, state.num_nodes, coarse.num_nodes)
    fine = largest(state, k) / state.mass.sum()
    small = largest(coarse, k) / state.mass.sum()
    # An eigenvalue that is 0 but for rounding is 0 in the coarse graph too: no error.
    keep = fine > ZERO * max(float(fine.max(initial=0.0)), 0.0)
    gaps = np.where(keep, fine - small, 0.0) / np.where(keep, fine, 1.0)
    return {
        "eigenvalues": fine.tolist(),
        "coarse_eigenvalues": small.tolist(),
        "error": float(gaps.mean()) if k else 0.0,
    }


def largest(state: State, k: int) -> Array:
    """The ``k`` largest eigenvalues of ``U``, descending."""
    from scipy.sparse.linalg import eigsh

    size = state.num_nodes
    if k == 0:
        return np.empty(0)
    if size <= DENSE or k >= size - 1:
        return np.linalg.eigvalsh(state.operator().toarray())[::-1][:k]
    start = np.random.default_rng(0).standard_normal(size)
    # The largest eigenvalues of a large sparse graph nearly touch: a loose tolerance
    # on the residual still gives them to about its square.
    width = min(max(4 * k, 48), size)
    values = eigsh(
        state.operator(),
        k,
        which="LA",
        v0=start,
        ncv=width,
        tol=1e-3,
        return_eigenvectors=False,
    )
    return np.sort(values)[::-1]


def normalised_laplacian(adjacency: Array) -> Array:
    """``I - D^{-1/2} A D^{-1/2}`` of a dense matrix."""
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    root = 1 / np.sqrt(np.where(degree > 0, degree, 1.0))
    return np.asarray(np.eye(degree.size) - root[:, None] * adjacency * root)
