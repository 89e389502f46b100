"""Colours for the faces of meshes, and what each layer of a picture shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from pyg_pool.mesh import Mesh

__all__ = [
    "Layer",
    "cluster_layer",
    "face_values",
    "label_colours",
    "make_layers",
    "smoothed_by_cluster",
]

PLAIN, WRONG = "#b8c0cc", "#20242c"
# Distinct, of even weight; repeated beyond their number.
PALETTE = (
    "#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#eeca3b",
    "#b279a2", "#ff9da6", "#9d755d", "#79706e", "#2f9e8f", "#8a63d2",
)  # fmt: skip

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Layer:
    """One way to colour the faces of a mesh.

    Args:
        name: What the layer shows.
        values: The place of each face's colour in ``colours``.
        colours: Hexadecimal colours.
        texts: What each colour stands for; empty where that says nothing.
    """

    name: str
    values: Ints
    colours: tuple[str, ...]
    texts: tuple[str, ...] = ()


def make_layers(
    mesh: Mesh,
    truth: ArrayLike | None,
    prediction: ArrayLike | None,
    names: Sequence[str] | None,
) -> list[Layer]:
    """The layers of labels: plain, truth, prediction, errors, as far as known.

    Args:
        mesh: The mesh; its own labels are the truth where none is given.
        truth: Class of each face.
        prediction: Predicted class of each face.
        names: What the classes are called.

    Raises:
        ValueError: If there is not one label per face.
    """
    size = len(mesh.faces)
    layers = [Layer("input", np.zeros(size, dtype=np.int64), (PLAIN,))]
    truth = mesh.labels if truth is None else truth
    given = {}
    for name, values in (("truth", truth), ("prediction", prediction)):
        if values is not None:
            given[name] = face_values(values, size, name)
    top = max((int(v.max(initial=-1)) for v in given.values()), default=-1)
    colours, texts = label_colours(top + 1, names)
    for name, labels in given.items():
        layers.append(Layer(name, labels, colours, texts))
    if len(given) == 2:
        wrong = (given["truth"] != given["prediction"]).astype(np.int64)
        share = f"wrong ({wrong.mean() if size else 0:.1%} of the faces)"
        layers.append(Layer("errors", wrong, (PLAIN, WRONG), ("right", share)))
    return layers


def label_colours(
    number: int, names: Sequence[str] | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A colour and a text for each class."""
    colours = tuple(PALETTE[i % len(PALETTE)] for i in range(number))
    known = [] if names is None else list(names)
    texts = tuple(known[i] if i < len(known) else f"part {i}" for i in range(number))
    return colours, texts


def cluster_layer(name: str, cluster: Ints) -> Layer:
    """Clusters in colours that differ widely from one number to the next."""
    number = int(cluster.max(initial=-1)) + 1
    # Steps of the golden ratio spread any number of hues evenly.
    hue = (np.arange(number) * 0.618033988749895) % 1.0
    light = 0.55 + 0.2 * ((np.arange(number) * 0.381966) % 1.0)
    shift = np.array([0.0, 1 / 3, 2 / 3])
    wave = np.cos(2 * np.pi * (hue[:, None] - shift))
    rgb = np.clip(light[:, None] + 0.28 * wave, 0, 1)
    colours = [to_hex(row) for row in (255 * rgb).round().astype(int).tolist()]
    return Layer(name, cluster, tuple(colours))


def smoothed_by_cluster(values: Ints, cluster: Ints) -> Ints:
    """Every face gets the commonest value of its cluster, the lowest of several."""
    if len(values) == 0:
        return values
    width = int(values.max()) + 1
    keys, counts = np.unique(cluster * width + values, return_counts=True)
    order = np.lexsort((keys, -counts, keys // width))
    owner, label = np.divmod(keys[order], width)
    first = np.concatenate([[True], owner[1:] != owner[:-1]])
    best = np.zeros(int(cluster.max()) + 1, dtype=np.int64)
    best[owner[first]] = label[first]
    result: Ints = best[cluster]
    return result


def face_values(values: ArrayLike, size: int, name: str) -> Ints:
    """One number per face, 0 or more."""
    array = np.asarray(values)
    if (
        array.shape != (size,)
        or (array.size and array.dtype.kind not in "iub")
        or (array.size and array.min() < 0)
    ):
        raise ValueError(
            f"The picture got {name} of shape {list(array.shape)} and dtype "
            f"{array.dtype} for {size} faces, expected [{size}] whole numbers from 0; "
            f"pass one per face of this mesh."
        )
    return array.astype(np.int64)


def to_hex(rgb: Sequence[int]) -> str:
    """``#rrggbb`` of three bytes."""
    return "#" + "".join(f"{value:02x}" for value in rgb)
