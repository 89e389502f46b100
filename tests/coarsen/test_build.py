"""Edge lists and rows to graphs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_matrix, csr_matrix

from pyg_pool.coarsen import build, coarsen, graph_from_edges, graph_from_rows
from pyg_pool.coarsen.build import coarse_graph
from tests.coarsen.made_graphs import ring

EDGES = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(1, 4)))


@given(EDGES, st.booleans())
def test_equals_scipy(edges: list[tuple[int, int, int]], weighted: bool) -> None:
    row, col, weight = np.array(edges, dtype=np.int64).reshape(-1, 3).T
    value = weight.astype(float) if weighted else np.ones(row.size)
    rows = coo_matrix((value, (row, col)), (8, 8)).tocsr()
    is_symmetric = (rows != rows.T).nnz == 0  # then it is left as it is
    expected = (rows if is_symmetric else rows + rows.T).toarray()
    found = graph_from_edges(
        row, col, value if weighted else None, num_nodes=8, symmetrize="sum"
    )
    np.testing.assert_allclose(found.to_scipy().toarray(), expected)
    for i in range(8):
        ids = found.indices[found.indptr[i] : found.indptr[i + 1]]
        assert (np.diff(ids) > 0).all()


@given(EDGES)
def test_rows_in_any_order(edges: list[tuple[int, int, int]]) -> None:
    row, col, weight = np.array(edges, dtype=np.int64).reshape(-1, 3).T
    both = (np.append(row, col), np.append(col, row))
    value = np.append(weight, weight).astype(float)
    rows = coo_matrix((value, both), (8, 8)).tocsr()
    for i in range(8):  # backwards in each row
        span = slice(rows.indptr[i], rows.indptr[i + 1])
        rows.indices[span] = rows.indices[span][::-1].copy()
        rows.data[span] = rows.data[span][::-1].copy()
    found = graph_from_rows(rows.indptr, rows.indices, rows.data)
    np.testing.assert_allclose(found.to_scipy().toarray(), rows.toarray())


def test_ids_get_64_bits_where_32_are_too_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row, col = np.arange(9), (np.arange(9) + 1) % 9
    usual = graph_from_edges(row, col, symmetrize="sum")
    assert usual.indices.dtype == np.int32
    assert usual.indptr.dtype == np.int64
    monkeypatch.setattr(build, "_INT32", 9)
    wide = graph_from_edges(row, col, symmetrize="sum")
    assert wide.indices.dtype == np.int64
    again = coarsen(wide, num_clusters=3).cluster
    assert again.tolist() == coarsen(usual, num_clusters=3).cluster.tolist()


def test_clean_rows_are_not_copied() -> None:
    rows = ring(9)
    rows.sort_indices()
    found = graph_from_rows(rows.indptr, rows.indices, None)
    assert found.indices is rows.indices


def test_rows_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="square matrix"):
        graph_from_rows(np.array([0, 1]), np.array([4], np.int32), None)
    rows = csr_matrix(np.array([[0, 1.0], [1.5, 0]]))
    with pytest.raises(ValueError, match="other weights"):
        graph_from_rows(rows.indptr, rows.indices, rows.data)


def test_rounding_is_no_direction() -> None:
    rows = csr_matrix(np.array([[0, 0.1], [0.1 + 1e-9, 0]]))
    assert graph_from_rows(rows.indptr, rows.indices, rows.data).num_edges == 1


def test_edges_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="two vectors"):
        graph_from_edges([0, 1], [1])
    with pytest.raises(ValueError, match="node ids"):
        graph_from_edges([0, 5], [5, 0], num_nodes=3)
    with pytest.raises(ValueError, match="one weight per edge"):
        graph_from_edges([0, 1], [1, 0], [1.0])


def test_coarse_graph_has_no_loops() -> None:
    rows = ring(6)
    found = coarse_graph(
        graph_from_rows(rows.indptr, rows.indices, None),
        np.array([0, 0, 1, 1, 2, 2]),
        3,
    )
    assert found.to_scipy().toarray().tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
