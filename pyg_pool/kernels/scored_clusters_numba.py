"""Numba twin of ``scored_clusters.py``: the compiled steps, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pyg_pool.kernels import pairs_numba, parse_numba

Array = NDArray[Any]

pairs_of = pairs_numba.distinct_pairs
logits_of = pairs_numba.logits
scores_of = pairs_numba.cluster_scores
links_of = parse_numba.dominant_links
groups_of = parse_numba.link_components


@njit(nogil=True, cache=True)
def scored_clusters(
    x: Array, edge_index: Array, weight: Array, bias: Array, resting: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """Pairs, their slopes, clusters, and mean and number of the scores inside."""
    pairs = pairs_of(edge_index, x.shape[0])
    logit = np.empty(pairs.shape[1], x.dtype)
    logits_of(x, pairs, weight, logit)
    choice = logit
    for e in range(logit.size):
        logit[e] += bias[0]
    if resting.size > 0:
        choice = logit.copy()
        for e in range(logit.size):
            if resting[pairs[0, e]] or resting[pairs[1, e]]:
                choice[e] = np.nan
    link = links_of(pairs, choice, x.shape[0], np.empty(0, x.dtype), True)
    cluster, size = groups_of(link)
    mean, count = np.zeros(size, x.dtype), np.zeros(size, x.dtype)
    slope = np.empty(logit.size, x.dtype)
    scores_of(pairs, logit, cluster, mean, count, slope)
    return pairs, slope, cluster, mean, count
