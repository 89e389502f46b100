"""Standardisation against stored values, and on features that do not vary."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch

from pyg_pool.mesh import FeatureScaling, Mesh, PrimalDualData, primal_dual_graph
from tests.golden_files import load, names


def stored(name: str) -> tuple[dict, list[PrimalDualData]]:
    golden = load("mesh", name)
    meshes = [Mesh(each["vertices"], each["faces"]) for each in golden["inputs"]]
    return golden, [primal_dual_graph(mesh, dtype=torch.float64) for mesh in meshes]


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("name", names("mesh", "standardisation"))
def test_golden_standardisation(name: str, batched: bool) -> None:
    golden, graphs = stored(name)
    scaling = FeatureScaling().double()
    scaling.fit([Batch.from_data_list(graphs)] if batched else graphs)
    limits = {"atol": golden["tolerance"], "rtol": 0}
    outputs = golden["outputs"]
    torch.testing.assert_close(scaling.mean, outputs["primal_mean"], **limits)
    torch.testing.assert_close(scaling.std, outputs["primal_std"], **limits)
    torch.testing.assert_close(scaling.mean_dual, outputs["dual_mean"], **limits)
    torch.testing.assert_close(scaling.std_dual, outputs["dual_std"], **limits)


def test_scaled_features_are_standard_and_the_input_stays() -> None:
    graphs = stored("standardisation")[1]
    scaling = FeatureScaling().double().fit(graphs)
    before = graphs[0].x.clone()
    scaled = [scaling(graph) for graph in graphs]
    assert torch.equal(graphs[0].x, before)
    for key in ("x", "x_dual"):
        rows = torch.cat([graph[key] for graph in scaled])
        torch.testing.assert_close(rows.mean(0), torch.zeros_like(rows[0]))
        torch.testing.assert_close(rows.std(0), torch.ones_like(rows[0]))
    assert torch.equal(scaled[0].edge_index, graphs[0].edge_index)
    half = scaling(graphs[0].apply(lambda t: t.half(), "x", "x_dual"))
    assert half.x.dtype == torch.float16


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_features_that_do_not_vary_are_only_shifted(dtype: torch.dtype) -> None:
    cube = load("mesh", "graph_icosphere1")["inputs"]
    tetrahedron = Mesh(
        [[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]],
        [[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]],
    )
    graph = primal_dual_graph(tetrahedron, dtype=dtype)
    scaling = FeatureScaling().fit([graph])
    assert scaling.std.tolist() == [1.0]
    assert scaling.std_dual.tolist() == [1.0] * 7
    assert scaling(graph).x_dual.abs().max() < 1e-5
    round_one = primal_dual_graph(Mesh(cube["vertices"], cube["faces"]), dtype=dtype)
    assert (FeatureScaling().fit([round_one]).std < 0.1).all()


def test_mesh_without_dual_nodes_changes_nothing() -> None:
    alone = primal_dual_graph(Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]))
    scaling = FeatureScaling().fit([alone])
    assert scaling.mean.tolist() == [1.0]
    assert scaling.std.tolist() == [1.0]
    assert scaling.mean_dual.tolist() == [0.0] * 7
    assert scaling(alone).x_dual.shape == (0, 7)


def test_travels_with_the_weights() -> None:
    model = torch.nn.ModuleDict(
        {"scaling": FeatureScaling().fit(stored("standardisation")[1])}
    )
    twin = torch.nn.ModuleDict({"scaling": FeatureScaling()})
    twin.load_state_dict(model.state_dict())
    assert torch.equal(twin["scaling"].std_dual, model["scaling"].std_dual)
    assert repr(twin["scaling"]) == "FeatureScaling(1, 7)"


def test_wrong_features_are_refused() -> None:
    graph = stored("standardisation")[1][0]
    with pytest.raises(ValueError, match=r"1 features of faces and 7 .*in_channels=1"):
        FeatureScaling(4, 7).fit([graph])
    with pytest.raises(ValueError, match="got no meshes"):
        FeatureScaling().fit([])
