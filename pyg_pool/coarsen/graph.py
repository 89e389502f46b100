"""Graph: the undirected graph that coarsening works on, as sorted rows of neighbours.

Every kind of input ends here; ids have 32 bits where they fit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Graph", "without_diagonal"]

Array = NDArray[Any]
NONE = np.empty(0, dtype=np.float32)


@dataclass(eq=False)
class Graph:
    """An undirected graph in compressed rows, both directions of every edge stored.

    Args:
        indptr: Start of the row of each node.
        indices: Neighbours, ascending in each row, no self loops.
        weight: Weight of each entry; empty where all are 1.
        loop: Weight of the self loop of each node; empty where there is none.
        ids: Names of the nodes in the file they come from; ``None`` for 0..N-1.
        facts: Counts found while building: rows, self_loops, duplicates.

    Shapes:
        indptr: ``[N + 1]`` int64; indices: ``[E]`` int32 or int64; weight: ``[E]`` or
        ``[0]`` float; loop: ``[N]`` or ``[0]`` float64.

    Example:
        >>> import torch
        >>> from pyg_pool.coarsen import graph_from_edges
        >>> graph_from_edges([0, 1, 1, 2], [1, 0, 2, 1])
        Graph(num_nodes=3, num_edges=2)
    """

    indptr: Array
    indices: Array
    weight: Array = field(default_factory=lambda: NONE)
    loop: Array = field(default_factory=lambda: np.empty(0))
    ids: Any = None
    facts: dict[str, int] = field(default_factory=dict)

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.indptr.size - 1

    @property
    def num_edges(self) -> int:
        """Number of undirected edges, self loops left out."""
        return self.indices.size // 2

    def degree(self) -> Array:
        """Sum of the weights of each node's edges; a self loop counts once."""
        if self.weight.size:
            total = np.zeros(self.num_nodes)
            filled = np.flatnonzero(np.diff(self.indptr))
            if filled.size:
                weight = self.weight.astype(np.float64, copy=False)
                total[filled] = np.add.reduceat(weight, self.indptr[filled])
        else:
            total = np.diff(self.indptr).astype(np.float64)
        return total + self.loop if self.loop.size else total

    def to_scipy(self, loops: bool = True) -> Any:
        """The adjacency as a SciPy CSR matrix of float64."""
        from scipy.sparse import csr_matrix, diags

        ones = np.ones(self.indices.size)
        values = self.weight.astype(np.float64) if self.weight.size else ones
        shape = (self.num_nodes, self.num_nodes)
        out = csr_matrix((values, self.indices, self.indptr), shape=shape)
        return out + diags(self.loop, format="csr") if loops and self.loop.size else out

    def edge_index(self) -> Array:
        """Both directions of every edge as ``[2, E]`` int64; loops come last."""
        row = np.repeat(np.arange(self.num_nodes), np.diff(self.indptr))
        looped = np.flatnonzero(self.loop) if self.loop.size else np.empty(0, np.int64)
        col = np.concatenate([self.indices.astype(np.int64), looped])
        return np.stack([np.concatenate([row, looped]), col])

    def edge_weight(self) -> Array | None:
        """Weights in the order of :meth:`edge_index`; ``None`` where all are 1."""
        looped = self.loop[np.flatnonzero(self.loop)] if self.loop.size else NONE
        if not self.weight.size and not (looped != 1).any():
            return None
        weight = self.weight if self.weight.size else np.ones(self.indices.size)
        return np.concatenate([weight, looped])

    def __repr__(self) -> str:
        """Sizes in one line."""
        weighted = ", weighted" if self.weight.size else ""
        loops = ", self loops" if self.loop.size else ""
        return (
            f"{type(self).__name__}(num_nodes={self.num_nodes}, num_edges="
            f"{self.num_edges}{weighted}{loops})"
        )


def without_diagonal(matrix: Any) -> Any:
    """A SciPy matrix as sorted compressed rows, without diagonal and explicit zeros."""
    entries = matrix.tocoo()
    keep = (entries.row != entries.col) & (entries.data != 0)
    ends = (entries.row[keep], entries.col[keep])
    return type(entries)((entries.data[keep], ends), shape=entries.shape).tocsr()
