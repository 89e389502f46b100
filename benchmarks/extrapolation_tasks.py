"""Tasks whose test graphs are larger, or whose test numbers are greater.

Maximum degree, shortest path and n-body follow the generators of Xu et al., "How Neural
Networks Extrapolate", 2021; set statistics are ours. Every sample is drawn from the
seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, dijkstra
from torch import Tensor

Array = NDArray[Any]

FAMILIES = (
    "path", "cycle", "ladder", "4regular", "complete", "tree", "expander", "general",
)  # fmt: skip
PARTS = ("train", "validation", "test", "test_inside", "test_mass")
STATISTICS = ("mean", "std", "max", "count")


class Sample(NamedTuple):
    """One graph, set or frame: rows, directed edges, numbers of these, target."""

    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor
    y: Tensor


class Batch(NamedTuple):
    """Several samples in one."""

    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor
    y: Tensor
    index: Tensor
    size: int


def collate(samples: Sequence[Sample]) -> Batch:
    """Joins samples."""
    sizes = [sample.x.size(0) for sample in samples]
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    edges = [s.edge_index + start for s, start in zip(samples, starts, strict=True)]
    index = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return Batch(
        torch.cat([sample.x for sample in samples]),
        torch.cat(edges, 1),
        torch.cat([sample.edge_attr for sample in samples]),
        torch.cat([sample.y for sample in samples]),
        index,
        len(sizes),
    )


@dataclass(frozen=True)
class Task:
    """What is drawn, how much of it, and how the network is trained.

    Args:
        draw: Function ``(generator, part, family) -> sample or None``.
        sizes: Samples for training, validation and test.
        rounds: Rounds of message passing; 0 for sets.
        hidden: Width.
        node_layers: Whether an MLP stands in front of the readout.
        per_node: Whether every node has a target, so that there is no readout.
        epochs: Epochs.
        batch: Samples per step.
        lr: Learning rate, halved every ``half_after`` epochs.
        half_after: See there.
        tests: Tests: ``"test"`` goes beyond the range of training in everything,
            ``"test_inside"`` in the size of the graphs only, ``"test_mass"`` in the
            masses only.
        small: What the small setting changes.
    """

    draw: Callable[[Generator, str, str], Sample | None]
    sizes: tuple[int, int, int]
    rounds: int
    hidden: int
    node_layers: bool = False
    per_node: bool = False
    epochs: int = 300
    batch: int = 64
    lr: float = 0.01
    half_after: int = 50
    tests: tuple[str, ...] = ("test",)
    small: dict[str, Any] = field(default_factory=dict)


def samples_of(
    task: Task, part: str, count: int, family: str, seed: int
) -> list[Sample]:
    """Draws the samples of a part: ``"train"``, ``"validation"`` or a test."""
    key = [seed, PARTS.index(part), FAMILIES.index(family)]
    chance = np.random.default_rng(key)
    found: list[Sample] = []
    while len(found) < count:
        sample = task.draw(chance, part, family)
        if sample is not None:
            found.append(sample)
    return found


def is_test(part: str) -> bool:
    """Whether a part has graphs of the test size."""
    return part.startswith("test")


# Graphs


def adjacency(chance: Generator, size: int, family: str, expander: float) -> Array:
    """A connected graph of a family, as a symmetric matrix of booleans."""
    if family in ("expander", "general"):
        tenths = int(chance.integers(1, 10))
        return _connected(
            chance, size, expander if family == "expander" else tenths / 10
        )
    if family == "4regular":
        return _regular(chance, size, 4)
    places = np.arange(size)
    matrix = np.zeros((size, size), bool)
    if family == "complete":
        matrix[:] = True
    elif family == "tree":
        order = chance.permutation(size)
        for i in range(1, size):
            matrix[order[i], order[chance.integers(i)]] = True
    elif family == "ladder":
        half = size // 2
        rungs = places[:half]
        matrix = matrix[: 2 * half, : 2 * half]
        matrix[rungs, rungs + half] = True
        for start in (0, half):
            matrix[start + rungs[:-1], start + rungs[1:]] = True
    else:
        matrix[places[:-1], places[1:]] = True
        matrix[-1, 0] = family == "cycle"
    matrix |= matrix.T
    np.fill_diagonal(matrix, False)
    return matrix


def _connected(chance: Generator, size: int, share: float) -> Array:
    """G(n, p), drawn again until it is connected."""
    while True:
        matrix = np.triu(chance.random((size, size)) < share, 1)
        matrix |= matrix.T
        if connected_components(csr_matrix(matrix), directed=False)[0] == 1:
            return matrix


def _regular(chance: Generator, size: int, degree: int) -> Array:
    """A connected regular graph, its edges drawn pair by pair."""
    while True:
        matrix = np.zeros((size, size), bool)
        left = np.repeat(np.arange(size), degree)
        while left.size:
            left = chance.permutation(left)
            pairs = left.reshape(-1, 2)
            rest = []
            for a, b in pairs:
                if a == b or matrix[a, b]:
                    rest += [a, b]
                else:
                    matrix[a, b] = matrix[b, a] = True
            if len(rest) == left.size:
                break  # none of the pairs fits: start again
            left = np.array(rest, dtype=int)
        if not left.size and connected_components(csr_matrix(matrix))[0] == 1:
            return matrix


def _edges(matrix: Array) -> Tensor:
    return torch.from_numpy(np.stack(np.nonzero(matrix)))


def draw_max_degree(chance: Generator, part: str, family: str) -> Sample:
    """A graph and its largest degree."""
    low, high = (50, 100) if is_test(part) else (20, 30)
    kind = "general" if is_test(part) else family
    matrix = adjacency(chance, int(chance.integers(low, high)), kind, expander=0.8)
    reach = 10.0 if part == "test" else 5.0
    x = torch.from_numpy(chance.uniform(-reach, reach, (len(matrix), 3))).float()
    y = torch.tensor([[float(matrix.sum(0).max())]])
    edges = _edges(matrix)
    return Sample(x, edges, torch.empty(edges.size(1), 0), y)


def draw_shortest_path(chance: Generator, part: str, family: str) -> Sample | None:
    """A weighted graph, two flagged nodes, and the distance between them."""
    low, high = (50, 70) if is_test(part) else (20, 40)
    kind = "general" if is_test(part) else family
    matrix = adjacency(chance, int(chance.integers(low, high)), kind, expander=0.6)
    size = len(matrix)
    weight = np.triu(chance.uniform(1.0, 10.0 if part == "test" else 5.0, matrix.shape))
    weight = np.where(matrix, weight + np.triu(weight, 1).T, 0.0)
    source = int(chance.integers(size))
    hops = dijkstra(csr_matrix(matrix), indices=source, unweighted=True)
    near = np.nonzero((hops > 0) & (hops <= 3))[0]
    target = int(chance.choice(near))
    length, before = dijkstra(
        csr_matrix(weight), indices=source, return_predecessors=True
    )
    # Real weights: two shortest paths of the same length do not occur.
    steps, node = 0, target
    while node != source:
        node, steps = int(before[node]), steps + 1
    if steps > 3:
        return None
    x = np.zeros((size, 3))
    x[:, 0] = chance.uniform(-5.0, 5.0, size)
    x[source, 1] = x[target, 2] = 1.0
    edges = _edges(matrix)
    attr = torch.from_numpy(weight[matrix]).float().unsqueeze(1)
    y = torch.tensor([[float(length[target])]])
    return Sample(torch.from_numpy(x).float(), edges, attr, y)


# Sets


def draw_set(statistic: str, chance: Generator, part: str, family: str) -> Sample:
    """Samples of a normal distribution and a statistic of them."""
    wide = 2.0 if is_test(part) else 1.0
    low, high = (200, 401) if is_test(part) else (20, 41)
    mean = chance.uniform(0.0, 5.0 * wide)
    spread = chance.uniform(0.5, 0.5 + 1.5 * wide)
    values = chance.normal(mean, spread, int(chance.integers(low, high)))
    wanted = {
        "mean": values.mean(),
        "std": values.std(),
        "max": values.max(),
        "count": float(values.size),
    }[statistic]
    x = torch.from_numpy(values).float().unsqueeze(1)
    none = torch.empty(2, 0, dtype=torch.long)
    return Sample(x, none, torch.empty(0, 0), torch.tensor([[float(wanted)]]))


# Bodies

GRAVITY, STEP, STEPS, SUN = 1e5, 1e-3, 500, 100.0
PAIRS = torch.tensor([[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]])


def simulate(
    chance: Generator, near: float, far: float, factor: float
) -> Iterator[tuple[Array, ...]]:
    """Frames of one scene: masses, places, velocities, next velocities."""
    mass = factor * np.array([SUN, *chance.uniform(0.02, 9.0, 2)])
    radius, angle = chance.uniform(near, far, 2), chance.uniform(0, 2 * np.pi, 2)
    place, speed = np.zeros((3, 2)), np.zeros((3, 2))
    round_ = np.stack([np.cos(angle), np.sin(angle)], 1)
    place[1:] = radius[:, None] * round_
    orbit = np.sqrt(GRAVITY * mass[0] / radius)
    speed[1:] = orbit[:, None] * np.stack([-round_[:, 1], round_[:, 0]], 1)
    for _ in range(STEPS):
        shift = place[None] - place[:, None]  # from the row to the column
        distance = np.maximum(np.linalg.norm(shift, axis=-1), 1.0)
        pull = GRAVITY * mass[None, :, None] * shift / distance[..., None] ** 3
        after = speed + STEP * pull.sum(1)
        yield mass, place.copy(), speed.copy(), after
        speed, place = after, place + STEP * after


class Frames:
    """Frames of scene after scene that fit a part."""

    def __init__(self, engineered: bool) -> None:
        self.engineered = engineered
        self.chance: Generator | None = None
        self.waiting: list[Sample] = []

    def __call__(self, chance: Generator, part: str, family: str) -> Sample | None:
        """The next frame; ``None`` where a scene has none that fits."""
        if chance is not self.chance:
            self.chance, self.waiting = chance, []
        if not self.waiting:
            self.waiting = self._scene(chance, part)
        return self.waiting.pop() if self.waiting else None

    def _scene(self, chance: Generator, part: str) -> list[Sample]:
        """Up to 100 frames of one scene, in random order."""
        is_close, factor = part == "test", 2.0 if part == "test_mass" else 1.0
        kept = []
        for frame in simulate(chance, 10.0, 20.0 if is_close else 100.0, factor):
            gap = np.linalg.norm(frame[1][:, None] - frame[1], axis=-1)
            gap = gap[np.triu_indices(3, 1)]
            if (gap.max() < 20) if is_close else (gap.min() > 30):
                kept.append(self._frame(*frame))
        order = chance.permutation(len(kept))[:100]
        return [kept[i] for i in order]

    def _frame(self, mass: Array, place: Array, speed: Array, after: Array) -> Sample:
        x = torch.from_numpy(np.concatenate([mass[:, None], place, speed], 1)).float()
        attr = torch.empty(6, 0)
        if self.engineered:
            source, target = PAIRS
            shift = x[source, 1:3] - x[target, 1:3]
            cube = shift.norm(dim=1, keepdim=True).clamp(min=1.0) ** 3
            attr = GRAVITY * STEP * x[source, :1] * shift / cube
        return Sample(x, PAIRS, attr, torch.from_numpy(after).float())


SMALL = {
    "sizes": (450, 90, 180), "hidden": 32, "epochs": 100, "batch": 32, "half_after": 20
}  # fmt: skip


def _set_task(statistic: str) -> Task:
    def draw(chance: Generator, part: str, family: str) -> Sample:
        return draw_set(statistic, chance, part, family)

    return Task(
        draw, (5000, 1000, 2500), 0, 256, node_layers=True,
        small=SMALL,
    )  # fmt: skip


TASKS: dict[str, Task] = {
    "max_degree": Task(
        draw_max_degree, (5000, 1000, 2500), 2, 256, node_layers=True,
        tests=("test", "test_inside"),
        small=SMALL,
    ),
    "shortest_path": Task(
        draw_shortest_path, (10_000, 1000, 2500), 3, 256, batch=32, lr=0.005,
        tests=("test", "test_inside"),
        small=SMALL,
    ),
    "n_body": Task(
        Frames(engineered=False), (10_000, 2500, 5000), 1, 128, per_node=True,
        batch=32, lr=0.005, epochs=2000, tests=("test", "test_mass"),
        small=SMALL,
    ),
    "n_body_force": Task(
        Frames(engineered=True), (10_000, 2500, 5000), 1, 128, per_node=True,
        batch=32, lr=0.005, epochs=2000, tests=("test", "test_mass"),
        small=SMALL,
    ),
    **{f"set_{name}": _set_task(name) for name in STATISTICS},
}  # fmt: skip
