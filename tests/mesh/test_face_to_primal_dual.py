"""PyG's meshes as graphs."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch, Data

from pyg_pool.errors import PygPoolWarning
from pyg_pool.mesh import FaceToPrimalDual, Mesh, generate_shape, primal_dual_graph

SHAPE = generate_shape("vase")


def as_data(mesh: Mesh, y: torch.Tensor | None = None) -> Data:
    return Data(pos=torch.tensor(mesh.vertices), face=torch.tensor(mesh.faces).t(), y=y)


@pytest.mark.parametrize("config", ["A", "B", "C"])
def test_equals_the_graph_of_the_mesh(config: str) -> None:
    labels = torch.tensor(SHAPE.labels)
    got = FaceToPrimalDual(config, "dual")(as_data(SHAPE, labels))
    expected = primal_dual_graph(
        SHAPE, config, primal_features="dual", dtype=torch.float64
    )
    for key in expected.keys():  # noqa: SIM118
        assert torch.equal(got[key], expected[key]), key
    assert torch.equal(got.face_index, torch.arange(SHAPE.num_faces))
    assert repr(FaceToPrimalDual(config)) == f"FaceToPrimalDual('{config}', 'area')"


def test_labels_follow_the_faces_and_classes_stay() -> None:
    broken = Mesh(SHAPE.vertices, [[0, 0, 1], *SHAPE.faces.tolist()])
    labels = torch.cat([torch.tensor([9]), torch.tensor(SHAPE.labels)])
    with pytest.warns(PygPoolWarning, match="dropped 1 of"):
        got = FaceToPrimalDual()(as_data(broken, labels))
    assert torch.equal(got.y, torch.tensor(SHAPE.labels))
    assert got.face_index[0] == 1
    whole = FaceToPrimalDual(clean=False)(as_data(SHAPE, torch.tensor([3])))
    assert whole.y.tolist() == [3]
    assert "face_index" not in whole


def test_index_of_a_batch_stays_that_of_each_mesh() -> None:
    graph = FaceToPrimalDual()(as_data(SHAPE))
    batch = Batch.from_data_list([graph, graph])
    assert batch.face_index.tolist() == 2 * list(range(SHAPE.num_faces))


def test_other_data_is_refused() -> None:
    with pytest.raises(ValueError, match=r"data with \['x'\], expected pos"):
        FaceToPrimalDual()(Data(x=torch.zeros(2, 1)))
