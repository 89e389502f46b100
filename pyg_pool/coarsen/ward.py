"""Ward merging over all pairs, and exact moves, on a dense similarity.

Of each kernel's objective this finds the lowest values known here, at a cost of
O(N^2) memory and about O(N^2) to O(N^3) time: for graphs of up to a few thousand nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.dense_numba import single_moves, ward_merges
from pyg_pool.coarsen.labels import compact
from pyg_pool.coarsen.state import State

__all__ = ["merge_costs", "moves", "ward"]

Array = NDArray[Any]
SWEEPS = 100


def ward(state: State, num_clusters: int, *, refine: bool = True) -> Array:
    """Cluster of each node by Ward merging.

    Args:
        state: Similarity and masses.
        num_clusters: Number of clusters to stop at.
        refine: Whether single nodes move to better clusters at the end.

    Returns:
        ``[N]`` int64, numbered by first member.
    """
    dense = state.to_dense()
    label = compact(ward_merges(dense.copy(), state.mass.copy(), num_clusters))
    if refine:
        single_moves(dense, state.mass, label, num_clusters, SWEEPS)
        label = compact(label)
    return label


def moves(state: State, label: Array, num_clusters: int) -> Array:
    """The labels after exact moves of single nodes, in the order of the nodes."""
    out = np.array(label, dtype=np.int64)
    single_moves(state.to_dense(), state.mass, out, num_clusters, SWEEPS)
    return out


def merge_costs(state: State, row: Array, col: Array) -> Array:
    r"""What merging two nodes adds to the objective, for pairs of nodes.

    .. math::
        w_{kl} = \frac{q_k}{c_k} + \frac{q_l}{c_l}
                 - \frac{q_k + q_l + 2 q_{kl}}{c_k + c_l}
    """
    own, mass, pair = state.own, state.mass, state.to_scipy()
    between = np.asarray(pair[row, col]).ravel()
    joined = own[row] + own[col] + 2 * between
    out = own[row] / mass[row] + own[col] / mass[col] - joined / (mass[row] + mass[col])
    return np.asarray(out / mass.sum())
