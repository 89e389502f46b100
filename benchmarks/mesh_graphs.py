"""Building the two graphs of meshes: beside loops over faces, and by size.

    python -m benchmarks.mesh_graphs [--faces 500,5000,100000] [--out FOLDER]

The loops do per face and per pair what the definition says, with dictionaries, as
the published code does; that code itself took 86 ms for 500 faces on a machine of
the same class. Both results are compared before they are timed. Figures are medians.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from benchmarks import record
from pyg_pool.mesh import Mesh, clean_mesh, primal_dual_graph

PUBLISHED_MS = 86.0
LOOP_LIMIT = 20_000


def wavy_torus(faces: int) -> Mesh:
    """A closed mesh of about so many faces, of all shapes and angles."""
    across = max(3, round(math.sqrt(faces / 4)))
    around = max(3, round(faces / (2 * across)))
    u, v = np.meshgrid(np.arange(around), np.arange(across), indexing="ij")
    a, b = 2 * math.pi * u / around, 2 * math.pi * v / across
    radius = 2 + (0.8 + 0.1 * np.sin(7 * a + 3 * b)) * np.cos(b)
    points = np.stack([radius * np.cos(a), radius * np.sin(a), np.sin(b)], axis=2)
    up, right = (u + 1) % around * across, (v + 1) % across
    quad = [u * across + v, up + v, up + right, u * across + right]
    first = np.stack([quad[0], quad[1], quad[2]], axis=2)
    second = np.stack([quad[0], quad[2], quad[3]], axis=2)
    grid = np.stack([first, second], axis=2).reshape(-1, 3)
    return Mesh(points.reshape(-1, 3), grid)


def looped_graph(mesh: Mesh) -> dict[str, list]:
    """Configuration A by loops over faces, sides and pairs."""
    points, faces = mesh.vertices, mesh.faces.tolist()
    by_edge, areas, normals = defaultdict(list), [], []
    for number, corners in enumerate(faces):
        a, b, c = (points[corner] for corner in corners)
        cross = np.cross(b - a, c - a)
        double = float(np.linalg.norm(cross))
        areas.append(double / 2)
        normals.append(cross / double)
        for side in range(3):
            ends = corners[side], corners[(side + 1) % 3]
            by_edge[min(ends), max(ends)].append((number, side))
    total = sum(areas)
    pairs = {}
    for sides in by_edge.values():
        if len(sides) == 2 and sides[0][0] != sides[1][0]:
            (i, s), (j, t) = sorted(sides)
            pairs[i, j] = s, t
    neighbours = defaultdict(set)
    x_dual = {}
    for (i, j), (s, t) in pairs.items():
        neighbours[i].add(j)
        neighbours[j].add(i)
        edge = points[faces[i][(s + 1) % 3]] - points[faces[i][s]]
        length = float(np.linalg.norm(edge))
        axis = edge / length
        inward, other = np.cross(normals[i], axis), -np.cross(normals[j], axis)
        alpha = math.atan2(-inward @ np.cross(axis, other), inward @ other)
        seen = []
        for face, side in ((i, s), (j, t)):
            before, after = (
                float(
                    np.linalg.norm(
                        points[faces[face][(side + k + 1) % 3]]
                        - points[faces[face][(side + k) % 3]]
                    )
                )
                for k in (2, 1)
            )
            height = length**2 / (2 * areas[face])
            seen.append((height, length / before, length / after))
        if seen[0][0] - seen[1][0] > 1e-9 * max(seen[0][0], seen[1][0]):
            seen.reverse()
        ratios = [value for two in zip(*seen, strict=True) for value in two]
        x_dual[i, j] = [alpha % (2 * math.pi), *ratios]
    number = {pair: k for k, pair in enumerate(sorted(pairs))}
    dual = set()
    for i, j in pairs:
        for face in (i, j):
            for m in neighbours[face] - {i, j}:
                other = number[min(face, m), max(face, m)]
                dual |= {(number[i, j], other), (other, number[i, j])}
    return {
        "x": [[area / total] for area in areas],
        "x_dual": [x_dual[pair] for pair in sorted(pairs)],
        "edge_index_dual": sorted(dual),
    }


def milliseconds(run: Callable[[], object], least: int = 3) -> float:
    """Median time of a call."""
    run()
    times: list[float] = []
    while len(times) < least or (sum(times) < 1.0 and len(times) < 200):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def check(mesh: Mesh) -> None:
    """Raise ``ValueError`` if loops and library disagree."""
    graph, loops = primal_dual_graph(mesh, dtype=torch.float64), looped_graph(mesh)
    for name in ("x", "x_dual", "edge_index_dual"):
        wanted = torch.tensor(loops[name])
        got = graph[name].t() if name == "edge_index_dual" else graph[name]
        if got.shape != wanted.shape or not torch.allclose(
            got.double(), wanted.double(), atol=1e-9
        ):
            raise ValueError(f"The loops give another {name} for {mesh}.")


def main() -> int:
    """Measure, print, and add the figures to a file where asked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--faces", default="500,5000,20000,100000,1000000")
    parser.add_argument("--out", type=Path, help="folder for mesh_graphs.jsonl")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'faces':>9} {'clean ms':>9} {'A ms':>9} {'B ms':>9} {'us/face':>8} loops")
    for size in map(int, options.faces.split(",")):
        mesh = wavy_torus(size)
        figures = {"clean_ms": milliseconds(lambda m=mesh: clean_mesh(m))}
        for config in ("A", "B"):
            figures[f"graph_{config}_ms"] = milliseconds(
                lambda m=mesh, c=config: primal_dual_graph(m, c)
            )
        ratio = ""
        if size <= LOOP_LIMIT:
            check(mesh)
            figures["loops_ms"] = milliseconds(lambda m=mesh: looped_graph(m), 1)
            figures["times_faster"] = figures["loops_ms"] / figures["graph_A_ms"]
            ratio = f"{figures['times_faster']:.0f} times slower"
        if size == 500:
            published = PUBLISHED_MS / figures["graph_A_ms"]
            ratio += f"; published code, elsewhere: {published:.0f} times slower"
        each = 1e3 * figures["graph_A_ms"] / mesh.num_faces
        shown = [figures[key] for key in ("clean_ms", "graph_A_ms", "graph_B_ms")]
        row = " ".join(f"{value:9.2f}" for value in shown)
        print(f"{mesh.num_faces:9,} {row} {each:8.2f} {ratio}", flush=True)
        if options.out is not None:
            line = {"row": "mesh_graphs", "faces": mesh.num_faces, **figures}
            record.append(
                options.out / "mesh_graphs.jsonl", {**line, **record.surroundings()}
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
