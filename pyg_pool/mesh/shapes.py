"""Generated vessels with labelled parts, for examples and tests without any data.

A vessel is a lathed body; foot, lid and knob are stretches of its profile, handles
are tubes that join two holes of its side. All are closed, manifold and wound
outwards, so that nothing has to be cleaned.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from pyg_pool.errors import check_choice
from pyg_pool.mesh.cleaning import winding_flips
from pyg_pool.mesh.geometry import Floats, Ints, Mesh

__all__ = ["PART_NAMES", "SHAPE_KINDS", "generate_shape", "generate_shapes"]

PART_NAMES = ("body", "foot", "lid", "handle")
SHAPE_KINDS = ("cup", "pot", "vase", "box")

_BODY, _FOOT, _LID, _HANDLE = range(4)


def generate_shape(kind: str, *, generator: torch.Generator | None = None) -> Mesh:
    """Makes one vessel of random proportions, with a label per face.

    Args:
        kind: ``"cup"``: foot, body, one handle. ``"pot"``: body, lid with a knob,
            two handles. ``"vase"``: foot, body. ``"box"``: a square body, lid.
        generator: Source of the proportions and the pose.

    Returns:
        A mesh of 380 to 650 faces, about one unit wide, turned about its axis;
        labels are places in :data:`PART_NAMES`.

    Raises:
        ValueError: For an unknown kind.

    Example:
        >>> import torch
        >>> from pyg_pool.mesh import generate_shape
        >>> cup = generate_shape("cup", generator=torch.Generator().manual_seed(1))
        >>> sorted(set(cup.labels.tolist()))
        [0, 1, 3]
    """
    check_choice("generate_shape", "kind", kind, SHAPE_KINDS)
    draw = _Draw(generator)
    profile, parts = _profile(kind, draw)
    around = 16
    exponent = draw(7, 10) if kind == "box" else 2.0
    points, cells = _lathe(profile, around, exponent)
    labels = np.repeat(parts, around)
    keep = np.ones(len(cells), dtype=bool)
    tubes = []
    body = np.flatnonzero(np.array(parts) == _BODY)
    columns = {"cup": [0], "pot": [0, around // 2]}.get(kind, [])
    for column in columns:
        # The tube leaves one cell of the side and enters a higher one.
        low = body[2] if kind == "cup" else body[3]
        high = body[-3] if kind == "cup" else low + 2
        ends = [int(row) * around + column for row in (low, high)]
        keep[ends] = False
        tube = _tube(points, cells[ends], draw(0.25, 0.45), 10, len(points))
        points = np.concatenate([points, tube[0]])
        tubes.append(tube[1])
    quads = np.concatenate([cells[keep], *tubes])
    labels = np.append(labels[keep], np.full(len(quads) - int(keep.sum()), _HANDLE))
    faces, labels = _split(quads, labels)
    return _outward(_pose(points, draw), faces, labels)


def generate_shapes(
    number: int, *, generator: torch.Generator | None = None
) -> list[Mesh]:
    """Makes vessels of all kinds in turn.

    Args:
        number: How many.
        generator: Source of their proportions.

    Returns:
        Mesh ``i`` is of kind ``SHAPE_KINDS[i % 4]``.
    """
    return [
        generate_shape(SHAPE_KINDS[i % len(SHAPE_KINDS)], generator=generator)
        for i in range(number)
    ]


class _Draw:
    """Uniform random numbers."""

    def __init__(self, generator: torch.Generator | None) -> None:
        self.generator = generator

    def __call__(self, low: float, high: float) -> float:
        share = torch.rand((), generator=self.generator, dtype=torch.float64)
        return low + (high - low) * float(share)

    def normal(self, size: int) -> Floats:
        """Vectors of standard normal numbers."""
        values = torch.randn(size, 3, generator=self.generator, dtype=torch.float64)
        return np.asarray(values.numpy(), dtype=np.float64)


def _profile(kind: str, draw: _Draw) -> tuple[Floats, list[int]]:
    """Radius and height of the rings from bottom to top, and the part of each band."""
    rows: list[tuple[float, float]] = []
    parts: list[int] = []

    def band(part: int, radii: list[float], heights: list[float]) -> None:
        parts.extend([part] * (len(radii) - (0 if rows else 1)))
        rows.extend(zip(radii, heights, strict=True))

    width, height = draw(0.35, 0.5), draw(0.7, 1.2)
    foot = draw(0.08, 0.16) if kind in ("cup", "vase") else 0.0
    if foot:
        stand = width * draw(0.65, 0.9)
        band(_FOOT, [0.0, stand, stand, stand * 0.7], [0.0, 0.0, foot * 0.5, foot])
    bulge = draw(0.0, 0.5) if kind in ("vase", "pot") else draw(-0.15, 0.15)
    steps = np.linspace(0, 1, 9)
    swell = width * (1 + (0.0 if kind == "box" else bulge) * np.sin(np.pi * steps))
    start = [] if foot else [0.0]
    band(
        _BODY,
        [*start, *swell.tolist()],
        [*start, *(foot + height * steps).tolist()],
    )
    top = foot + height
    if kind in ("cup", "vase"):
        # A shallow hollow: the inside of a full vessel.
        band(_BODY, [width * 0.85, width * 0.7, 0.0], [top, top - 0.1, top - 0.12])
    else:
        rim, thick = width * draw(1.1, 1.25), draw(0.08, 0.2)
        band(_LID, [rim, rim, rim * 0.6], [top, top + thick, top + thick * 1.3])
        if kind == "pot":
            knob, tall = width * draw(0.15, 0.3), top + thick * 1.3
            band(_LID, [knob, knob * 1.5, knob], [tall, tall + 0.1, tall + 0.2])
            band(_LID, [0.0], [tall + 0.22])
        else:
            band(_LID, [0.0], [top + thick * 1.3])
    return np.array(rows), parts


def _lathe(profile: Floats, around: int, exponent: float) -> tuple[Floats, Ints]:
    """Rings of a profile as points, and the four corners of each cell."""
    angle = np.arange(around) * 2 * math.pi / around
    x, y = np.cos(angle), np.sin(angle)
    # A circle for 2, close to a square for large exponents.
    size = (np.abs(x) ** exponent + np.abs(y) ** exponent) ** (-1 / exponent)
    ring = np.stack([x * size, y * size], axis=1)
    flat = profile[:, 0, None, None] * ring
    tall = np.broadcast_to(profile[:, 1, None, None], (*flat.shape[:2], 1))
    points = np.concatenate([flat, tall], axis=2).reshape(-1, 3)
    row, column = np.divmod(np.arange((len(profile) - 1) * around), around)
    right = (column + 1) % around
    low, high = row * around, (row + 1) * around
    cells = np.stack([low + column, low + right, high + right, high + column], axis=1)
    # The rings at both ends are single points.
    last = (len(profile) - 1) * around
    cells[cells < around] = 0
    cells[cells >= last] = last
    return points, cells


def _tube(
    points: Floats, ends: Ints, depth: float, rings: int, offset: int
) -> tuple[Floats, Ints]:
    """Rings of four points on an arc from one cell to a higher one, and their cells."""
    lower, upper = points[ends[0]], points[ends[1]]
    # Outer edge of the arc first: below at the lower end, above at the upper one.
    first, last = ends[0], ends[1][[3, 2, 1, 0]]
    centre = (lower.mean(axis=0) + upper.mean(axis=0)) / 2
    outward = centre * [1, 1, 0]
    outward = outward / np.linalg.norm(outward)
    across = np.array([-outward[1], outward[0], 0.0])
    reach = (upper.mean(axis=0) - lower.mean(axis=0))[2] / 2
    wide = float(np.linalg.norm(lower[1] - lower[0])) / 2 * 0.8
    thick = 0.05
    turn = np.linspace(0, math.pi, rings + 2)[1:-1]
    added = []
    for t in turn:
        ray = math.sin(t) * outward + np.array([0, 0, -math.cos(t)])
        place = centre + math.sin(t) * depth * outward
        place = place + np.array([0, 0, -math.cos(t) * reach])
        corners = [(-1, 1), (1, 1), (1, -1), (-1, -1)]
        added += [place + a * wide * across + b * thick * ray for a, b in corners]
    middle = offset + np.arange(rings * 4).reshape(rings, 4)
    chain = np.concatenate([first[None], middle, last[None]])
    cells = [
        [chain[i, k], chain[i, (k + 1) % 4], chain[i + 1, (k + 1) % 4], chain[i + 1, k]]
        for i in range(len(chain) - 1)
        for k in range(4)
    ]
    return np.array(added), np.array(cells)


def _split(quads: Ints, labels: Ints) -> tuple[Ints, Ints]:
    """Two triangles per cell, one where two of its corners are the same."""
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    labels = np.concatenate([labels, labels])
    order = np.arange(len(faces)).reshape(2, -1).T.reshape(-1)
    faces, labels = faces[order], labels[order]
    fits = (faces != faces[:, [1, 2, 0]]).all(axis=1)
    return faces[fits], labels[fits]


def _pose(points: Floats, draw: _Draw) -> Floats:
    """The points turned about the axis, stretched a little and slightly rough."""
    angle = draw(0, 2 * math.pi)
    turn = np.array(
        [
            [math.cos(angle), -math.sin(angle), 0],
            [math.sin(angle), math.cos(angle), 0],
            [0, 0, 1],
        ]
    )
    stretch = np.array([draw(0.9, 1.1), draw(0.9, 1.1), 1.0])
    posed: Floats = (points * stretch) @ turn.T + 0.003 * draw.normal(len(points))
    return posed


def _outward(points: Floats, faces: Ints, labels: Ints) -> Mesh:
    """The mesh with normals that point out of it, and without unused points."""
    used, numbers = np.unique(faces, return_inverse=True)
    points, faces = points[used], numbers.reshape(-1, 3)
    flips = winding_flips(faces, len(points))
    faces[flips] = faces[flips][:, [0, 2, 1]]
    corners = points[faces]
    volume = np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
    return Mesh(points, faces if volume > 0 else faces[:, [0, 2, 1]], labels)
