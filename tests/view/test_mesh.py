"""The sheet of a mesh: its panels, colours and what is in front."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from pyg_pool.mesh import PART_NAMES, Mesh, generate_shape
from pyg_pool.view import draw_mesh
from pyg_pool.view.mesh import _front, _project

pytest.importorskip("matplotlib")

POT = generate_shape("pot", generator=torch.Generator().manual_seed(0))
CUBE = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)


def titles(figure: object) -> list[str]:
    return [ax.get_title().split("\n")[0] for ax in figure.axes]


def test_one_panel_per_known_thing(tmp_path: Path) -> None:
    plain = Mesh(POT.vertices, POT.faces)
    assert titles(draw_mesh(plain)) == ["input"]
    assert titles(draw_mesh(POT)) == ["input", "truth"]
    levels = [np.arange(POT.num_faces) // 3, np.arange(POT.num_faces) // 30]
    figure = draw_mesh(
        POT, prediction=0 * POT.labels, clusters=levels, names=PART_NAMES, title="A pot"
    )
    clusters = ["clusters of level 1", "clusters of level 2"]
    assert titles(figure) == ["input", "truth", "prediction", "errors", *clusters]
    assert "216 clusters" in figure.axes[4].get_title()
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[:3] == ["body", "lid", "handle"]
    share = (POT.labels != 0).mean()
    assert legend[3] == f"wrong ({share:.1%} of the faces)"
    figure.savefig(tmp_path / "pot.png")
    assert (tmp_path / "pot.png").stat().st_size > 10_000


def test_faces_have_the_colours_of_their_labels() -> None:
    figure = draw_mesh(POT)
    drawn = figure.axes[1].collections[0].get_facecolors()[:, :3]
    hues = {tuple((row / row.max()).round(2)) for row in drawn}
    assert len(hues) == 3


def test_hidden_faces_of_closed_meshes_are_left_out() -> None:
    view = _project(POT.vertices, "z", 35, 20)
    seen = _front(view, POT.faces)
    assert 0.3 < seen.mean() < 0.7
    turned = _front(view, POT.faces[:, [0, 2, 1]])
    assert np.array_equal(seen, turned)
    assert _front(view, POT.faces[1:]).all()
    assert len(draw_mesh(POT).axes[0].collections[0].get_paths()) == seen.sum()


@pytest.mark.parametrize("up", ["x", "y", "z"])
def test_axis_that_points_up_is_up(up: str) -> None:
    points = np.zeros((2, 3))
    points[1, "xyz".index(up)] = 1
    view = _project(points, up, 70, 0)
    np.testing.assert_allclose(view[1] - view[0], [0, 1, 0], atol=1e-12)
    # From above one looks at the top: it is nearer than the bottom.
    assert _project(points, up, 70, 45)[1, 2] > 0.5


def test_turn_keeps_lengths_and_sides() -> None:
    view = _project(CUBE, "y", 20, 30)
    apart = np.linalg.norm(view[:, None] - view[None], axis=2)
    np.testing.assert_allclose(apart, np.linalg.norm(CUBE[:, None] - CUBE, axis=2))
    frame = view[[4, 2, 1]] - view[0]
    assert np.linalg.det(frame) == pytest.approx(1)


def test_meshes_without_faces_or_labels_are_drawn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for mesh in (Mesh([], []), Mesh(CUBE, []), Mesh([], [], labels=[])):
            draw_mesh(mesh, clusters=[[]]).savefig(io.BytesIO())


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"prediction of shape \[2\] .* 648 faces"):
        draw_mesh(POT, prediction=[0, 1])
    with pytest.raises(ValueError, match=r"clusters of level 1 of shape \[3\]"):
        draw_mesh(POT, clusters=[[0, 1, 2]])
    with pytest.raises(ValueError, match=r"up='w', expected one of"):
        draw_mesh(POT, up="w")


@pytest.mark.parametrize("number", [3, 12])
def test_legend_stays_inside(number: int) -> None:
    names = [f"a part with a name {i}" for i in range(number)]
    labels = np.arange(POT.num_faces) % number
    figure = draw_mesh(Mesh(POT.vertices, POT.faces), truth=labels, names=names)
    figure.savefig(io.BytesIO())
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert box.y1 <= figure.axes[0].get_window_extent().y0
