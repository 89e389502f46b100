from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from pyg_pool.train import GraphDataset, GraphFeatures, TrainConfig, build_model
from pyg_pool.train.plots import draw_curves, draw_levels, save_figure

pytest.importorskip("matplotlib")


def lines_of(scores: list[float | None]) -> list[dict[str, Any]]:
    return [
        {
            "epoch": epoch,
            "train_loss": 1.0 / (epoch + 1),
            "val_loss": 1.2 / (epoch + 1),
            "val_score": score,
        }
        for epoch, score in enumerate(scores)
    ]


def labels_of(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize(("greater", "best"), [(True, 3), (False, 1)])
def test_curves_of_one_run(greater: bool, best: int) -> None:
    runs = {"seed0": lines_of([0.25, 0.5, 0.75])}
    figure = draw_curves(runs, metric="accuracy", greater_is_better=greater, title="t")
    losses, scores = figure.axes
    assert labels_of(losses) == ["training", "validation"]
    assert scores.get_ylabel() == "accuracy"
    curve, ring = scores.get_lines()
    assert curve.get_xydata().tolist() == [[1, 0.25], [2, 0.5], [3, 0.75]]
    assert ring.get_xydata().tolist() == [[best, [0.25, 0.75][greater]]]


def test_mean_of_runs_of_different_length() -> None:
    runs = {"a": lines_of([0.25, 0.5]), "b": lines_of([0.75])}
    figure = draw_curves(runs, metric="accuracy", greater_is_better=True, title="t")
    mean = figure.axes[1].get_lines()[2]
    assert mean.get_ydata().tolist() == [0.5, 0.5]
    assert "validation, mean of 2 runs" in labels_of(figure.axes[1])


def test_undefined_scores_are_gaps() -> None:
    runs = {"a": lines_of([None, 0.5, None]), "b": lines_of([None, None])}
    figure = draw_curves(runs, metric="rocauc", greater_is_better=True, title="t")
    rings = [ln for ln in figure.axes[1].get_lines() if ln.get_marker() == "o"]
    assert [ring.get_xydata().tolist() for ring in rings] == [[[2, 0.5]]]


def test_legend_lies_inside_and_title_above(tmp_path: Path) -> None:
    runs = {"a": lines_of([0.25, 0.5, 0.75])}
    figure = draw_curves(runs, metric="accuracy", greater_is_better=True, title="Rings")
    save_figure(figure, tmp_path / "curves.png")
    title = figure._suptitle.get_window_extent()
    for ax in figure.axes:
        legend = ax.get_legend().get_window_extent()
        assert ax.bbox.x0 <= legend.x0
        assert legend.x1 <= ax.bbox.x1
        assert ax.bbox.y1 < title.y0


def test_levels_of_a_model(rings: GraphDataset, tmp_path: Path) -> None:
    model = build_model(TrainConfig(hidden=8, levels=2), GraphFeatures.of(rings))
    model.train()
    figure = draw_levels(model, rings, 2)
    assert model.training
    titles = [ax.get_title().split("\n")[0] for ax in figure.axes]
    assert titles == ["Level 0", "Level 1", "Level 2", ""]
    assert "rings, graph 2: predicted" in figure.get_suptitle()
    assert figure.get_suptitle().endswith("is 'ring'")
    save_figure(figure, tmp_path / "levels.png")
    assert [path.name for path in tmp_path.iterdir()] == ["levels.png"]


def test_molecules_have_their_atoms_and_rings() -> None:
    chem = pytest.importorskip("rdkit.Chem")
    from pyg_pool.train.plots import _molecule_drawing

    class OneMolecule:
        def molecule(self, index: int) -> Any:
            return chem.MolFromSmiles("c1ccncc1")

    positions, symbols = _molecule_drawing(OneMolecule(), 0)
    assert symbols == list("CCCNCC")
    places = torch.as_tensor(positions)
    bonds = (places - places.roll(1, 0)).norm(dim=1)
    torch.testing.assert_close(bonds, bonds[:1].expand(6), rtol=0.01, atol=0.0)
