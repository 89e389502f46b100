r"""State: what coarsening knows of a graph: a similarity and masses.

.. math::
    Q_{ij} = m_i S_{ij} m_j = r_i r_j a_{ij}, \qquad q_i = Q_{ii}, \qquad c_i = m_i

Off-diagonal entries are never stored for the finest graph where weights are 1; the
coarse graph of masses ``c`` is again such a state, so that levels compose exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyg_pool.coarsen.graph import Graph, without_diagonal
from pyg_pool.errors import check_choice

__all__ = ["KERNELS", "MASSES", "State", "matrix_state", "state_of"]

Array = NDArray[Any]

KERNELS = ("rw", "normalized", "signless")
MASSES = ("degree", "uniform")
_SYMMETRY = 1e-6


@dataclass(eq=False)
class State:
    """A similarity and masses on the nodes of one level.

    Args:
        indptr: Start of each node's row.
        indices: Neighbours; no self loops.
        value: ``Q_ij / (r_i r_j)`` of each entry; empty where all are 1.
        scale: ``r``; empty where all are 1.
        own: ``Q_ii`` of each node, float64.
        mass: ``m`` of each node, float64.
    """

    indptr: Array
    indices: Array
    value: Array
    scale: Array
    own: Array
    mass: Array

    @property
    def num_nodes(self) -> int:
        """Number of nodes of this level."""
        return self.indptr.size - 1

    def values(self) -> Array:
        """``Q_ij`` of every entry as float64."""
        ones = np.ones(self.indices.size)
        out = self.value.astype(np.float64) if self.value.size else ones
        if self.scale.size:
            out *= self.scale[self.indices]
            out *= np.repeat(self.scale, np.diff(self.indptr))
        return out

    def to_scipy(self) -> Any:
        """``Q`` as a SciPy CSR matrix."""
        from scipy.sparse import csr_matrix, diags

        shape = (self.num_nodes, self.num_nodes)
        out = csr_matrix((self.values(), self.indices, self.indptr), shape=shape)
        return (out + diags(self.own, format="csr")).tocsr()

    def to_dense(self) -> Array:
        """``Q`` as a dense matrix; for small graphs."""
        return np.asarray(self.to_scipy().toarray())

    def operator(self) -> Any:
        r"""``U = W^{1/2} S W^{1/2}`` as SciPy CSR; ``I + Â`` for the rw kernel."""
        from scipy.sparse import diags

        half = diags(1 / np.sqrt(self.mass))
        return (half @ self.to_scipy() @ half).tocsr()


def state_of(graph: Graph, kernel: Any = "rw", mass: Any = None) -> State:
    r"""The state of a graph for a kernel and masses.

    Args:
        graph: The graph.
        kernel: ``"rw"``: :math:`D^{-1} + D^{-1} A D^{-1}`; ``"normalized"``:
            :math:`I + D^{-1/2} A D^{-1/2}`; ``"signless"``: :math:`D + A`; or a
            symmetric sparse matrix ``S``.
        mass: ``"degree"``, ``"uniform"`` or one positive number per node; ``None``
            takes degrees for ``"rw"`` and ones for the others.

    Raises:
        ValueError: If kernel or masses do not fit.
    """
    if not isinstance(kernel, str):
        return matrix_state(kernel, graph.num_nodes, mass)
    check_choice("coarsen", "kernel", kernel, KERNELS)
    degree = graph.degree()
    safe = np.where(degree > 0, degree, 1.0)
    masses = _masses(mass, "degree" if kernel == "rw" else "uniform", safe)
    if kernel == "rw" and masses is safe and not graph.loop.size:
        # One array for both: the state is known by that.
        return State(graph.indptr, graph.indices, graph.weight, np.empty(0), safe, safe)
    if kernel == "rw":
        factor, diagonal = 1 / safe, 1 / safe
    elif kernel == "normalized":
        factor, diagonal = 1 / np.sqrt(safe), np.ones_like(safe)
    else:
        factor, diagonal = np.ones_like(safe), degree
    scale = masses * factor
    own = masses**2 * diagonal
    if graph.loop.size:
        own = own + scale**2 * graph.loop
    plain = (kernel == "rw" and masses is safe) or bool((scale == 1).all())
    scale = np.empty(0) if plain else scale
    return State(graph.indptr, graph.indices, graph.weight, scale, own, masses)


def matrix_state(matrix: Any, num_nodes: int, mass: Any = None) -> State:
    """The state of a similarity given as a symmetric sparse matrix.

    Args:
        matrix: SciPy sparse matrix, sparse tensor, or dense ``[N, N]`` array.
        num_nodes: Number of nodes it must have.
        mass: As in :func:`state_of`; degrees are row sums.

    Raises:
        ValueError: If it is not square or not symmetric.
    """
    rows = sparse_rows(matrix)
    if rows.shape != (num_nodes, num_nodes):
        raise ValueError(
            f"coarsen got a kernel of shape {list(rows.shape)}, expected [{num_nodes}, "
            f"{num_nodes}], one row per node; pass the similarity of this graph."
        )
    rows = rows.astype(np.float64)
    gap = abs(rows - rows.T)
    limit = _SYMMETRY * (abs(rows).max() if rows.nnz else 0.0)
    if gap.nnz and gap.max() > limit:
        raise ValueError(
            f"coarsen got a kernel that differs by {gap.max():.3g} from its transpose, "
            f"expected a symmetric matrix; pass (S + S.T) / 2."
        )
    diagonal = rows.diagonal()
    safe = np.asarray(rows.sum(axis=1)).ravel()
    masses = _masses(mass, "uniform", np.where(safe > 0, safe, 1.0))
    rows = without_diagonal(rows)
    scale = np.empty(0) if (masses == 1).all() else masses
    indptr = rows.indptr.astype(np.int64)
    return State(indptr, rows.indices, rows.data, scale, masses**2 * diagonal, masses)


def sparse_rows(matrix: Any) -> Any:
    """A SciPy CSR matrix of a sparse or dense matrix of SciPy, NumPy or torch."""
    from scipy.sparse import coo_matrix, csr_matrix, issparse

    if isinstance(matrix, Tensor):
        if matrix.layout == torch.strided:
            return csr_matrix(matrix.detach().cpu().numpy())
        coo = matrix.detach().cpu().to_sparse_coo().coalesce()
        parts = (coo.values().numpy(), tuple(coo.indices().numpy()))
        return coo_matrix(parts, shape=tuple(coo.shape)).tocsr()
    return matrix.tocsr() if issparse(matrix) else csr_matrix(np.asarray(matrix))


def _masses(mass: Any, default: str, degree: Array) -> Array:
    """Positive masses from a word, numbers or nothing."""
    if mass is None or isinstance(mass, str):
        word = mass or default
        check_choice("coarsen", "mass", word, MASSES)
        return degree if word == "degree" else np.ones_like(degree)
    if isinstance(mass, Tensor):
        mass = mass.detach().cpu().numpy()
    out = np.asarray(mass, dtype=np.float64)
    if out.shape != degree.shape or not (out > 0).all() or not (out < np.inf).all():
        raise ValueError(
            f"coarsen got mass of shape {list(out.shape)}, expected [{degree.size}] "
            f"positive finite numbers; give every node a mass above 0."
        )
    return out


def plain_state(state: State, labels: Array, size: int) -> State:
    """The coarse state of labels, by SciPy; the compiled twin is ``contract``."""
    from scipy.sparse import csr_matrix

    ones = np.ones(labels.size)
    member = csr_matrix((ones, (labels, np.arange(labels.size))), (size, labels.size))
    coarse = (member @ state.to_scipy() @ member.T).tocsr()
    own = coarse.diagonal()
    coarse = without_diagonal(coarse)
    mass = np.bincount(labels, weights=state.mass, minlength=size)
    indptr = coarse.indptr.astype(np.int64)
    return State(indptr, coarse.indices, coarse.data, np.empty(0), own, mass)
