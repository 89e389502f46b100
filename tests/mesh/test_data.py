"""Batches of both graphs, and back."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader

from pyg_pool.mesh import Mesh, PrimalDualData, primal_dual_graph

TETRAHEDRON = Mesh(
    [[0, 0, 0], [1, 0, 0], [0.2, 1.1, 0], [0.3, 0.4, 0.9]],
    [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]],
    labels=[0, 1, 1, 2],
)
TRIANGLE = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], labels=[3])
NOTHING = Mesh([], [], labels=[])


@pytest.fixture
def graphs() -> list[PrimalDualData]:
    meshes = [NOTHING, TETRAHEDRON, TRIANGLE, TETRAHEDRON, NOTHING]
    return [primal_dual_graph(mesh) for mesh in meshes]


def test_ids_grow_by_faces_and_dual_nodes(graphs: list[PrimalDualData]) -> None:
    batch = Batch.from_data_list(graphs)
    one = graphs[1]
    edges = torch.cat([one.edge_index, one.edge_index + 5], 1)
    assert torch.equal(batch.edge_index, edges)
    assert torch.equal(
        batch.edge_to_dual, torch.cat([one.edge_to_dual, one.edge_to_dual + 6])
    )
    dual = torch.cat([one.edge_index_dual, one.edge_index_dual + 6], 1)
    assert torch.equal(batch.edge_index_dual, dual)
    assert batch.y.tolist() == [0, 1, 1, 2, 3, 0, 1, 1, 2]


def test_batch_vectors_keep_empty_meshes(graphs: list[PrimalDualData]) -> None:
    batch = next(iter(DataLoader(graphs, batch_size=5)))
    assert batch.num_graphs == 5
    assert batch.batch.tolist() == [1] * 4 + [2] + [3] * 4
    assert batch.batch_dual.tolist() == [1] * 6 + [3] * 6
    assert batch.ptr.tolist() == [0, 0, 4, 5, 9, 9]
    assert batch.ptr_dual.tolist() == [0, 0, 6, 6, 12, 12]
    assert graphs[1].ptr_dual.tolist() == [0, 6]


def test_batch_comes_apart_again(graphs: list[PrimalDualData]) -> None:
    back = Batch.from_data_list(graphs).to_data_list()
    for got, expected in zip(back, graphs, strict=True):
        assert isinstance(got, PrimalDualData)
        assert set(got.keys()) == set(expected.keys())
        for key in expected.keys():  # noqa: SIM118
            assert torch.equal(got[key], expected[key]), key


def test_copies_and_pickles(graphs: list[PrimalDualData]) -> None:
    for twin in (copy.copy(graphs[1]), pickle.loads(pickle.dumps(graphs[1]))):
        assert isinstance(twin, PrimalDualData)
        assert torch.equal(twin.x_dual, graphs[1].x_dual)
        assert twin.num_dual_nodes == 6


def test_class_of_the_whole_mesh_is_one_per_mesh() -> None:
    one = primal_dual_graph(TETRAHEDRON)
    one.y = torch.tensor([4])
    assert Batch.from_data_list([one, one]).y.tolist() == [4, 4]
    assert PrimalDualData().num_dual_nodes == 0
