r"""Weighted kernel k-means with batch steps, and its starts.

.. math::
    \lVert \varphi_i - \mu_k \rVert^2 = S_{ii} - 2 (\bar C S)_{ki}
    + (\bar C S \bar C^\top)_{kk}

Source: Yifan Chen, Rentian Yao, Yun Yang, Jie Chen: A Gromov–Wasserstein Geometric
View of Spectrum-Preserving Graph Coarsening, ICML 2023 (arXiv 2306.08854). Departures:
arithmetic in float64; the restart of the lowest objective wins (the reference compares
another quantity); an empty cluster is filled with the node of largest ``m_i d_i^2``
instead of failing; steps cost O(E + n) instead of O(n N^2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.objective import objective
from pyg_pool.coarsen.state import State

__all__ = ["batch_step", "kmeans", "plus_plus", "start_distances"]

Array = NDArray[Any]
MAX_STEPS = 100


def kmeans(
    state: State,
    num_clusters: int,
    *,
    label: Array | None = None,
    n_init: int = 10,
    seed: int = 0,
) -> Array:
    """Cluster of each node by batch steps, from k-means++ starts or given labels.

    Args:
        state: Similarity and masses.
        num_clusters: Number of clusters.
        label: Start; ``None`` draws ``n_init`` starts.
        n_init: Number of starts, of which the lowest objective wins.
        seed: Seed of the starts.
    """
    if label is not None:
        return run(state, np.asarray(label), num_clusters)
    best, lowest = np.zeros(state.num_nodes, np.int64), np.inf
    for restart in range(n_init):
        centres, _ = plus_plus(state, num_clusters, seed + restart)
        found = run(state, nearest_centre(state, centres), num_clusters)
        value = objective(state, found, num_clusters)
        if value < lowest:
            best, lowest = found, value
    return best


def run(state: State, label: Array, num_clusters: int) -> Array:
    """Batch steps until nothing changes; empty clusters are filled again."""
    label = fill_empty(state, label, num_clusters)
    for _ in range(MAX_STEPS):
        new = fill_empty(state, batch_step(state, label, num_clusters), num_clusters)
        if np.array_equal(new, label):
            break
        label = new
    return label


def batch_step(state: State, label: Array, num_clusters: int) -> Array:
    """The nearest cluster of every node, all at once; the first one on ties.

    A node's candidates are the clusters of its neighbours, its own, and the cluster of
    least ``q_k / c_k^2``: no other one can be nearer where the similarity is >= 0.
    """
    node, cluster, distance = _candidates(state, label, num_clusters)
    order = np.lexsort((cluster, distance, node))
    first = np.ones(order.size, dtype=bool)
    first[1:] = node[order][1:] != node[order][:-1]
    return np.asarray(cluster[order][first])


def fill_empty(state: State, label: Array, num_clusters: int) -> Array:
    """Gives each empty cluster the node that lies farthest from its own."""
    count = np.bincount(label, minlength=num_clusters)
    if (count > 0).all():
        return label
    label = label.copy()
    cost = state.mass * own_distances(state, label, num_clusters)
    order = iter(np.argsort(-cost, kind="stable"))
    for k in np.flatnonzero(count == 0):
        for i in order:
            if count[label[i]] > 1:
                count[label[i]] -= 1
                label[i] = k
                break
    return label


def own_distances(state: State, label: Array, num_clusters: int) -> Array:
    """Squared distance of each node from the mean of its cluster."""
    node, cluster, distance = _candidates(state, label, num_clusters)
    out = np.zeros(state.num_nodes)
    here = cluster == label[node]
    out[node[here]] = distance[here]
    return out + state.own / state.mass**2


def _candidates(state: State, label: Array, size: int) -> tuple[Array, Array, Array]:
    """Pairs of a node and a cluster near it, with the distance less ``S_ii``."""
    from scipy.sparse import csr_matrix

    nodes = np.arange(state.num_nodes)
    member = csr_matrix((np.ones(nodes.size), (nodes, label)), (nodes.size, size))
    near = (state.to_scipy() @ member).tocoo()
    mass = np.bincount(label, weights=state.mass, minlength=size)
    inside = np.zeros(size)
    own = label[near.row] == near.col
    np.add.at(inside, near.col[own], near.data[own])
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.where(mass > 0, inside / mass**2, np.inf)
    far = np.full(nodes.size, int(np.argmin(spread)) if size else 0)
    node = np.concatenate([near.row, nodes, nodes])
    cluster = np.concatenate([near.col, label, far])
    value = np.concatenate([near.data, np.zeros(2 * nodes.size)])
    pair, place = np.unique(node * size + cluster, return_inverse=True)
    total = np.bincount(place.ravel(), weights=value, minlength=pair.size)
    node, cluster = pair // max(size, 1), pair % max(size, 1)
    distance = spread[cluster] - 2 * total / (mass[cluster] * state.mass[node])
    return node, cluster, distance


def start_distances(state: State, centres: Array) -> Array:
    """Squared distance of every node from single nodes, ``[len(centres), N]``."""
    diagonal = state.own / state.mass**2
    rows = state.to_scipy()[centres].toarray() / state.mass[centres][:, None]
    rows = rows / state.mass[None]
    return np.asarray(diagonal[None] + diagonal[centres][:, None] - 2 * rows)


def nearest_centre(state: State, centres: Array) -> Array:
    """The nearest of some nodes for every node; the first one on ties."""
    return np.asarray(start_distances(state, centres).argmin(axis=0))


def plus_plus(state: State, num_clusters: int, seed: int) -> tuple[Array, Array]:
    """Draws start nodes far from each other.

    The first is uniform over the nodes; each next one has a probability proportional to
    the fourth power of its distance from those drawn, as in the reference code.

    Returns:
        The nodes, and the probabilities with which the second one was drawn.
    """
    # The legacy generator, so that stored draws can be repeated.
    random = np.random.RandomState(seed)
    size = state.num_nodes
    centres = [int(random.randint(size))]
    nearest = np.full(size, np.inf)
    second = np.full(size, 1 / max(size, 1))
    for k in range(1, num_clusters):
        nearest = np.minimum(nearest, start_distances(state, np.array(centres[-1:]))[0])
        power = np.maximum(nearest, 0) ** 2
        total = power.sum()
        share = power / total if total > 0 else np.full(size, 1 / size)
        second = share if k == 1 else second
        centres.append(int(random.choice(size, p=share)))
    return np.array(centres), second
