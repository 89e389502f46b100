"""Pictures of a training run: its learning curves, and one graph at every level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pyg_pool.errors import require
from pyg_pool.train.architectures import GraphModel
from pyg_pool.train.data import GraphDataset
from pyg_pool.view import draw_hierarchy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_curves", "draw_levels", "save_figure"]

_INK, _GRID = "#1f2933", "#e4e7ec"
_TRAIN, _VAL = "#4c78a8", "#d1703c"


def draw_curves(
    runs: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    metric: str,
    greater_is_better: bool,
    title: str,
) -> Figure:
    """Draw losses and validation scores by epoch.

    Args:
        runs: The lines of ``metrics.jsonl`` of each run, by its name.
        metric: What the score is called.
        greater_is_better: Whether the best epoch is the one with the largest score.
        title: Text above the figure.

    Returns:
        A matplotlib figure: thin lines for the runs, thick ones for their mean, a
        ring at the best epoch of each run.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    figure = require("matplotlib.figure", "train").Figure(
        figsize=(9.5, 3.7), facecolor="white", layout="constrained"
    )
    losses, scores = figure.subplots(1, 2)
    _draw_lines(losses, runs, "train_loss", _TRAIN, "training")
    _draw_lines(losses, runs, "val_loss", _VAL, "validation")
    _draw_lines(scores, runs, "val_score", _VAL, "validation")
    pick = np.nanargmax if greater_is_better else np.nanargmin
    for number, lines in enumerate(runs.values()):
        values = _column(lines, "val_score")
        if np.isfinite(values).any():
            best = int(pick(values))
            scores.plot(
                lines[best]["epoch"] + 1,
                values[best],
                "o",
                markersize=7,
                markerfacecolor="white",
                markeredgecolor=_INK,
                zorder=4,
                label="best epoch" if number == 0 else None,
            )
    _finish(losses, "loss")
    _finish(scores, metric)
    figure.suptitle(title, fontsize=11, color=_INK)
    return figure


def draw_levels(model: GraphModel, dataset: GraphDataset, index: int) -> Figure:
    """Draw one graph of a data set at every level of a trained model.

    A molecule is drawn with RDKit's coordinates and its atom symbols.

    Args:
        model: A model with pooling.
        dataset: The data set.
        index: Number of the graph in it.
    """
    was_training = model.training
    model.eval()
    device = next(model.parameters()).device
    batch = dataset.graphs.batch([index]).to(device)
    with torch.no_grad():
        output = model(batch)[0]
    hierarchy = model.hierarchy(batch).to("cpu")
    model.train(was_training)
    positions, symbols = _molecule_drawing(dataset, index)
    return draw_hierarchy(
        hierarchy,
        positions=positions,
        labels=symbols,
        title=f"{dataset.name}, graph {index}{_answer(dataset, index, output)}",
        score_name="gate of the kept nodes",
    )


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as PNG, under a temporary name first."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.tmp")
    figure.savefig(temporary, dpi=150, format="png")
    temporary.replace(path)


def _draw_lines(
    ax: Axes,
    runs: Mapping[str, Sequence[Mapping[str, Any]]],
    key: str,
    colour: str,
    label: str,
) -> None:
    """Draw one quantity of all runs and their mean."""
    columns = [_column(lines, key) for lines in runs.values()]
    for values in columns:
        alone = len(columns) == 1
        ax.plot(
            np.arange(1, values.size + 1),
            values,
            color=colour,
            label=label if alone else None,
            linewidth=1.5 if alone else 0.8,
            alpha=1.0 if alone else 0.35,
        )
    if len(columns) > 1:
        # Runs that stopped early leave the mean to those that went on.
        table = np.full((len(columns), max(map(len, columns))), np.nan)
        for row, values in zip(table, columns, strict=True):
            row[: values.size] = values
        there = np.isfinite(table)
        total = np.where(there, table, 0.0).sum(axis=0)
        mean = np.where(there.any(0), total / np.maximum(there.sum(0), 1), np.nan)
        name = f"{label}, mean of {len(columns)} runs"
        ax.plot(np.arange(1, mean.size + 1), mean, color=colour, lw=2, label=name)


def _column(lines: Sequence[Mapping[str, Any]], key: str) -> Any:
    """Return one quantity of all epochs, NaN where it was undefined."""
    values = [np.nan if line[key] is None else line[key] for line in lines]
    return np.asarray(values, dtype=np.float64)


def _finish(ax: Axes, name: str) -> None:
    """Label the axes and clear away what does not inform."""
    ticker = require("matplotlib.ticker", "train")
    ax.set_xlabel("epoch", color=_INK)
    ax.set_ylabel(name, color=_INK)
    ax.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    ax.grid(color=_GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(colors=_INK, labelsize=9)
    ax.legend(frameon=False, fontsize=9, labelcolor=_INK)


def _molecule_drawing(
    dataset: GraphDataset, index: int
) -> tuple[Any, list[str] | None]:
    """Return flat coordinates and atom symbols, where the graph is a molecule."""
    try:
        mol = dataset.molecule(index)
    except ImportError:
        # The graphs of OGB can be there without rdkit; then we lay them out.
        return None, None
    if mol is None:
        return None, None
    compute = require("rdkit.Chem.rdDepictor", "mol").Compute2DCoords
    compute(mol)
    positions = np.asarray(mol.GetConformer().GetPositions())[:, :2]
    return positions, [atom.GetSymbol() for atom in mol.GetAtoms()]


def _answer(dataset: GraphDataset, index: int, output: torch.Tensor) -> str:
    """Return what the model says and what is right, for a title."""
    target = dataset.graphs.y[index]
    if dataset.task == "multiclass":
        names = dataset.class_names or tuple(map(str, range(dataset.num_outputs)))
        said = names[int(output[0].argmax())]
        return f": predicted {said!r}, is {names[int(target)]!r}"
    if dataset.num_outputs > 1:
        return ""
    value = output[0, 0].sigmoid() if dataset.task == "binary" else output[0, 0]
    return f": predicted {float(value):.2f}, is {float(target):g}"
