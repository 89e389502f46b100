"""The two graphs of a mesh against stored values, and their rules."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pyg_pool.mesh import Mesh, primal_dual_graph
from tests.golden_files import load, names


def in_order(x: Tensor, expected: Tensor, dual: bool) -> Tensor:
    """``x`` with the two faces of a dual node swapped where the golden allows it."""
    if not dual or x.size(1) != 7:
        return x
    tie = (x[:, 1] - x[:, 2]).abs() < 1e-9
    swapped = x[:, [0, 2, 1, 4, 3, 6, 5]]
    closer = (swapped - expected).abs().sum(1) < (x - expected).abs().sum(1)
    return torch.where((tie & closer).unsqueeze(1), swapped, x)


@pytest.mark.parametrize("config", ["A", "B", "C"])
@pytest.mark.parametrize("name", names("mesh", "graph_*"))
def test_golden_graph(name: str, config: str) -> None:
    golden = load("mesh", name)
    mesh = Mesh(golden["inputs"]["vertices"], golden["inputs"]["faces"])
    expected = golden["outputs"][config]
    graph = primal_dual_graph(mesh, config, dtype=torch.float64)
    assert torch.equal(graph.edge_index, expected["primal_edge_index"])
    assert torch.equal(graph.edge_index_dual, expected["dual_edge_index"])
    assert torch.equal(graph.edge_to_dual, expected["edge_to_dual"])
    first = torch.full((graph.num_dual_nodes,), -1)
    low = graph.edge_index[0] < graph.edge_index[1]
    used = low if config == "A" else torch.ones_like(low)
    first[graph.edge_to_dual[used]] = graph.edge_index[0, used]
    assert torch.equal(first, expected["dual_nodes"][:, 0])
    limits = {"atol": golden["tolerance"], "rtol": golden["tolerance"]}
    torch.testing.assert_close(graph.x, expected["primal_x"], **limits)
    dual = in_order(graph.x_dual, expected["dual_x"], True)
    torch.testing.assert_close(dual, expected["dual_x"], **limits)
    seen = primal_dual_graph(mesh, config, primal_features="dual", dtype=torch.float64)
    key = f"{config}_from_dual"
    torch.testing.assert_close(seen.x, golden["outputs"][key]["primal_x"], **limits)


@pytest.mark.parametrize("name", names("mesh", "dihedral_hinges"))
def test_golden_hinges(name: str) -> None:
    golden = load("mesh", name)
    for case in golden["cases"]:
        mesh = Mesh(case["vertices"], case["faces"])
        alpha = primal_dual_graph(mesh, dtype=torch.float64).x_dual[0, 0]
        assert float(alpha) == pytest.approx(case["dihedral_rad"], abs=1e-9)
