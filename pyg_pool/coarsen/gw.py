r"""Gromov-Wasserstein distances of graphs, by POT, and heat traces.

.. math::
    GW^2 = \min_T \sum_{ijkl} (S_{ij} - S'_{kl})^2\, T_{ik} T_{jl}

Solvers find local optima only: every value is an upper bound of the true one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.graph import Graph
from pyg_pool.coarsen.inputs import as_graph
from pyg_pool.coarsen.spectral import normalised_laplacian
from pyg_pool.coarsen.state import State, state_of
from pyg_pool.errors import require

__all__ = ["gw_distance", "heat_trace", "transport"]

Array = NDArray[Any]
TIMES = np.logspace(-2, 2, 250)


def gw_distance(
    a: Any,
    b: Any,
    *,
    kernel: Any = "rw",
    mass: Any = None,
    starts: int = 1,
    seed: int = 0,
) -> float:
    """The Gromov-Wasserstein distance of two graphs; an upper bound of it.

    Args:
        a: A graph, as for :func:`coarsen`.
        b: Another one.
        kernel: Kernel of both, by name.
        mass: Masses of both, by name.
        starts: Number of starts, the first being the product of the masses; more of
            them find lower values.
        seed: Seed of the further starts.

    Returns:
        The distance, not squared.

    Raises:
        ImportError: If POT is not installed.
        ValueError: If ``starts`` is not positive.

    Example:
        >>> import torch
        >>> from pyg_pool.coarsen import gw_distance
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> round(gw_distance(path, path.flip(1)), 6)
        0.0
    """
    if starts < 1:
        raise ValueError(
            f"gw_distance got starts={starts}, expected at least 1; 10 find lower "
            f"values."
        )
    left = _space(state_of(as_graph(a), kernel, mass))
    right = _space(state_of(as_graph(b), kernel, mass))
    random = np.random.default_rng(seed)
    best = np.inf
    for turn in range(starts):
        start = None if turn == 0 else _start(left[1], right[1], random)
        best = min(best, transport(left, right, start)[0])
    return float(np.sqrt(max(best, 0.0)))


def transport(
    left: tuple[Array, Array], right: tuple[Array, Array], start: Array | None = None
) -> tuple[float, Array]:
    """The squared distance and the plan of two spaces ``(similarity, masses)``.

    Both directions are tried and the lower value is kept.

    Args:
        left: Similarity ``[N, N]`` and masses ``[N]`` that sum to 1.
        right: The same of the other space.
        start: Plan to start from, ``[N, N']``.
    """
    solve = require("ot", "coarsen").gromov.gromov_wasserstein
    best, plan = np.inf, np.outer(left[1], right[1])
    for first, second, flip in ((left, right, False), (right, left, True)):
        begin = start.T if flip and start is not None else start
        spaces = (first[0], second[0], first[1], second[1])
        found, log = solve(*spaces, "square_loss", G0=begin, log=True)
        if float(log["gw_dist"]) < best:
            best = float(log["gw_dist"])
            plan = np.asarray(found.T if flip else found)
    return best, plan


def coarse_space(state: State, label: Array, size: int) -> tuple[Array, Array]:
    """The similarity and masses of the clusters."""
    from pyg_pool.coarsen.state import plain_state

    total = float(state.mass.sum())
    coarse = plain_state(state, label, size)
    dense = coarse.to_dense() / np.outer(coarse.mass, coarse.mass)
    return dense, coarse.mass / total


def _space(state: State) -> tuple[Array, Array]:
    """Similarity and masses that sum to 1."""
    dense = state.to_dense() / np.outer(state.mass, state.mass)
    return dense, state.mass / state.mass.sum()


def space_of(graph: Graph, kernel: Any, mass: Any) -> tuple[Array, Array]:
    """The measure space of a graph, dense."""
    return _space(state_of(graph, kernel, mass))


def _start(p: Array, q: Array, random: np.random.Generator) -> Array:
    """A random plan with the right sums, by scaling rows and columns in turn."""
    plan = random.random((p.size, q.size)) ** 4 + 1e-9
    for _ in range(200):
        plan *= (p / plan.sum(1))[:, None]
        plan *= (q / plan.sum(0))[None]
    plan *= (p / plan.sum(1))[:, None]
    return np.asarray(plan)


def heat_trace(graph: Any, times: Array = TIMES) -> Array:
    r"""Mean of :math:`e^{-t \lambda}` over the normalised Laplacian's eigenvalues.

    A short description of a graph that knows nothing of its size. Dense, O(N^3).

    Args:
        graph: A graph, as for :func:`coarsen`; self loops count.
        times: Times ``t``.

    Shapes:
        times: ``[T]``; returns ``[T]``.
    """
    adjacency = as_graph(graph).to_scipy().toarray()
    values = np.linalg.eigvalsh(normalised_laplacian(adjacency))
    return np.asarray(np.exp(-np.outer(times, values)).mean(axis=1))
