"""Scale, slide and flip: what changes, and what must not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pyg_pool.mesh import Mesh, MeshAugmentation, clean_mesh, generate_shape
from pyg_pool.mesh.augment import flip_edges, scale_vertices, slide_vertices
from pyg_pool.mesh.geometry import boundary_edges, edge_keys, face_geometry


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def sheet(size: int = 6, rough: float = 0.02) -> Mesh:
    """An open, nearly flat sheet."""
    rng = np.random.default_rng(size)
    x, y = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    points = np.stack([x, y, 0 * x], axis=2).reshape(-1, 3).astype(float)
    points += rng.uniform(-rough, rough, points.shape)
    corner = (x * size + y)[:-1, :-1].reshape(-1)
    first = np.stack([corner, corner + size, corner + size + 1], axis=1)
    second = np.stack([corner, corner + size + 1, corner + 1], axis=1)
    faces = np.concatenate([first, second])
    return Mesh(points, faces, labels=np.arange(len(faces)) % 25 // 13)


POT = generate_shape("pot", generator=seeded(0))
MESHES = {"sheet": sheet(), "pot": POT, "bumpy": sheet(7, 0.3)}


def edges(mesh: Mesh) -> set[int]:
    return set(edge_keys(mesh).tolist())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MESHES)
def test_flips_keep_what_a_mesh_is(name: str, seed: int) -> None:
    mesh = MESHES[name]
    done = flip_edges(mesh, 0.3, generator=seeded(seed))
    assert done.num_faces == mesh.num_faces
    assert np.array_equal(done.vertices, mesh.vertices)
    assert len(edges(done)) == len(edges(mesh))
    assert np.array_equal(boundary_edges(done), boundary_edges(mesh))
    # Neither repeated half-edges nor copies, nor a face without area.
    cleaned = clean_mesh(done, nonmanifold="error", fix_winding=False)
    assert cleaned.num_faces == mesh.num_faces
    before, after = face_geometry(mesh), face_geometry(done)
    assert after.areas.min() > 0
    changed = (done.faces != mesh.faces).any(axis=1)
    assert ((before.normals * after.normals).sum(axis=1)[changed] > 0).all()
    assert np.array_equal(done.labels, mesh.labels)
    number = len(edges(done) - edges(mesh))
    assert number <= int(0.3 * len(edges(mesh)))
    if name != "bumpy":
        assert number > 5


def test_flip_leaves_borders_of_parts_and_ridges() -> None:
    mesh = sheet()
    parts = flip_edges(mesh, 1.0, generator=seeded(1))
    for label in (0, 1):
        was = mesh.faces[mesh.labels == label]
        now = parts.faces[mesh.labels == label]
        assert np.array_equal(
            boundary_edges(Mesh(mesh.vertices, was)),
            boundary_edges(Mesh(mesh.vertices, now)),
        )
    roof = Mesh(
        [[0, 0, 0], [1, 0, 0], [0.5, 1, 0.8], [0.5, -1, 0.8]], [[0, 1, 2], [1, 0, 3]]
    )
    assert flip_edges(roof, 1.0).faces.tolist() == roof.faces.tolist()
    flat = Mesh(roof.vertices * [1, 1, 0], roof.faces)
    assert sorted(map(sorted, flip_edges(flat, 1.0).faces.tolist())) == [
        [0, 2, 3],
        [1, 2, 3],
    ]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MESHES)
def test_slides_turn_no_face_over(name: str, seed: int) -> None:
    mesh = MESHES[name]
    done = slide_vertices(mesh, 0.5, generator=seeded(seed))
    assert np.array_equal(done.faces, mesh.faces)
    moved = (done.vertices != mesh.vertices).any(axis=1)
    assert moved.sum() <= mesh.num_vertices // 2
    assert not moved[boundary_edges(mesh)].any()
    before, after = face_geometry(mesh).normals, face_geometry(done).normals
    assert ((before * after).sum(axis=1) > 0).all()
    if name != "bumpy":
        assert moved.sum() > 2
    way = np.linalg.norm(done.vertices - mesh.vertices, axis=1)[moved]
    assert way.max(initial=0) <= 0.5 * face_geometry(mesh).lengths.max() + 1e-12


def test_factors_are_normal_and_own() -> None:
    points = np.random.default_rng(0).normal(size=(4000, 3))
    done = scale_vertices(Mesh(points, []), 0.2, mean=1.1, generator=seeded(0))
    factor = done.vertices / points
    np.testing.assert_allclose(factor, factor[:, :1].repeat(3, axis=1))
    assert factor.mean() == pytest.approx(1.1, abs=0.02)
    assert factor[:, 0].std() == pytest.approx(0.2, abs=0.02)


@pytest.mark.parametrize(
    "mesh",
    [
        Mesh([], []),
        Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]),
        Mesh(np.random.default_rng(0).normal(size=(9, 3)), np.arange(9).reshape(3, 3)),
        Mesh(sheet().vertices, sheet().faces[:3]),
    ],
)
def test_fault_open_and_tiny_meshes_are_taken(mesh: Mesh) -> None:
    # The published slide and flip stop with an error on these.
    done = MeshAugmentation(scale=0.1, slide=1.0, flip=1.0)(mesh, seeded(0))
    assert done.num_faces == mesh.num_faces


def test_seed_repeats_the_change() -> None:
    change = MeshAugmentation(scale=0.05)
    first, second = change(POT, seeded(7)), change(POT, seeded(7))
    assert np.array_equal(first.vertices, second.vertices)
    assert np.array_equal(first.faces, second.faces)
    assert not np.array_equal(first.faces, change(POT, seeded(8)).faces)
    nothing = MeshAugmentation(0, 0, 0)(POT)
    assert np.array_equal(nothing.vertices, POT.vertices)
    assert np.array_equal(nothing.faces, POT.faces)


@pytest.mark.parametrize("change", [slide_vertices, flip_edges])
def test_share_must_be_a_share(change: object) -> None:
    with pytest.raises(ValueError, match=r"fraction=1.5, expected a share from 0 to 1"):
        change(POT, 1.5)
