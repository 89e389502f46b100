from __future__ import annotations

import pickle

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from pyg_pool.train.store import GraphStore


def graph(nodes: int, edges: list[tuple[int, int]], y: int) -> Data:
    edge_index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t().contiguous()
    return Data(
        x=torch.randn(nodes, 3),
        edge_index=edge_index,
        edge_attr=torch.randn(len(edges), 2),
        y=torch.tensor([y]),
    )


@pytest.fixture
def graphs() -> list[Data]:
    """Four graphs; one has no edges, one has a self-loop and a repeated edge."""
    return [
        graph(3, [(0, 1), (1, 0), (1, 2)], 0),
        graph(1, [], 1),
        graph(2, [(1, 1), (0, 1), (0, 1)], 2),
        graph(4, [(3, 0)], 3),
    ]


def assert_equal(given: Data, expected: Data) -> None:
    for key in ("x", "edge_index", "edge_attr", "y"):
        torch.testing.assert_close(given[key], expected[key], rtol=0, atol=0)


def test_gives_back_the_graphs_it_was_made_of(graphs: list[Data]) -> None:
    store = GraphStore.from_graphs(graphs)
    assert len(store) == 4
    for i, expected in enumerate(graphs):
        assert_equal(store[i], expected)
    for given, expected in zip(store, graphs, strict=True):
        assert_equal(given, expected)
    assert_equal(store[-1], graphs[3])
    assert store.num_nodes.tolist() == [3, 1, 2, 4]
    assert store.num_edges.tolist() == [3, 0, 3, 1]
    assert (store.num_node_features, store.num_edge_features) == (3, 2)
    assert repr(store) == "GraphStore(4 graphs, 10 nodes, 7 edges)"


def test_views_select_and_share_memory(graphs: list[Data]) -> None:
    store = GraphStore.from_graphs(graphs)
    view = store[torch.tensor([3, 1, 2])]
    assert view.y.tolist() == [3, 1, 2]
    assert view[[2, 0]].numbers.tolist() == [2, 3]
    assert store[1:3].y.tolist() == [1, 2]
    assert store[torch.tensor([True, False, False, True])].y.tolist() == [0, 3]
    assert len(store[[]]) == 0
    assert view.x.data_ptr() == store.x.data_ptr()
    assert repr(view) == "GraphStore(3 graphs, 7 nodes, 4 edges)"
    with pytest.raises(IndexError, match=r"got index 3, expected one below 3"):
        view[3]


@pytest.mark.parametrize("chosen", [[0, 1, 2, 3], [2, 0, 2], [1], []])
def test_batch_equals_pyg_collation(graphs: list[Data], chosen: list[int]) -> None:
    given = GraphStore.from_graphs(graphs).batch(chosen)
    assert given.num_graphs == len(chosen)
    if not chosen:
        assert given.x.shape == (0, 3)
        return
    expected = Batch.from_data_list([graphs[i] for i in chosen])
    assert set(given.keys()) == set(expected.keys())
    for key in expected.keys():  # noqa: SIM118 - PyG's batch is no mapping
        torch.testing.assert_close(given[key], expected[key], rtol=0, atol=0)


def test_batch_counts_inside_a_view(graphs: list[Data]) -> None:
    view = GraphStore.from_graphs(graphs)[[3, 2, 0]]
    assert view.batch([0, 2]).y.tolist() == [3, 0]
    assert view.batch().y.tolist() == [3, 2, 0]


def test_graphs_without_edge_features() -> None:
    plain = [
        Data(
            x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), y=torch.ones(1, 2)
        )
        for _ in range(2)
    ]
    store = GraphStore.from_graphs(plain)
    assert store.num_edge_features == 0
    assert store[1].edge_attr is None
    assert "edge_attr" not in store.batch().keys()  # noqa: SIM118
    assert store.y.shape == (2, 2)


def test_refuses_tensors_that_do_not_fit() -> None:
    with pytest.raises(
        ValueError, match="got x with 3 entries, expected 2 for 1 graph"
    ):
        GraphStore(
            torch.ones(3, 1),
            torch.empty(2, 0).long(),
            y=torch.zeros(1),
            node_ptr=torch.tensor([0, 2]),
            edge_ptr=torch.tensor([0, 0]),
        )
    with pytest.raises(ValueError, match="got no graph, expected at least one"):
        GraphStore.from_graphs([])


def test_pickles_as_few_tensors(graphs: list[Data]) -> None:
    store = GraphStore.from_graphs(graphs)[[2, 1]]
    copy = pickle.loads(pickle.dumps(store))
    assert_equal(copy[0], graphs[2])
    assert sum(isinstance(v, torch.Tensor) for v in vars(copy).values()) == 7


@pytest.mark.slow
def test_spawned_workers_read_it(graphs: list[Data]) -> None:
    store = GraphStore.from_graphs(graphs)
    loader = DataLoader(
        store, batch_size=3, num_workers=2, multiprocessing_context="spawn"
    )
    assert [batch.y.tolist() for batch in loader] == [[0, 1, 2], [3]]
