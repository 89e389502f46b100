"""The two graphs of a mesh against stored values, and their rules."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from pyg_pool.mesh import Mesh, PrimalDualData, primal_dual_graph
from tests.golden_files import load, names

CONFIGS = ("A", "B", "C")


def in_order(x: Tensor, expected: Tensor) -> Tensor:
    """``x`` with the two faces of a dual node swapped where a tie allows it."""
    if x.size(1) != 7:
        return x
    tie = (expected[:, 1] - expected[:, 2]).abs() < 1e-9
    swapped = x[:, [0, 2, 1, 4, 3, 6, 5]]
    closer = (swapped - expected).abs().sum(1) < (x - expected).abs().sum(1)
    return torch.where((tie & closer).unsqueeze(1), swapped, x)


def ends(graph: PrimalDualData, config: str) -> Tensor:
    """The faces of each dual node: the lower first, or in their direction."""
    low = graph.edge_index[0] < graph.edge_index[1]
    used = low if config == "A" else torch.ones_like(low)
    pairs = torch.full((graph.num_dual_nodes, 2), -1)
    pairs[graph.edge_to_dual[used]] = graph.edge_index[:, used].t()
    return pairs


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("name", names("mesh", "graph_*"))
def test_golden_graph(name: str, config: str) -> None:
    golden = load("mesh", name)
    mesh = Mesh(golden["inputs"]["vertices"], golden["inputs"]["faces"])
    expected = golden["outputs"][config]
    graph = primal_dual_graph(mesh, config, dtype=torch.float64)
    assert torch.equal(graph.edge_index, expected["primal_edge_index"])
    assert torch.equal(graph.edge_index_dual, expected["dual_edge_index"])
    assert torch.equal(graph.edge_to_dual, expected["edge_to_dual"])
    assert torch.equal(ends(graph, config), expected["dual_nodes"])
    limits = {"atol": golden["tolerance"], "rtol": 0}
    torch.testing.assert_close(graph.x, expected["primal_x"], **limits)
    dual = in_order(graph.x_dual, expected["dual_x"])
    torch.testing.assert_close(dual, expected["dual_x"], **limits)
    seen = primal_dual_graph(mesh, config, primal_features="dual", dtype=torch.float64)
    expected = golden["outputs"][f"{config}_from_dual"]
    torch.testing.assert_close(seen.x, expected["primal_x"], **limits)


@pytest.mark.parametrize("name", names("mesh", "dihedral_hinges"))
def test_golden_hinges(name: str) -> None:
    golden = load("mesh", name)
    for case in golden["cases"]:
        mesh = Mesh(case["vertices"], case["faces"])
        alpha = primal_dual_graph(mesh, dtype=torch.float64).x_dual[0, 0]
        expected = pytest.approx(case["dihedral_rad"], abs=golden["tolerance"])
        assert float(alpha) == expected


def surface(seed: int = 0, size: int = 5) -> Mesh:
    """A bumpy open grid with irregular triangles."""
    rng = np.random.default_rng(seed)
    x, y = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    points = np.stack([x, y, 0 * x], axis=2).reshape(-1, 3)
    points = points + rng.uniform(-0.25, 0.25, points.shape)
    corner = (x * size + y)[:-1, :-1].reshape(-1)
    first = np.stack([corner, corner + size, corner + size + 1], axis=1)
    second = np.stack([corner, corner + size + 1, corner + 1], axis=1)
    return Mesh(points, np.concatenate([first, second]))


def graph_of(points: np.ndarray, faces: np.ndarray, config: str) -> PrimalDualData:
    return primal_dual_graph(Mesh(points, faces), config, dtype=torch.float64)


@pytest.mark.parametrize("config", CONFIGS)
def test_pose_and_size_change_nothing(config: str) -> None:
    mesh = surface()
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    before = primal_dual_graph(mesh, config, dtype=torch.float64)
    moved = 3.7 * mesh.vertices @ turn.T + [4, -2, 9]
    after = graph_of(moved, mesh.faces, config)
    torch.testing.assert_close(before.x, after.x)
    torch.testing.assert_close(before.x_dual, after.x_dual)
    assert torch.equal(before.edge_index_dual, after.edge_index_dual)
    torch.testing.assert_close(before.face_areas * 3.7**2, after.face_areas)


@pytest.mark.parametrize("config", CONFIGS)
def test_mirror_and_winding(config: str) -> None:
    mesh = surface()
    mirrored, turned = mesh.vertices * [1, 1, -1], mesh.faces[:, [0, 2, 1]]
    before = primal_dual_graph(mesh, config, dtype=torch.float64).x_dual
    mirror = graph_of(mirrored, mesh.faces, config).x_dual
    flip = graph_of(mesh.vertices, turned, config).x_dual
    both = graph_of(mirrored, turned, config).x_dual
    swap = [0, 1, 2, 5, 6, 3, 4] if config == "A" else [0, 1, 3, 2]
    opposite = before.clone()
    opposite[:, 0] = 2 * np.pi - opposite[:, 0]
    torch.testing.assert_close(mirror, opposite)
    torch.testing.assert_close(flip, opposite[:, swap])
    torch.testing.assert_close(both, before[:, swap])


@pytest.mark.parametrize("config", CONFIGS)
def test_order_of_faces_permutes_everything(config: str) -> None:
    mesh = surface()
    order = np.random.default_rng(2).permutation(mesh.num_faces)
    before = primal_dual_graph(mesh, config, dtype=torch.float64)
    after = graph_of(mesh.vertices, mesh.faces[order], config)
    place = torch.from_numpy(order)
    torch.testing.assert_close(before.x[place], after.x)
    pairs = place[ends(after, config)]
    if config == "A":
        pairs = pairs.sort(dim=1).values
    key = pairs[:, 0] * mesh.num_faces + pairs[:, 1]
    number = key.argsort()
    assert torch.equal(pairs[number], ends(before, config))
    torch.testing.assert_close(after.x_dual[number], before.x_dual)
    new = number.argsort()[after.edge_index_dual]
    new = new[:, (new[0] * len(key) + new[1]).argsort()]
    assert torch.equal(new, before.edge_index_dual)


@pytest.mark.parametrize(
    ("config", "nodes", "edges"), [("A", 1.5, 6), ("B", 3, 12), ("C", 3, 6)]
)
def test_sizes_of_a_closed_mesh(config: str, nodes: float, edges: int) -> None:
    golden = load("mesh", "graph_icosphere1")["inputs"]
    mesh = Mesh(golden["vertices"], golden["faces"])
    graph = primal_dual_graph(mesh, config)
    assert graph.num_dual_nodes == nodes * mesh.num_faces
    assert graph.edge_index_dual.size(1) == edges * mesh.num_faces


def test_fault_meshes_without_neighbours_have_empty_dual_graphs() -> None:
    # The published code stops with an IndexError on both.
    soup = np.random.default_rng(0).normal(size=(12, 3))
    for mesh in (Mesh(soup, [[0, 1, 2]]), Mesh(soup, np.arange(12).reshape(4, 3))):
        for config in CONFIGS:
            graph = primal_dual_graph(mesh, config, primal_features="dual")
            assert graph.num_nodes == mesh.num_faces
            assert graph.x_dual.shape == (0, 7 if config == "A" else 4)
            assert graph.edge_index.shape == graph.edge_index_dual.shape == (2, 0)
            assert graph.edge_to_dual.shape == (0,)
            assert not graph.x.any()


def test_fault_isolated_face_has_zeros_instead_of_nan() -> None:
    mesh = surface()
    points = np.concatenate([mesh.vertices, [[9, 9, 9], [10, 9, 9], [9, 10, 9]]])
    faces = np.concatenate([mesh.faces, [[25, 26, 27]]])
    graph = primal_dual_graph(Mesh(points, faces), primal_features="dual")
    assert graph.x.isfinite().all()
    assert not graph.x[-1].any()
    assert graph.x[:-1].all()


def test_components_are_not_joined() -> None:
    mesh = surface()
    twice = np.concatenate([mesh.faces, mesh.faces + mesh.num_vertices])
    points = np.concatenate([mesh.vertices, mesh.vertices])
    graph = primal_dual_graph(Mesh(points, twice))
    side = graph.edge_index >= mesh.num_faces
    assert torch.equal(side[0], side[1])


def test_degenerate_faces_are_capped() -> None:
    points = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0.5, 0, 0], [0, 0, 0]]
    faces = [[0, 1, 2], [1, 0, 3], [0, 2, 4], [0, 0, 1], [2, 2, 2]]
    for config in CONFIGS:
        graph = primal_dual_graph(Mesh(points, faces), config)
        assert graph.x_dual.isfinite().all()
        assert graph.x_dual.max() == 1e6
        assert graph.x_dual[:, 0].min() >= 0
    assert graph.face_areas.tolist() == [0.5, 0, 0, 0, 0]


def test_edge_of_many_faces_is_a_clique() -> None:
    angle = np.arange(5) * 2 * np.pi / 5
    rim = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    points = np.concatenate([[[0, 0, -1], [0, 0, 1]], rim])
    graph = primal_dual_graph(Mesh(points, [[0, 1, 2 + i] for i in range(5)]))
    assert graph.edge_index.size(1) == 5 * 4
    assert graph.edge_index_dual.size(1) == 5 * 4 * 3


def test_ties_go_to_the_lower_face() -> None:
    # Both faces are halves of a square: equal up to rounding, here by 1e-12.
    points = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1 + 1e-12, 1, 0]]
    for faces in ([[0, 1, 2], [1, 3, 2]], [[1, 3, 2], [0, 1, 2]]):
        ratios = primal_dual_graph(Mesh(points, faces), dtype=torch.float64).x_dual[0]
        low = primal_dual_graph(Mesh(points, faces), "B", dtype=torch.float64).x_dual[0]
        assert ratios[1] == low[1]
    points[3] = [1.5, 1, 0]
    swapped = primal_dual_graph(Mesh(points, [[0, 1, 2], [1, 3, 2]])).x_dual[0]
    assert swapped[1] < swapped[2]


def test_labels_and_types() -> None:
    mesh = surface()
    graph = primal_dual_graph(mesh.with_labels(np.arange(32)), dtype=torch.float16)
    assert graph.y.tolist() == list(range(32))
    assert graph.x.dtype == graph.x_dual.dtype == torch.float16
    assert primal_dual_graph(mesh).y is None
    with pytest.raises(ValueError, match=r"config='D', expected one of"):
        primal_dual_graph(mesh, "D")
    with pytest.raises(ValueError, match=r"primal_features='areas'.*mean 'area'"):
        primal_dual_graph(mesh, primal_features="areas")


def test_angles_are_those_of_trimesh() -> None:
    trimesh = pytest.importorskip("trimesh")
    mesh = surface(4, 8)
    peer = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
    sign = np.where(peer.face_adjacency_convex, 1, -1)
    theirs = np.pi + sign * peer.face_adjacency_angles
    pairs = np.sort(peer.face_adjacency, axis=1)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    graph = primal_dual_graph(mesh, dtype=torch.float64)
    assert ends(graph, "A").tolist() == pairs[order].tolist()
    np.testing.assert_allclose(graph.x_dual[:, 0], theirs[order], atol=1e-9)
