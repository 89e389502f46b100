"""Edge lists and sparse rows to a :class:`Graph`.

Edges are checked once, merged, made symmetric if asked for, and kept with 32-bit ids
where they fit. Nothing is copied where the rows are clean already.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.graph import NONE, Graph, without_diagonal
from pyg_pool.coarsen.graph_numba import (
    FIRST,
    MAX,
    MEAN,
    SUM,
    bucket,
    check_rows,
    has_duplicates,
    is_sorted,
    join_rows,
    merge_duplicates,
    transpose,
)
from pyg_pool.coarsen.threads import Threads
from pyg_pool.errors import check_choice

__all__ = ["coarse_graph", "graph_from_edges", "graph_from_rows"]

Array = NDArray[Any]
Symmetrize = Literal["error", "sum", "max", "mean"]
Duplicates = Literal["sum", "max", "first", "error"]

_DUPLICATES = {"sum": SUM, "max": MAX, "first": FIRST, "error": FIRST}
_SYMMETRIZE = {"sum": SUM, "max": MAX, "mean": MEAN}
_TOLERANCE = 1e-6
_INT32 = 2**31


def graph_from_edges(
    row: Any,
    col: Any,
    weight: Any = None,
    *,
    num_nodes: int | None = None,
    symmetrize: Symmetrize = "error",
    duplicates: Duplicates = "sum",
) -> Graph:
    """Builds a graph from the two ends of each edge.

    Args:
        row: First end of each edge.
        col: Second end of each edge.
        weight: Weight of each edge; 1 if left out, 0 for no edge.
        num_nodes: Number of nodes; without it the largest id sets it.
        symmetrize: What to do with edges of one direction: ``"error"``, or merge both
            directions by ``"sum"``, ``"max"`` or ``"mean"``.
        duplicates: How equal edges are merged: ``"sum"``, ``"max"``, ``"first"`` or
            ``"error"``.

    Shapes:
        row, col, weight: ``[E]``.

    Raises:
        ValueError: If ids, weights or directions do not fit.
    """
    check_choice("coarsen", "symmetrize", symmetrize, ("error", *_SYMMETRIZE))
    check_choice("coarsen", "duplicates", duplicates, _DUPLICATES)
    row, col = np.asarray(row), np.asarray(col)
    size = _check_ends(row, col, num_nodes)
    weight = _check_weight(row, col, weight)
    if weight.size and (weight == 0).any():
        kept = weight != 0
        row, col, weight = row[kept], col[kept], weight[kept]
    dtype = np.int32 if size < _INT32 else np.int64
    if is_sorted(row, col):
        indptr = np.zeros(size + 1, dtype=np.int64)
        np.cumsum(np.bincount(row, minlength=size), out=indptr[1:])
        indices = col.astype(dtype)
        graph = Graph(indptr, indices, weight, facts=_facts(row.size, 0, 0))
    else:
        # Bucketed by column, then by row: columns ascend and order is kept.
        start, by_col, by_weight = _empty_rows(col, size, dtype, weight)
        bucket(col, row, weight, start[:-1].copy(), by_col, by_weight)
        graph = _sorted(start, by_col, by_weight, duplicates, row.size)
    return _symmetric(graph, symmetrize)


def graph_from_rows(
    indptr: Array,
    indices: Array,
    weight: Array | None,
    *,
    symmetrize: Symmetrize = "error",
    duplicates: Duplicates = "sum",
    threads: Threads | None = None,
) -> Graph:
    """Builds a graph from compressed rows, without a copy where they are clean.

    Args:
        indptr: Start of each row.
        indices: Column of each entry, in any order.
        weight: Weight of each entry; ``None`` for ones.
        symmetrize: As in :func:`graph_from_edges`.
        duplicates: As in :func:`graph_from_edges`.
        threads: Threads that look at the rows; one if left out.

    Raises:
        ValueError: If ids, weights or directions do not fit.
    """
    weight = NONE if weight is None else _plain_weight(weight)
    if weight.size and (weight == 1).all():
        weight = NONE
    indptr = np.asarray(indptr).astype(np.int64, copy=False)
    clean, inside, total, bad = _checked(indptr, indices, weight, threads)
    if not inside:
        raise ValueError(
            f"coarsen got column ids {indices.min()} to {indices.max()} for "
            f"{indptr.size - 1} rows, expected a square matrix; pad it with empty rows."
        )
    if bad >= 0:
        owner = int(np.searchsorted(indptr, bad, side="right")) - 1
        _refuse_weight(owner, int(indices[bad]), float(weight[bad]))
    has_zeros = bool(weight.size and (weight == 0).any())
    if clean and not has_zeros:
        graph = Graph(indptr, indices, weight, facts=_facts(indices.size, 0, 0))
        return graph if total == 0 else _symmetric(graph, symmetrize)
    row = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    return graph_from_edges(
        row,
        indices,
        weight if weight.size else None,
        num_nodes=indptr.size - 1,
        symmetrize=symmetrize,
        duplicates=duplicates,
    )


def _checked(
    indptr: Array, indices: Array, weight: Array, threads: Threads | None
) -> tuple[bool, bool, int, int]:
    """What :func:`check_rows` finds in all rows."""
    threads = threads or Threads(1)
    rows = (indptr, indices, weight)
    found = threads.map(
        lambda part: check_rows(part, *rows), threads.ranges(indptr.size - 1)
    )
    bad = [place for *_, place in found if place >= 0]
    total = sum(int(part) for _, _, part, _ in found) % 2**64
    clean, inside = (all(each[i] for each in found) for i in (0, 1))
    return clean, inside, total, min(bad, default=-1)


def _facts(rows: int, loops: int, duplicates: int) -> dict[str, int]:
    return {"rows": rows, "self_loops": loops, "duplicates": duplicates}


def _empty_rows(
    key: Array, size: int, dtype: Any, weight: Array
) -> tuple[Array, Array, Array]:
    """Row starts by counting, and room for the entries and their weights."""
    start = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(np.bincount(key, minlength=size), out=start[1:])
    return start, np.empty(key.size, dtype), np.empty_like(weight)


def _sorted(
    start: Array, by_col: Array, by_weight: Array, duplicates: str, rows: int
) -> Graph:
    """The graph of edges in buckets by column: turned, merged, loops apart."""
    size = start.size - 1
    indptr, indices, weight = _empty_rows(by_col, size, by_col.dtype, by_weight)
    transpose(start, by_col, by_weight, indptr[:-1].copy(), indices, weight)
    del by_col, by_weight
    facts, loop = _facts(rows, 0, 0), np.empty(0)
    if has_duplicates(indptr, indices):
        if not weight.size and duplicates == "sum":
            weight = np.ones(indices.size, dtype=np.float32)
        loop = np.zeros(size)
        loops, repeated = merge_duplicates(
            indptr, indices, weight, loop, _DUPLICATES[duplicates]
        )
        if repeated and duplicates == "error":
            raise ValueError(
                f"coarsen got {repeated} duplicate edges with duplicates='error', "
                f"expected each edge once; merge them, or pass duplicates='sum'."
            )
        indices = indices[: indptr[-1]].copy()
        weight = weight[: indptr[-1]].copy() if weight.size else weight
        weight = NONE if weight.size and (weight == 1).all() else weight
        loop = loop if loops else np.empty(0)
        facts = _facts(rows, loops, repeated)
    return Graph(indptr, indices, weight, loop, facts=facts)


def _symmetric(graph: Graph, how: str) -> Graph:
    """The graph with both directions of each edge, or an error."""
    clean, _, total, _ = _checked(graph.indptr, graph.indices, graph.weight, None)
    if clean and total == 0:
        return graph
    turned = _empty_rows(graph.indices, graph.num_nodes, graph.indices.dtype, NONE)
    other, other_weight = turned[1], np.empty_like(graph.weight)
    begin = turned[0][:-1].copy()
    rows = (graph.indptr, graph.indices, graph.weight)
    transpose(*rows, begin, other, other_weight)
    if how == "error":
        _check_symmetric(graph, turned[0], other, other_weight)
        return graph
    indptr = np.zeros_like(graph.indptr)
    back = (turned[0], other, other_weight)
    join_rows(rows, back, SUM, indptr, other[:0], NONE)
    indices = np.empty(indptr[-1], dtype=graph.indices.dtype)
    weighted = graph.weight
    if not weighted.size and how != "max":
        weighted = np.ones(graph.indices.size, dtype=np.float32)
        rows, back = (*rows[:2], weighted), (*back[:2], weighted)
    weight = np.empty(indices.size if weighted.size else 0, dtype=weighted.dtype)
    join_rows(rows, back, _SYMMETRIZE[how], indptr, indices, weight)
    weight = NONE if weight.size and (weight == 1).all() else weight
    loop = graph.loop * 2 if how == "sum" else graph.loop
    return Graph(indptr, indices, weight, loop, facts=graph.facts)


def _check_symmetric(
    graph: Graph, indptr: Array, indices: Array, weight: Array
) -> None:
    """Raises unless the transposed rows equal the rows, up to rounding."""
    same = np.array_equal(graph.indptr, indptr)
    same = same and np.array_equal(graph.indices, indices)
    if same and np.allclose(graph.weight, weight, rtol=_TOLERANCE):
        return
    count = "with other weights" if same else "without their opposite"
    raise ValueError(
        f"coarsen got {graph.indices.size} directed edges, some {count}, expected an "
        f"undirected graph with both directions; pass symmetrize='sum', 'max' or "
        f"'mean'."
    )


def _check_ends(row: Array, col: Array, num_nodes: int | None) -> int:
    """Number of nodes, after the ids were looked at."""
    if row.ndim != 1 or row.shape != col.shape or row.dtype.kind not in "iu":
        raise ValueError(
            f"coarsen got edges of shapes {list(row.shape)} and {list(col.shape)} and "
            f"dtype {row.dtype}, expected two vectors of integer ids of one length; "
            f"pass edge_index of shape [2, num_edges]."
        )
    low = int(min(row.min(), col.min())) if row.size else 0
    high = int(max(row.max(), col.max())) + 1 if row.size else 0
    size = high if num_nodes is None else num_nodes
    if low < 0 or high > size:
        raise ValueError(
            f"coarsen got node ids {low} to {high - 1} for {size} nodes, expected ids "
            f"in 0..{size - 1}; pass size=... or renumber the nodes."
        )
    return size


def _plain_weight(weight: Any) -> Array:
    """Weights as float32 or float64."""
    weight = np.asarray(weight)
    exact = weight.dtype == np.float64
    return weight if exact else weight.astype(np.float32, copy=False)


def _check_weight(row: Array, col: Array, weight: Any) -> Array:
    """Weights as an array, empty for ones; raises on those that are no weights."""
    if weight is None:
        return NONE
    weight = _plain_weight(weight)
    if weight.shape != row.shape:
        raise ValueError(
            f"coarsen got edge_weight of shape {list(weight.shape)} for {row.size} "
            f"edges, expected [{row.size}]; pass one weight per edge."
        )
    bad = np.flatnonzero(~((weight >= 0) & (weight < np.inf)))
    if bad.size:
        _refuse_weight(int(row[bad[0]]), int(col[bad[0]]), float(weight[bad[0]]))
    return NONE if (weight == 1).all() else weight


def _refuse_weight(row: int, col: int, weight: float) -> None:
    raise ValueError(
        f"coarsen got weight {weight} on edge ({row}, {col}), expected finite weights "
        f">= 0; drop the edge or take its absolute value."
    )


def coarse_graph(graph: Graph, label: Array, size: int) -> Graph:
    """The plain coarse graph, without its self loops, for methods that need one."""
    from scipy.sparse import csr_matrix

    nodes = np.arange(label.size)
    member = csr_matrix((np.ones(label.size), (label, nodes)), (size, label.size))
    rows = without_diagonal(member @ graph.to_scipy() @ member.T)
    return graph_from_rows(rows.indptr, rows.indices, rows.data)
