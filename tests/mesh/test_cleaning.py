"""Cleaning against stored values, and its rules on small broken meshes."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from pyg_pool.errors import PygPoolWarning
from pyg_pool.mesh import (
    Mesh,
    clean_mesh,
    primal_dual_graph,
    read_mesh,
    simplify_mesh,
)
from pyg_pool.mesh.cleaning import merge_vertices, winding_flips
from tests.golden_files import load, names

BOX = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
BOX_FACES = np.array(
    [
        [0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
        [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3],
    ]
)  # fmt: skip
TURNED = [0, 2, 1]

# Faces, vertices, pairs of neighbours, faces without neighbour and most neighbours
# of real files with faults, with nonmanifold="drop" and "keep", windings left alone.
BROKEN = {
    "bunny": ((16129, 8124, 24121, 0, 3), (16139, 8124, 24166, 0, 5)),
    "cycloidal": ((42884, 21383, 63956, 0, 3), (43368, 21384, 66020, 0, 5)),
    "joined_tetrahedra": ((6, 5, 9, 0, 3), (6, 5, 9, 0, 3)),
    "multibody": ((24, 20, 27, 0, 3), (32, 20, 48, 0, 3)),
    "soup": ((100, 300, 0, 100, 0), (100, 300, 0, 100, 0)),
    "not_convex": ((74, 44, 95, 1, 3), (96, 44, 192, 0, 7)),
    "capsule": ((10000, 5002, 15000, 0, 3), (10000, 5002, 15000, 0, 3)),
    "two_objects": ((13, 8, 18, 1, 3), (16, 8, 36, 0, 7)),
    "rabbit": ((1252, 644, 1878, 0, 3), (1252, 644, 1878, 0, 3)),
    "reference": ((1610, 845, 2375, 0, 3), (1610, 845, 2375, 0, 3)),
    "octagonal_pocket": ((3262, 1658, 4866, 0, 3), (3262, 1658, 4866, 0, 3)),
    "featuretype": ((3476, 1722, 5214, 0, 3), (3476, 1722, 5214, 0, 3)),
    "target": ((3318, 1715, 4917, 0, 3), (3318, 1715, 4917, 0, 3)),
    "box": ((12, 8, 18, 0, 3), (12, 8, 18, 0, 3)),
    "notenoughindices": ((1, 3, 0, 1, 0), (1, 3, 0, 1, 0)),
    "round": ((1120, 560, 1680, 0, 3), (1120, 560, 1680, 0, 3)),
}

quiet = pytest.mark.filterwarnings("ignore::pyg_pool.errors.PygPoolWarning")


def figures(mesh: Mesh) -> tuple[int, ...]:
    """The numbers of ``BROKEN``."""
    edges = primal_dual_graph(mesh).edge_index
    degree = np.bincount(edges[0], minlength=mesh.num_faces)
    sizes = (mesh.num_faces, mesh.num_vertices, edges.shape[1] // 2)
    return (*sizes, int((degree == 0).sum()), int(degree.max(initial=0)))


@quiet
@pytest.mark.parametrize("name", names("mesh", "clean_*"))
@pytest.mark.parametrize("how", ["drop", "keep"])
def test_golden_cleaning(name: str, how: str) -> None:
    golden = load("mesh", name)
    mesh = Mesh(golden["inputs"]["vertices"], golden["inputs"]["faces"])
    key = {"drop": "prevent_nonmanifold", "keep": "keep_nonmanifold"}[how]
    expected = golden["outputs"][key]
    done = clean_mesh(mesh, nonmanifold=how, fix_winding=False)
    np.testing.assert_allclose(
        done.vertices, expected["vertices"], atol=golden["tolerance"], rtol=0
    )
    assert done.faces.tolist() == expected["faces"].tolist()


@quiet
@pytest.mark.data
@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(name: str, data_root: Path) -> None:
    found = sorted(data_root.glob(f"**/broken/{name}.off"))
    if not found:
        pytest.skip(f"no broken/{name}.off under {data_root}")
    for how, expected in zip(("drop", "keep"), BROKEN[name], strict=True):
        mesh = read_mesh(found[0], nonmanifold=how, fix_winding=False)
        assert figures(mesh) == expected
        raw = read_mesh(found[0], clean=False)
        place = raw.vertices[raw.faces[mesh.face_index]]
        assert np.array_equal(mesh.vertices[mesh.faces], place)
    fixed = read_mesh(found[0])
    assert fixed.num_faces >= BROKEN[name][0][0]


@quiet
@pytest.mark.data
@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_simplified(name: str, data_root: Path) -> None:
    pytest.importorskip("igl")
    found = sorted(data_root.glob(f"**/broken/{name}.off"))
    if not found:
        pytest.skip(f"no broken/{name}.off under {data_root}")
    mesh = read_mesh(found[0])
    small = clean_mesh(simplify_mesh(mesh, 800))
    assert 0 < small.num_faces <= 2000
    assert small.num_faces >= min(mesh.num_faces, 600)


@quiet
@pytest.mark.parametrize("how", ["drop", "keep"])
def test_every_small_broken_mesh_gives_a_result(how: str) -> None:
    soup = np.random.default_rng(5).normal(size=(30, 3))
    faces = np.concatenate([BOX_FACES, BOX_FACES[:2, TURNED], [[0, 0, 1], [8, 9, 10]]])
    points = np.concatenate([BOX, [[5, 5, 5], [6, 5, 5], [7, 5, 5]]])
    for mesh in (
        Mesh([], []),
        Mesh(BOX, []),
        Mesh(BOX[:3], [[0, 1, 2]]),
        Mesh(soup, np.arange(30).reshape(10, 3)),
        Mesh(points, faces),
        Mesh(BOX[BOX_FACES].reshape(-1, 3), np.arange(36).reshape(12, 3)),
    ):
        done = clean_mesh(mesh, nonmanifold=how)
        assert done.num_faces == len(done.face_index)
        figures(done)
    assert figures(clean_mesh(mesh, nonmanifold=how)) == (12, 8, 18, 0, 3)


def test_fin_is_removed_and_copies_leave_one() -> None:
    fin = Mesh(BOX, [*BOX_FACES.tolist(), [0, 1, 6], [6, 1, 0]])
    with pytest.warns(PygPoolWarning, match="dropped 2 of 14 faces"):
        done = clean_mesh(fin)
    assert done.face_index.tolist() == list(range(12))
    # The commoner winding, as it was written last, at the place of the first.
    copies = [[0, 1, 2], [1, 3, 2], [0, 2, 1], [1, 2, 0]]
    with pytest.warns(PygPoolWarning, match="2 repeat a vertex or another face"):
        done = clean_mesh(Mesh(BOX, copies), fix_winding=False)
    assert done.faces.tolist() == [[1, 2, 0], [1, 3, 2]]
    assert done.face_index.tolist() == [3, 1]


def test_faces_without_area_or_with_a_repeated_vertex_go() -> None:
    points = [[0, 0, 0], [1, 0, 0], [0.5, 0, 0], [0, 1, 0], [9, 9, 9]]
    faces = [[0, 1, 2], [0, 1, 3], [3, 3, 1]]
    with pytest.warns(PygPoolWarning, match="1 repeat a vertex.*, 1 have no area"):
        done = clean_mesh(Mesh(points, faces, labels=[7, 8, 9]))
    assert done.face_index.tolist() == [1]
    assert done.labels.tolist() == [8]
    assert done.num_vertices == 3


@pytest.mark.parametrize("seed", range(4))
def test_windings_are_mended_without_loss(seed: int) -> None:
    rng = np.random.default_rng(seed)
    faces = BOX_FACES.copy()
    turned = rng.random(12) < 0.4
    faces[turned] = faces[turned][:, TURNED]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = clean_mesh(Mesh(BOX, faces))
    assert figures(done) == (12, 8, 18, 0, 3)
    alpha = primal_dual_graph(done).x_dual[:, 0].unique(dim=0).numpy()
    # All ridges or, if most faces were turned, all valleys; the diagonals are flat.
    assert len(np.unique(alpha.round(4))) == 2
    with pytest.warns(PygPoolWarning, match="share a half-edge with an earlier face"):
        assert clean_mesh(Mesh(BOX, faces), fix_winding=False).num_faces < 12


def test_fewest_faces_are_turned_on_each_body() -> None:
    faces = np.concatenate([BOX_FACES, BOX_FACES + 8])
    for turned in ([3], [0, 5, 23]):
        wrong = faces.copy()
        wrong[turned] = wrong[turned][:, TURNED]
        assert np.flatnonzero(winding_flips(wrong, 16)).tolist() == turned
    assert not winding_flips(faces[:0], 0).any()


def test_surface_with_one_side_is_left_alone() -> None:
    band = [[i, (i + 1) % 5, (i + 2) % 5] for i in range(5)]
    angle = np.arange(5) * 2 * np.pi / 5
    points = np.stack([np.cos(angle), np.sin(angle), angle % 1], axis=1)
    assert not winding_flips(np.array(band), 5).any()
    kept = clean_mesh(Mesh(points, band), nonmanifold="keep")
    assert kept.faces.tolist() == band


def test_nonmanifold_edge_is_named() -> None:
    book = [[0, 1, 2], [1, 0, 4], [0, 1, 6]]
    with pytest.raises(
        ValueError, match=r"1 non-manifold edges, first: vertices 0 and 1 at .*"
        r"\[0\.0, 0\.0, 1\.0\], where faces \[0, 1, 2\] meet",
    ):  # fmt: skip
        clean_mesh(Mesh(BOX, book), nonmanifold="error")
    assert clean_mesh(Mesh(BOX, book), nonmanifold="keep").num_faces == 3
    with pytest.warns(PygPoolWarning, match="dropped 1 of 3"):
        assert clean_mesh(Mesh(BOX, book)).face_index.tolist() == [0, 1]
    closed = clean_mesh(Mesh(BOX, BOX_FACES), nonmanifold="error")
    assert closed.num_faces == 12


def test_seam_left_by_rounding_closes_on_request() -> None:
    points = np.concatenate([BOX, BOX[[1, 3]] + [[1e-13, -2e-13, 0]]])
    faces = BOX_FACES.copy()
    faces[10:] = [[8, 5, 7], [8, 7, 9]]
    mesh = Mesh(points, faces)
    assert clean_mesh(mesh).num_vertices == 10
    assert figures(clean_mesh(mesh, merge_tolerance=1e-12)) == (12, 8, 18, 0, 3)
    assert merge_vertices(np.array([[0.0, 0, 0], [-0.0, 0, 0]])).tolist() == [0, 0]
    assert merge_vertices(np.empty((0, 3))).tolist() == []


def test_index_and_labels_lead_back_through_two_cleanings() -> None:
    faces = [[0, 0, 1], *BOX_FACES.tolist()]
    with pytest.warns(PygPoolWarning):
        once = clean_mesh(Mesh(BOX, faces, labels=range(13)))
    twice = clean_mesh(once)
    assert twice.face_index.tolist() == list(range(1, 13))
    assert twice.labels.tolist() == list(range(1, 13))


def test_unknown_option_is_refused() -> None:
    with pytest.raises(ValueError, match=r"nonmanifold='dropp'.*did you mean 'drop'"):
        clean_mesh(Mesh(BOX, BOX_FACES), nonmanifold="dropp")
    bad = BOX.copy()
    bad[0] = np.nan
    with pytest.raises(ValueError, match="NaN or infinite coordinates in 6 faces"):
        clean_mesh(Mesh(bad, BOX_FACES))
