"""One graph on its way through the levels of a hierarchy, as a figure.

Works on any hierarchy: nodes that a level keeps are filled, with their score as
colour where the pool gives one and their cluster's colour otherwise; nodes that it
drops are hollow. The finest graph stays visible in the background of every level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyg_pool.errors import require
from pyg_pool.view.panels import Panel, make_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pyg_pool.core.hierarchy import Hierarchy

__all__ = ["draw_hierarchy"]

# Inches: side of a square panel, width of a figure, bands around the panels.
_SIDE, _WIDTH = 3.1, 13.5
_TITLE, _LEVEL, _FOOT, _BAR, _GAP = 0.45, 0.52, 0.45, 1.0, 0.15
_GHOST, _BOND, _DROPPED, _INK = "#e4e7ec", "#8b95a5", "#a6afbd", "#1f2933"
_PLAIN = "#4c78a8"


def draw_hierarchy(
    hierarchy: Hierarchy,
    graph: int = 0,
    *,
    positions: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    title: str | None = None,
    score_name: str = "score",
) -> Figure:
    r"""Draw one graph of a batch at every level of a hierarchy.

    Args:
        hierarchy: Levels and selections, of one graph or a batch.
        graph: Number of the graph in the batch.
        positions: Places of the graph's finest nodes, such as the coordinates of a
            molecule; computed if left out.
        labels: Short texts for the finest nodes, such as atom symbols.
        title: Text above the figure.
        score_name: What the colour bar is called.

    Returns:
        A matplotlib figure; ``figure.savefig("levels.png", dpi=150)`` writes it.

    Shapes:
        positions: [n, 2] float, labels: n texts, for the n nodes of this graph.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If the batch has no such graph, or positions or labels do not fit.

    Note:
        Pairs of opposite edges are drawn and counted once. Coarse nodes that stand
        for several finer ones are placed at the mean of those.
    """
    panels = make_panels(hierarchy, graph, positions, labels)
    norm = _norm(panels)
    figure, axes = _canvas(
        panels, has_title=title is not None, has_bar=norm is not None
    )
    for number, ax in enumerate(axes):
        _draw_panel(ax, panels, number, norm)
    if norm is not None:
        _colour_bar(figure, norm, score_name)
    _legend(figure, panels)
    if title is not None:
        height = figure.get_figheight()
        figure.suptitle(title, y=1 - 0.12 / height, va="top", fontsize=12, color=_INK)
    return figure


def _canvas(
    panels: list[Panel], *, has_title: bool, has_bar: bool
) -> tuple[Figure, list[Axes]]:
    """Return a figure with one frameless axes per level, all of one size."""
    x_half, y_half = _window(panels[0].points)[1]
    # Long graphs get wide flat panels, of about the area of a square one.
    width = _SIDE * float(np.clip((x_half / y_half) ** 0.5, 0.85, 1.7))
    height = width * y_half / x_half
    columns = max(1, min(len(panels), int(_WIDTH / (width + _GAP))))
    rows = -(-len(panels) // columns)
    columns = -(-len(panels) // rows)
    total_width = columns * (width + _GAP) + _GAP + (_BAR if has_bar else 0.0)
    top = _TITLE if has_title else 0.1
    total_height = top + rows * (height + _LEVEL) + _FOOT
    figure_class = require("matplotlib.figure", "view").Figure
    figure = figure_class(figsize=(total_width, total_height), facecolor="white")
    axes = []
    for number in range(len(panels)):
        row, column = divmod(number, columns)
        left = _GAP + column * (width + _GAP)
        bottom = total_height - top - (row + 1) * (height + _LEVEL)
        box = (
            left / total_width,
            bottom / total_height,
            width / total_width,
            height / total_height,
        )
        ax = figure.add_axes(box)
        ax.set_axis_off()
        axes.append(ax)
    return figure, axes


def _window(
    points: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return centre and half extents of the part of the plane that is shown."""
    if len(points) == 0:
        return np.zeros(2), np.ones(2)
    low, high = points.min(axis=0), points.max(axis=0)
    half = (high - low) / 2
    half = half + 0.08 * float(half.max()) + 0.3
    # Not flatter than this, or the titles would not fit.
    half = np.maximum(half, float(half.max()) * 0.3)
    return (low + high) / 2, half


def _colour_bar(figure: Figure, norm: Any, name: str) -> None:
    """Draw the scale of the scores at the right."""
    width, height = figure.get_size_inches()
    length = min(2.6, 0.62 * height)
    left, bottom = (width - _BAR + 0.12) / width, (height - length) / 2 / height
    ax = figure.add_axes((left, bottom, 0.13 / width, length / height))
    colours = require("matplotlib.cm", "view").ScalarMappable(norm, "viridis")
    bar = figure.colorbar(colours, cax=ax)
    bar.set_label(name, color=_INK, fontsize=9)
    bar.ax.tick_params(labelsize=8, colors=_INK)
    bar.outline.set_visible(False)


def _norm(panels: list[Panel]) -> Any:
    """Return one colour scale for all levels, or None where there are no scores."""
    scores = [panel.score for panel in panels if panel.score is not None]
    values = np.concatenate(scores) if scores else np.empty(0)
    values = values[np.isfinite(values)]
    if values.size == 0:
        return None
    low, high = float(values.min()), float(values.max())
    pad = 0.02 if high - low < 1e-3 else 0.0
    normalize = require("matplotlib.colors", "view").Normalize
    return normalize(low - pad, high + pad)


def _draw_panel(ax: Axes, panels: list[Panel], number: int, norm: Any) -> None:
    """Draw one level over the faint finest graph."""
    finest, panel = panels[0], panels[number]
    if number > 0:
        _draw_edges(ax, finest, _GHOST, 1.2)
        ax.scatter(
            finest.points[:, 0],
            finest.points[:, 1],
            s=9,
            c=_GHOST,
            linewidths=0,
            zorder=1,
        )
    size = _node_size(ax, finest.points, finest.edges)
    _draw_edges(ax, panel, _BOND, 1.6)
    gone = ~panel.kept
    ax.scatter(
        panel.points[gone, 0],
        panel.points[gone, 1],
        s=size * 0.8,
        facecolors="white",
        edgecolors=_DROPPED,
        linewidths=1.3,
        linestyles="dashed" if size > 60 else "solid",
        zorder=3,
    )
    colours = _colours(panel, norm, is_last=number == len(panels) - 1)
    ax.scatter(
        panel.points[panel.kept, 0],
        panel.points[panel.kept, 1],
        s=size,
        c=colours[panel.kept],
        edgecolors="white",
        linewidths=0.8,
        zorder=4,
    )
    _draw_names(ax, panel, colours, size)
    nodes, edges = len(panel.points), panel.edges.shape[1]
    ax.set_title(
        f"Level {number}\n{_count(nodes, 'node')}, {_count(edges, 'edge')}",
        fontsize=10,
        color=_INK,
    )
    _frame(ax, finest.points)


def _draw_edges(ax: Axes, panel: Panel, colour: str, width: float) -> None:
    """Draw the edges of a level."""
    lines = require("matplotlib.collections", "view").LineCollection
    ends = panel.points[panel.edges.T]
    ax.add_collection(lines(ends, colors=colour, linewidths=width, zorder=2))


def _colours(panel: Panel, norm: Any, *, is_last: bool) -> NDArray[np.float64]:
    """Return one colour per node: by score, else by cluster, else plain."""
    to_rgba = require("matplotlib.colors", "view").to_rgba
    maps = require("matplotlib", "view").colormaps
    if panel.score is not None and norm is not None:
        colours = maps["viridis"](norm(np.nan_to_num(panel.score)))
    elif is_last and norm is not None:
        colours = np.tile(to_rgba(_PLAIN), (panel.kept.size, 1))
    else:
        # A last node has the colour of the cluster that became it.
        cluster = np.arange(panel.kept.size) if is_last else panel.cluster
        colours = maps["tab10"](cluster % 10)
    result: NDArray[np.float64] = np.asarray(colours, dtype=np.float64)
    return result


def _draw_names(
    ax: Axes, panel: Panel, colours: NDArray[np.float64], size: float
) -> None:
    """Write the texts, in black or white by the brightness below them."""
    font = min(9.0, 0.52 * np.sqrt(size))
    if font < 4:
        return
    brightness = colours[:, :3] @ np.array([0.299, 0.587, 0.114])
    for i, name in enumerate(panel.names):
        dark = panel.kept[i] and brightness[i] < 0.6
        colour = "white" if dark else (_INK if panel.kept[i] else _DROPPED)
        ax.text(
            panel.points[i, 0],
            panel.points[i, 1],
            name,
            fontsize=font,
            color=colour,
            ha="center",
            va="center_baseline",
            zorder=5,
        )


def _node_size(ax: Axes, points: NDArray[np.float64], ends: NDArray[np.int64]) -> float:
    """Return a marker area at which neighbours do not touch."""
    inch = ax.get_window_extent().width / ax.figure.dpi / (2 * _window(points)[1][0])
    if ends.size:
        spacing = float(
            np.median(np.linalg.norm(points[ends[0]] - points[ends[1]], axis=1))
        )
    else:
        spacing = 1.0
    return float(np.clip(0.62 * spacing * inch * 72, 3.0, 17.0) ** 2)


def _frame(ax: Axes, points: NDArray[np.float64]) -> None:
    """Give every level the same window."""
    centre, half = _window(points)
    ax.set_xlim(centre[0] - half[0], centre[0] + half[0])
    ax.set_ylim(centre[1] - half[1], centre[1] + half[1])


def _legend(figure: Figure, panels: list[Panel]) -> None:
    """Explain filled and hollow nodes below the levels."""
    line = require("matplotlib.lines", "view").Line2D
    common = {"marker": "o", "linestyle": "none", "markersize": 9}
    scored = any(panel.score is not None for panel in panels)
    kept = (
        "kept by the next level (colour: score)"
        if scored
        else "kept (colour: cluster in the next level)"
    )
    fill = "#21918c" if scored else _PLAIN
    handles = [line([], [], markerfacecolor=fill, markeredgecolor="white", **common)]
    names = [kept]
    if any((~panel.kept).any() for panel in panels):
        hollow = {"markerfacecolor": "white", "markeredgecolor": _DROPPED}
        handles.append(line([], [], **hollow, **common))
        names.append("dropped by the next level")
    if scored:
        blue = {"markerfacecolor": _PLAIN, "markeredgecolor": "white"}
        handles.append(line([], [], **blue, **common))
        names.append("last level")
    figure.legend(
        handles,
        names,
        loc="lower center",
        bbox_to_anchor=(0.5, 0.04 / figure.get_figheight()),
        ncols=len(handles),
        frameon=False,
        fontsize=9,
        labelcolor=_INK,
    )


def _count(number: int, noun: str) -> str:
    """Return ``"1 node"`` or ``"3 nodes"``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
