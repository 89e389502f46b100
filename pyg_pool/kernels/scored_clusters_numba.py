"""Numba twin of ``scored_clusters.py``: the compiled steps, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyg_pool.kernels import pairs_numba, parse_numba

Array = NDArray[Any]

write_pairs = pairs_numba.write_pairs
logits_of = pairs_numba.logits
scores_of = pairs_numba.cluster_scores
links_of = parse_numba.pair_links
groups_of = parse_numba.link_components


@njit(nogil=True, cache=True)
def awake(logit: Array, pairs: Array, resting: Array) -> Array:
    """The numbers of pairs of which no node rests, NaN for the others."""
    out = logit.copy()
    for e in range(logit.size):
        if resting[pairs[0, e]] or resting[pairs[1, e]]:
            out[e] = np.nan
    return out


@njit(nogil=True, cache=True)
def scored_clusters(
    x: Array, edge_index: Array, weight: Array, bias: Array, resting: Array, power: int
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Pairs inside clusters, their slopes, clusters; figures of the clusters.

    These are the mean and the number of the scores, and a factor: 1, the mean or the
    sum for a power of 0, 1 or 2.
    """
    pairs = np.empty((2, edge_index.shape[1]), np.int32)
    pairs = pairs[:, : write_pairs(edge_index, x.shape[0], pairs)]
    logit = np.empty(pairs.shape[1], x.dtype)
    logits_of(x, pairs, weight, logit)
    offset = bias[0]
    for e in range(logit.size):
        logit[e] += offset
    choice = logit if resting.size == 0 else awake(logit, pairs, resting)
    cluster, size = groups_of(links_of(pairs, choice, x.shape[0]))
    mean, count = np.zeros(size, x.dtype), np.zeros(size, x.dtype)
    inside, slope = scores_of(pairs, logit, cluster, mean, count)
    factor = np.ones_like(mean)
    if power > 0:
        for c in range(size):
            factor[c] = mean[c] * count[c] if power == 2 else mean[c]
    return inside, slope, cluster, mean, count, factor
