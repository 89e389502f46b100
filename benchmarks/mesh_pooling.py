"""Primal-dual pooling beside a walk over the edges, a training step, and growth.

    python -m benchmarks.mesh_pooling [--faces 1000,10000,100000] [--out FOLDER]

The walk takes one edge after the other with dictionaries and sets, as the published
code does; both results are compared before they are timed. The step is that of the
published classifier (567,226 weights) on 16 generated meshes of about 500 faces:
processor seconds, and in a process of its own the rise of the resident peak above the
level just before the first step, with what imports and meshes held by then beside it.
The published code took 3.5 processor seconds and 2.1 GB on meshes of that size, on a
machine of the same class.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Batch

from benchmarks import record
from benchmarks.harness import PeakMeter, _map_large_blocks, in_child, peak_rise
from benchmarks.mesh_graphs import milliseconds, wavy_torus
from pyg_pool import PrimalDualPooling
from pyg_pool.mesh import FeatureScaling, generate_shapes, primal_dual_graph
from pyg_pool.models import MeshClassifier, PrimalDualConv
from tests.pool.sequential_mesh_pooling import pool_sequentially

PUBLISHED = {"step_cpu_s": 3.5, "step_gb": 2.1}
FIELDS = ("x", "x_dual", "edge_index", "edge_index_dual", "edge_to_dual")


def arguments(faces: int) -> dict[str, Any]:
    """What a pooling operator takes, for a mesh of about so many faces."""
    data = primal_dual_graph(wavy_torus(faces))
    chance = torch.Generator().manual_seed(3)
    attention = torch.rand(data.edge_index.size(1), 3, generator=chance)
    return {**{name: data[name] for name in FIELDS}, "attention": attention}


def against_the_walk(faces: int) -> dict[str, float]:
    """Milliseconds of pooling and of the walk, which must agree."""
    given = arguments(faces)
    pool = PrimalDualPooling(fraction_to_keep=0.8)
    size, duals = given["x"].size(0), given["x_dual"].size(0)

    def walk() -> Any:
        return pool_sequentially(
            given["edge_index"], given["edge_to_dual"], given["attention"], size,
            duals, [0] * size, "A", fraction_to_keep=0.8,
        )  # fmt: skip

    slow, out = walk(), pool(**given)
    if (
        out.selection.cluster.tolist() != slow.cluster
        or [tuple(e) for e in out.edge_index_dual.t().tolist()] != slow.dual_edges
    ):
        raise ValueError("the walk and the library disagree; the times mean nothing.")
    theirs, ours = [], []
    for _ in range(5):
        start = time.perf_counter()
        walk()
        middle = time.perf_counter()
        for _ in range(3):
            pool(**given)
        theirs.append(middle - start)
        ours.append((time.perf_counter() - middle) / 3)
    quotient = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    return {
        "faces": size,
        "pool_ms": 1e3 * statistics.median(ours),
        "walk_ms": 1e3 * statistics.median(theirs),
        "times_faster": quotient,
    }


def training_step(meshes: int = 16, steps: int = 5) -> dict[str, float]:
    """Processor seconds and peak memory of a step of the published classifier."""
    step, faces = make_step(meshes)
    step()
    seconds = [cpu_seconds(step) for _ in range(steps)]
    memory = in_child(step_memory, meshes)
    if "error" in memory:
        raise ValueError(f"the memory of a step was not measured: {memory['error']}")
    return {"faces": faces, "step_cpu_s": statistics.median(seconds), **memory}


def make_step(meshes: int) -> tuple[Callable[[], None], int]:
    """A training step of the published classifier, and the faces that it sees."""
    shapes = generate_shapes(meshes, generator=torch.Generator().manual_seed(5))
    graphs = [primal_dual_graph(shape.with_labels(None)) for shape in shapes]
    batch = FeatureScaling(1, 7).fit(graphs)(Batch.from_data_list(graphs))
    y, model = torch.arange(meshes), MeshClassifier(1, 7, 30)
    optimizer = torch.optim.Adam(model.parameters(), 2e-4)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(batch), y).backward()
        optimizer.step()

    return step, batch.x.size(0)


def step_memory(meshes: int) -> dict[str, float]:
    """Rise of the peak by the first steps and by later ones, in a fresh process.

    The first steps also start numba, and keep the gradients and Adam's two means.
    """
    torch.set_num_threads(1)
    _map_large_blocks()
    step, _ = make_step(meshes)
    level = PeakMeter().level
    first, later = peak_rise(step), peak_rise(step)
    return {
        "level_before_mb": level / 1e6,
        "step_peak_rise_mb": first / 1e6,
        "step_later_rise_mb": later / 1e6,
    }


def cpu_seconds(run: Callable[[], None]) -> float:
    """Processor seconds of a call."""
    start = time.process_time()
    run()
    return time.process_time() - start


@torch.no_grad()
def growth(faces: int) -> dict[str, float]:
    """Milliseconds of graphs, a convolution and pooling of one mesh."""
    mesh, given = wavy_torus(faces), arguments(faces)
    conv, pool = PrimalDualConv(1, 7, 32), PrimalDualPooling(fraction_to_keep=0.8)
    graph = {name: given[name] for name in FIELDS}
    return {
        "faces": mesh.num_faces,
        "graphs_ms": milliseconds(lambda: primal_dual_graph(mesh)),
        "conv_ms": milliseconds(lambda: conv(**graph)),
        "pool_ms": milliseconds(lambda: pool(**given)),
    }


def main() -> None:
    """Measure, print, and record where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faces", default="1000,10000,100000")
    parser.add_argument("--walk", type=int, default=5000, help="faces of the walk")
    parser.add_argument("--out", type=Path, help="folder of the records")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = {"walk": against_the_walk(args.walk), "step": training_step()}
    rows |= {f"growth_{n}": growth(int(n)) for n in args.faces.split(",")}
    for name, row in rows.items():
        print(name, ", ".join(f"{key} {value:,.3g}" for key, value in row.items()))
        if args.out is not None:
            figures = {"bench": "mesh_pooling", "row": name, "published": PUBLISHED}
            line = {**figures, **row, **record.surroundings()}
            record.append(args.out / "mesh_pooling.jsonl", line)


if __name__ == "__main__":
    main()
