"""The tree in which a graph was merged, beside the graph itself.

Works on any hierarchy of hard clusters. Bands around the nodes of the graph and
branches of the tree have the same colours, one for each cluster of the first level.
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

__all__ = ["draw_parse_tree"]

_INK, _BOND, _BAND = "#1f2933", "#5b6675", "#9aa5b1"


def draw_parse_tree(
    hierarchy: Hierarchy,
    graph: int = 0,
    *,
    positions: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw how the nodes of one graph were merged level by level.

    Args:
        hierarchy: Levels and selections, of one graph or a batch.
        graph: Number of the graph in the batch.
        positions: Places of the graph's finest nodes, such as the coordinates of a
            molecule; computed if left out.
        labels: Short texts for the finest nodes, such as atom symbols; their numbers
            if left out.
        title: Text above the figure.

    Returns:
        A matplotlib figure: the graph with a band around every cluster, wider for
        coarser levels, and the tree whose leaves are its nodes. A point of the tree
        is a cluster, its place is the middle of its members.

    Shapes:
        positions: [n, 2] float, labels: n texts, for the n nodes of this graph.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If the batch has no such graph, positions or labels do not fit,
            or a node belongs to no cluster.
    """
    panels = make_panels(hierarchy, graph, positions, labels)
    _check_whole(panels)
    parents = [panel.cluster for panel in panels[:-1]]
    order = _leaf_order(parents, len(panels[-1].points))
    count = len(panels[0].points)
    names = list(labels) if labels is not None else [str(i) for i in range(count)]
    colours = _leaf_colours(parents, order)
    figure_class = require("matplotlib.figure", "view").Figure
    width = 4.6 + float(np.clip(0.27 * count, 3.0, 14.0))
    figure = figure_class(figsize=(width, 4.4), facecolor="white")
    left = figure.add_axes((0.01, 0.04, 4.3 / width, 0.86))
    right = figure.add_axes((4.9 / width, 0.06, 1 - 5.1 / width, 0.84))
    _draw_graph(left, panels, parents, colours, names)
    _draw_tree(right, parents, len(panels[-1].points), order, colours, names)
    if title is not None:
        figure.suptitle(title, fontsize=12, color=_INK)
    return figure


def _check_whole(panels: list[Panel]) -> None:
    """Raises ``ValueError`` where a level dropped nodes."""
    for number, panel in enumerate(panels):
        gone = int((~panel.kept).sum())
        if gone > 0:
            raise ValueError(
                f"draw_parse_tree got a hierarchy whose level {number} drops {gone} "
                f"of {panel.kept.size} nodes, expected a cluster for every node; use "
                f"draw_hierarchy."
            )


def _leaf_order(parents: list[NDArray[np.int64]], roots: int) -> NDArray[np.int64]:
    """Return the finest nodes in an order in which no branches cross."""
    order = np.arange(roots)
    for parent in reversed(parents):
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        order = np.argsort(place[parent], kind="stable")
    return order


def _leaf_colours(
    parents: list[NDArray[np.int64]], order: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return a colour per finest node: that of its first cluster."""
    maps = require("matplotlib", "view").colormaps
    first = parents[0] if parents else np.arange(order.size)
    # Clusters beside each other in the tree get colours that differ.
    seen: dict[int, int] = {}
    for leaf in order.tolist():
        seen.setdefault(int(first[leaf]), len(seen))
    number = np.array([seen[int(c)] for c in first], dtype=np.int64)
    result: NDArray[np.float64] = np.asarray(maps["tab10"](number % 10))
    return result


def _draw_graph(
    ax: Axes,
    panels: list[Panel],
    parents: list[NDArray[np.int64]],
    colours: NDArray[np.float64],
    names: list[str],
) -> None:
    """Draw the finest graph with bands around its clusters."""
    lines = require("matplotlib.collections", "view").LineCollection
    points, edges = panels[0].points, panels[0].edges
    group = np.arange(len(points))
    bands = []
    for parent in parents:
        group = parent[group]
        inside = group[edges[0]] == group[edges[1]]
        bands.append(edges[:, inside])
    for level in reversed(range(len(bands))):
        ends, width = bands[level], 17 + 9 * level
        is_first = level == 0
        tone: Any = colours[ends[0]] if is_first else _BAND
        alpha = 0.55 if is_first else 0.16
        ax.add_collection(
            lines(points[ends.T], colors=tone, linewidths=width, alpha=alpha,
                  capstyle="round", zorder=1)
        )  # fmt: skip
    ax.add_collection(lines(points[edges.T], colors=_BOND, linewidths=1.4, zorder=2))
    ax.scatter(points[:, 0], points[:, 1], s=130, c=colours, edgecolors="white",
               linewidths=1.0, zorder=3)  # fmt: skip
    for (x, y), name in zip(points, names, strict=True):
        ax.text(x, y, name, fontsize=7, color="white", ha="center",
                va="center_baseline", zorder=4)  # fmt: skip
    ax.set_title("Graph", fontsize=10, color=_INK)
    ax.set_aspect("equal")
    ax.margins(0.12)
    ax.set_axis_off()


def _draw_tree(
    ax: Axes,
    parents: list[NDArray[np.int64]],
    roots: int,
    order: NDArray[np.int64],
    colours: NDArray[np.float64],
    names: list[str],
) -> None:
    """Draw leaves at the bottom and every merge above its members."""
    lines = require("matplotlib.collections", "view").LineCollection
    place = np.empty(order.size)
    place[order] = np.arange(order.size)
    leaves, tones = place.copy(), colours
    sizes = [*[parent.size for parent in parents], roots]
    for level, parent in enumerate(parents):
        size = sizes[level + 1]
        weight = np.maximum(np.bincount(parent, minlength=size), 1)
        above = np.bincount(parent, weights=place, minlength=size) / weight
        corners = np.stack(
            [
                np.stack([place, np.full(place.size, float(level))], axis=1),
                np.stack([place, np.full(place.size, level + 0.55)], axis=1),
                np.stack([above[parent], np.full(place.size, level + 0.55)], axis=1),
                np.stack([above[parent], np.full(place.size, level + 1.0)], axis=1),
            ],
            axis=1,
        )
        ax.add_collection(lines(corners, colors=tones, linewidths=1.6, zorder=1))
        # Up to the first level a branch has its own colour, above it is grey.
        if level == 0:
            first = np.zeros((size, 4))
            first[parent] = colours
            ax.scatter(above, np.full(size, 1.0), s=34, c=first, zorder=3)
        else:
            ax.scatter(above, np.full(size, level + 1.0), s=26, c=_BOND, zorder=3)
        tones, place = np.tile(_grey(), (size, 1)), above
    ax.scatter(leaves, np.zeros(leaves.size), s=120, c=colours, zorder=3,
               edgecolors="white", linewidths=1.0)  # fmt: skip
    for x, name in zip(leaves, names, strict=True):
        ax.text(x, 0.0, name, fontsize=7, color="white", ha="center",
                va="center_baseline", zorder=4)  # fmt: skip
    ax.set_title("Parse tree", fontsize=10, color=_INK)
    ax.set_ylim(-0.35, len(parents) + 0.35)
    ax.set_xlim(-0.8, max(order.size - 0.2, 1.0))
    ax.set_yticks(range(len(parents) + 1))
    ax.set_yticklabels([f"level {k}: {n}" for k, n in enumerate(sizes)], fontsize=8)
    ax.set_xticks([])
    ax.tick_params(length=0, colors=_INK)
    for side in ax.spines.values():
        side.set_visible(False)


def _grey() -> Any:
    """The colour of branches above the first level."""
    return require("matplotlib.colors", "view").to_rgba(_BOND)
