"""The graph that coarsening works on."""

from __future__ import annotations

import numpy as np

from pyg_pool.coarsen import Graph, graph_from_edges


def small() -> Graph:
    return graph_from_edges([0, 1, 1, 2, 2], [1, 0, 2, 1, 2], [2, 2, 3, 3, 5])


def test_degree_counts_a_loop_once() -> None:
    assert small().degree().tolist() == [2, 5, 8]
    lonely = graph_from_edges([0, 1], [1, 0], [2, 2], num_nodes=4)
    assert lonely.degree().tolist() == [2, 2, 0, 0]


def test_edges_come_back() -> None:
    graph = small()
    again = graph_from_edges(*graph.edge_index(), graph.edge_weight())
    np.testing.assert_allclose(graph.to_scipy().toarray(), again.to_scipy().toarray())
    assert graph.to_scipy(loops=False).diagonal().tolist() == [0, 0, 0]


def test_repr_says_what_there_is() -> None:
    assert repr(small()) == "Graph(num_nodes=3, num_edges=2, weighted, self loops)"
