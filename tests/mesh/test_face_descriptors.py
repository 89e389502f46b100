"""Descriptors of a face's place: poses, numberings, known shapes, broken meshes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pyg_pool.mesh import Mesh, generate_shape, primal_dual_graph
from pyg_pool.mesh.adjacency import face_adjacency
from pyg_pool.mesh.face_descriptors import NUM_DESCRIPTORS, face_descriptors
from pyg_pool.mesh.geometry import face_geometry


def described(mesh: Mesh) -> np.ndarray:
    return face_descriptors(mesh, face_geometry(mesh), face_adjacency(mesh))


@pytest.fixture(scope="module")
def cup() -> Mesh:
    return generate_shape("cup", generator=torch.Generator().manual_seed(1))


def a_turn() -> np.ndarray:
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    return turn * np.sign(np.linalg.det(turn))


def strip(count: int) -> Mesh:
    """A flat strip of unit squares, two triangles each."""
    x = np.arange(count + 1.0)
    points = np.concatenate(
        [np.stack([x, 0 * x, 0 * x], 1), np.stack([x, 0 * x + 1, 0 * x], 1)]
    )
    k = np.arange(count)
    low = np.stack([k, k + 1, count + 1 + k], 1)
    high = np.stack([k + 1, count + 2 + k, count + 1 + k], 1)
    return Mesh(points, np.concatenate([low, high]))


def test_pose_and_size_change_nothing(cup: Mesh) -> None:
    moved = Mesh(3.0 * cup.vertices @ a_turn().T + [4.0, -1.0, 2.0], cup.faces)
    np.testing.assert_allclose(described(moved), described(cup), atol=1e-8)


def test_descriptors_follow_their_faces(cup: Mesh) -> None:
    order = np.random.default_rng(1).permutation(cup.num_faces)
    shuffled = Mesh(cup.vertices, cup.faces[order])
    np.testing.assert_allclose(described(shuffled), described(cup)[order], atol=1e-8)


def test_the_frame_is_that_of_the_surface(cup: Mesh) -> None:
    values = described(cup)
    areas = face_geometry(cup).areas
    share = areas / areas.sum()
    position, normal = values[:, :3], values[:, 3:6]
    np.testing.assert_allclose(share @ position, 0.0, atol=1e-9)
    spread = (share[:, None] * position).T @ position
    np.testing.assert_allclose(spread, np.diag(np.diag(spread)), atol=1e-9)
    assert np.trace(spread) == pytest.approx(1.0)
    assert np.all(np.diff(np.diag(spread)) <= 1e-9)
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0)
    np.testing.assert_allclose(values[:, 6], np.linalg.norm(position, axis=1))
    np.testing.assert_allclose(values[:, 7], (position * normal).sum(1))


def test_distances_along_a_strip() -> None:
    count = 40
    values = described(strip(count))
    middle, end = count // 2, 0
    # Mean distance from the middle is a quarter of the length, from an end a half.
    assert values[end, 8] / values[middle, 8] == pytest.approx(2.0, rel=0.03)
    assert values[:, 9].min() == 0.0
    assert values[:, 9].max() == 1.0
    assert values[end, 15] / values[middle, 15] == pytest.approx(2.0, rel=0.03)
    assert np.all(np.diff(values[:, 10:16], axis=1) >= 0)
    assert np.all(np.diff(values[:, 16:20], axis=1) >= 0)
    assert np.all(values[:, 16:20] <= 1.0 + 1e-9)


def test_heat_stays_longest_at_the_ends_of_a_strip() -> None:
    values = described(strip(40))
    assert np.all(values[0, 20:27] > values[20, 20:27])


def test_dense_and_sparse_solvers_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyg_pool.mesh import face_descriptors as module

    mesh = strip(60)
    dense = described(mesh)
    monkeypatch.setattr(module, "_DENSE", 50)
    np.testing.assert_allclose(described(mesh), dense, atol=1e-6)


def test_parts_that_do_not_touch_know_only_themselves() -> None:
    one = strip(10)
    far = Mesh(
        np.vstack([one.vertices, one.vertices + np.array([0.0, 50.0, 0.0])]),
        np.concatenate([one.faces, one.faces + one.num_vertices]),
    )
    values = described(far)[:, [8, 15]]
    np.testing.assert_allclose(values[:20], values[20:])
    np.testing.assert_allclose(values[:20], described(one)[:, [8, 15]] / np.sqrt(2))


@pytest.mark.parametrize(
    "faces", [[], [[0, 1, 2]], [[0, 1, 2], [3, 4, 5]], [[0, 1, 2], [0, 1, 1]]]
)
def test_tiny_and_broken_meshes_have_finite_rows(faces: list[list[int]]) -> None:
    points = np.array(
        [[0, 0, 0], [1, 0, 0], [0, 1, 0], [5, 0, 0], [6, 0, 0], [5, 1, 0.0]]
    )
    mesh = Mesh(points, np.array(faces, dtype=np.int64).reshape(-1, 3))
    values = described(mesh)
    assert values.shape == (len(faces), NUM_DESCRIPTORS)
    assert np.isfinite(values).all()


def test_flat_mesh_without_any_area() -> None:
    mesh = Mesh(np.zeros((3, 3)), np.array([[0, 1, 2]]))
    assert np.isfinite(described(mesh)).all()


def test_graphs_carry_them(cup: Mesh) -> None:
    graph = primal_dual_graph(cup, primal_features="shape", dtype=torch.float64)
    assert graph.x.shape == (cup.num_faces, 1 + NUM_DESCRIPTORS)
    np.testing.assert_array_equal(graph.x[:, 1:].numpy(), described(cup))
    plain = primal_dual_graph(cup, dtype=torch.float64)
    assert torch.equal(graph.x[:, :1], plain.x)
