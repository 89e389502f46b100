r"""What a partition costs: the k-means objective, the move cost, the bounds.

.. math::
    J = \operatorname{Tr} U - \operatorname{Tr} C_w U C_w^\top, \qquad
    B = \lVert U \rVert_F^2 - \lVert C_w U C_w^\top \rVert_F^2 \ge GW^2

with masses that sum to 1. Source: Chen, Yao, Yang, Chen, ICML 2023, and the short
proofs in ``docs/guide/coarsening.md``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.contract import cluster_sums
from pyg_pool.coarsen.state import State, plain_state
from pyg_pool.coarsen.threads import Threads

__all__ = ["association", "move_cost", "objective", "theorem"]

Array = NDArray[Any]


def cluster_terms(state: State, label: Array, size: int) -> tuple[Array, Array]:
    """``q_kk`` and ``c_k`` of every cluster."""
    return cluster_sums(state, label, size, Threads(1))


def objective(state: State, label: Array, num_clusters: int) -> float:
    """``J`` of a partition, for masses that sum to 1."""
    own, mass = cluster_terms(state, label, num_clusters)
    before = (state.own / state.mass).sum()
    total = state.mass.sum()
    return float((before - (own / mass).sum()) / total) if total > 0 else 0.0


def association(state: State, label: Array, num_clusters: int) -> float:
    """``A``: what merging captured; ``N - n - A = J`` where all ``U_ii`` are 1."""
    own, mass = cluster_terms(state, label, num_clusters)
    return float((own / mass).sum() - num_clusters)


def move_cost(state: State, coarse: State) -> float:
    """``B``: an upper bound of the squared Gromov-Wasserstein distance.

    Args:
        state: State of the fine graph.
        coarse: State of the coarse graph.
    """
    total = state.mass.sum()
    if total <= 0:
        return 0.0
    return float((_square(state) - _square(coarse)) / total**2)


def _square(state: State) -> float:
    """Squared Frobenius norm of ``U``."""
    from pyg_pool.coarsen.contract_numba import square_sum

    rows = (state.indptr, state.indices, state.value, state.scale)
    outer = square_sum(rows, state.mass)
    return float(outer + ((state.own / state.mass) ** 2).sum())


def theorem(state: State, label: Array, num_clusters: int) -> dict[str, Any]:
    r"""Spectra and the bound :math:`GW^2 \le B \le \lambda_{N-n+1} \Delta + C`.

    Dense, O(N^3): for small graphs.

    Returns:
        Descending ``eigenvalues`` and ``coarse_eigenvalues``, ``spectral_difference``
        (the sum of the gaps of the n largest), ``constant`` and ``bound``.
    """
    n, size = num_clusters, state.num_nodes
    fine = _spectrum(state, state.mass.sum())
    coarse = _spectrum(plain_state(state, label, n), state.mass.sum())
    difference = float((fine[:n] - coarse).sum())
    constant = float((fine**2).sum() - (fine[:n] * fine[size - n :]).sum())
    bound = float(fine[size - n]) * difference + constant if n else 0.0
    return {
        "eigenvalues": fine,
        "coarse_eigenvalues": coarse,
        "spectral_difference": difference,
        "constant": constant,
        "bound": bound,
    }


def _spectrum(state: State, total: float) -> Array:
    """Descending eigenvalues of ``U``."""
    if state.num_nodes == 0:
        return np.empty(0)
    return np.linalg.eigvalsh(state.operator().toarray() / total)[::-1]
