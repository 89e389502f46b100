"""A labelled mesh as a sheet of pictures: input, truth, prediction, face clusters.

Faces are drawn from the farthest to the nearest, so no graphics hardware is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyg_pool.errors import check_choice, require
from pyg_pool.view.mesh_colours import (
    Layer,
    cluster_layer,
    face_values,
    make_layers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pyg_pool.mesh import Mesh

__all__ = ["Up", "draw_mesh"]

Up = Literal["x", "y", "z"]
Floats = NDArray[np.float64]

# Inches.
_SIDE, _WIDTH, _TITLE, _HEAD, _LINE, _GAP = 3.0, 13.0, 0.45, 0.45, 0.24, 0.1
_INK = "#1f2933"
_LIGHT = np.array([0.35, 0.55, 0.76])


def draw_mesh(
    mesh: Mesh,
    *,
    truth: ArrayLike | None = None,
    prediction: ArrayLike | None = None,
    clusters: Sequence[ArrayLike] = (),
    names: Sequence[str] | None = None,
    title: str | None = None,
    up: Up = "z",
    azimuth: float = 35.0,
    elevation: float = 20.0,
) -> Figure:
    """Draw a mesh as it is, with its labels, and in the clusters of every level.

    Args:
        mesh: The mesh.
        truth: Class of each face; by default the labels of the mesh.
        prediction: Predicted class of each face.
        clusters: For each level the cluster of each face of the mesh.
        names: What the classes are called.
        title: Text above the sheet.
        up: Axis that points up.
        azimuth: Degrees by which the mesh is turned about it.
        elevation: Degrees by which it is looked down upon.

    Returns:
        A matplotlib figure; ``figure.savefig("mesh.png", dpi=150)`` writes it.

    Shapes:
        truth, prediction, clusters: [T] int each.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If labels or clusters do not fit the mesh.
    """
    check_choice("draw_mesh", "up", up, ("x", "y", "z"))
    layers = make_layers(mesh, truth, prediction, names)
    for level, cluster in enumerate(clusters, start=1):
        name = f"clusters of level {level}"
        layers.append(cluster_layer(name, face_values(cluster, len(mesh.faces), name)))
    view = _project(np.asarray(mesh.vertices), up, azimuth, elevation)
    seen = _front(view, np.asarray(mesh.faces))
    entries = _legend_entries(layers)
    figure, axes = _canvas(len(layers), title, entries)
    for ax, layer in zip(axes, layers, strict=True):
        _draw(ax, view, np.asarray(mesh.faces), seen, layer)
    if entries:
        _legend(figure, entries)
    return figure


def _canvas(
    number: int, title: str | None, entries: list[tuple[str, str]]
) -> tuple[Figure, list[Axes]]:
    """Return a figure with frameless square axes, and room for title and legend."""
    columns = min(number, int(_WIDTH / (_SIDE + _GAP)))
    rows = -(-number // columns)
    columns = -(-number // rows)
    width = max(columns, 2) * (_SIDE + _GAP) + _GAP
    indent = (width - columns * (_SIDE + _GAP) - _GAP) / 2
    lines = math.ceil(len(entries) / _legend_columns(width, entries))
    head = 0.1 if title is None else _TITLE
    height = head + rows * (_SIDE + _HEAD) + lines * _LINE + 2 * _GAP
    figure = require("matplotlib.figure", "view").Figure(
        figsize=(width, height), facecolor="white"
    )
    if title is not None:
        figure.suptitle(title, y=1 - 0.12 / height, va="top", fontsize=12, color=_INK)
    axes = []
    for i in range(number):
        row, column = divmod(i, columns)
        left = indent + _GAP + column * (_SIDE + _GAP)
        bottom = height - head - (row + 1) * (_SIDE + _HEAD)
        box = (left / width, bottom / height, _SIDE / width, _SIDE / height)
        ax = figure.add_axes(box)
        ax.set_axis_off()
        ax.set_aspect("equal")
        axes.append(ax)
    return figure, axes


def _project(vertices: Floats, up: Up, azimuth: float, elevation: float) -> Floats:
    """Return the points in the frame of the viewer: right, up, towards the viewer."""
    order = {"z": [0, 1, 2], "y": [2, 0, 1], "x": [1, 2, 0]}[up]
    a, e = math.radians(azimuth), math.radians(elevation)
    points = vertices[:, order] if len(vertices) else np.zeros((0, 3))
    turn = np.array([[math.cos(a), -math.sin(a), 0], [math.sin(a), math.cos(a), 0]])
    x, depth = turn @ points.T
    z = points[:, 2]
    # Towards the viewer is -depth before the head is lowered.
    high = z * math.cos(e) + depth * math.sin(e)
    near = z * math.sin(e) - depth * math.cos(e)
    return np.stack([x, high, near], axis=1)


def _front(view: Floats, faces: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which faces can be seen: of closed meshes those turned to the viewer."""
    sides = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    keys = sides[:, 0] * max(len(view), 1) + sides[:, 1]
    back = sides[:, 1] * max(len(view), 1) + sides[:, 0]
    if len(faces) == 0 or not np.array_equal(np.sort(keys), np.sort(back)):
        return np.ones(len(faces), dtype=bool)
    corners = view[faces]
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    volume = float((corners[:, 0] * cross).sum())
    seen: NDArray[np.bool_] = cross[:, 2] * (1 if volume > 0 else -1) > 0
    return seen


def _draw(
    ax: Axes,
    view: Floats,
    faces: NDArray[np.int64],
    seen: NDArray[np.bool_],
    layer: Layer,
) -> None:
    """Draw the faces of one layer, the farthest first."""
    polygons = require("matplotlib.collections", "view").PolyCollection
    corners = view[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    normals = normals / np.where(length > 0, length, 1.0)
    light = _LIGHT / np.linalg.norm(_LIGHT)
    # Both sides are lit alike: open meshes show their inside.
    facing = np.where(normals[:, 2:] < 0, -normals, normals) @ light
    shade = 0.45 + 0.55 * np.clip(facing, 0, 1)
    rgb = _rgb(layer.colours)[layer.values] if len(faces) else np.zeros((0, 3))
    colours = np.clip(rgb * shade[:, None], 0, 1)
    order = np.argsort(corners[:, :, 2].mean(axis=1), kind="stable")
    order = order[seen[order]]
    ax.add_collection(
        polygons(
            corners[order][:, :, :2],
            facecolors=colours[order],
            edgecolors=colours[order] * 0.92,
            linewidths=0.3,
        )
    )
    used = view[np.unique(faces)] if len(faces) else np.zeros((1, 3))
    low, high = used[:, :2].min(axis=0), used[:, :2].max(axis=0)
    centre, half = (low + high) / 2, float((high - low).max()) / 2 * 1.06 or 1.0
    ax.set_xlim(centre[0] - half, centre[0] + half)
    ax.set_ylim(centre[1] - half, centre[1] + half)
    count = len(np.unique(layer.values)) if "clusters" in layer.name else len(faces)
    what = "clusters" if "clusters" in layer.name else "faces"
    ax.set_title(f"{layer.name}\n{count:,} {what}", fontsize=9.5, color=_INK)


def _rgb(colours: Sequence[str]) -> Floats:
    """Return colours as numbers from 0 to 1."""
    to_rgb = require("matplotlib.colors", "view").to_rgb
    return np.array([to_rgb(colour) for colour in colours]).reshape(-1, 3)


def _legend_entries(layers: Sequence[Layer]) -> list[tuple[str, str]]:
    """Return colour and text of the classes that occur, and of the errors."""
    labelled = next((layer for layer in layers if layer.texts), None)
    if labelled is None:
        return []
    used = {
        value
        for layer in layers
        if layer.texts == labelled.texts
        for value in np.unique(layer.values).tolist()
    }
    entries = [(labelled.colours[i], labelled.texts[i]) for i in sorted(used)]
    return entries + [
        (layer.colours[1], layer.texts[1]) for layer in layers if layer.name == "errors"
    ]


def _legend_columns(width: float, entries: Sequence[tuple[str, str]]) -> int:
    """Return how many entries fit side by side."""
    letters = max((len(text) for _, text in entries), default=0)
    return max(1, min(len(entries), int(width / (0.75 + 0.075 * letters))))


def _legend(figure: Figure, entries: Sequence[tuple[str, str]]) -> None:
    """Explain the colours below the panels."""
    patch: Any = require("matplotlib.patches", "view").Patch
    figure.legend(
        [patch(facecolor=colour) for colour, _ in entries],
        [text for _, text in entries],
        loc="lower center",
        ncols=_legend_columns(figure.get_figwidth(), entries),
        frameon=False,
        fontsize=9,
        labelcolor=_INK,
    )
