"""Time and memory of graph parsing as a graph grows: JSON lines and a plot.

One round on random graphs of n nodes and k n edges (both directions listed): the
operator with DeepSets, forward alone and with backward, 64 features, one thread; the
parse alone from given scores. Memory is the rise of the resident peak over the level
before the step, in a fresh process for each size. Near-linear growth shows as lines of
slope 1. ``--sequential 10000`` instead times the parse beside the procedure of the
authors, cluster after cluster with a test of membership for every link left.

    python -m benchmarks.gpn_growth --out RUNS --png docs/growth.png
    python -m benchmarks.gpn_growth --out RUNS --sequential 10000
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks import record
from pyg_pool import GraphParsingPooling
from pyg_pool.kernels import coalesce, warm_up
from pyg_pool.pool.graph_parsing import parse

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
DEGREES = (2, 10)
WIDTH = 64
RESULTS = "gpn_growth.jsonl"


def random_graph(nodes: int, degree: int) -> torch.Tensor:
    """Return about ``degree * nodes`` random edges in both directions."""
    chance = torch.Generator().manual_seed(0)
    ends = torch.randint(nodes, (2, degree * nodes), generator=chance)
    ends = ends[:, ends[0] != ends[1]]
    return coalesce(torch.cat([ends, ends.flip(0)], 1), num_nodes=nodes)[0]


def peak() -> int:
    """Return the resident peak of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def seconds(call: Any, repeats: int) -> float:
    """Return the median time of a call after one to warm up."""
    call()
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return median(found)


def measure(nodes: int, degree: int) -> dict[str, Any]:
    """Return times and memory for one size; to be called in a fresh process."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warm_up()
    edges = random_graph(nodes, degree)
    x = torch.randn(nodes, WIDTH, requires_grad=True)
    pool = GraphParsingPooling(WIDTH)
    small = random_graph(1000, degree)
    pool(torch.randn(1000, WIDTH).requires_grad_(), small).x.sum().backward()

    def step() -> None:
        pool(x, edges).x.sum().backward()
        x.grad = None

    with torch.no_grad():
        score = pool.edge_net(x.detach(), edges)
    before = peak()
    step()
    rise = peak() - before
    repeats = 3 if nodes >= 100_000 else 9
    with torch.no_grad():
        forward = seconds(lambda: pool(x, edges), repeats)
    return {
        "nodes": nodes, "edges": edges.size(1) // 2, "degree": degree,
        "peak_bytes": rise, "forward_seconds": forward,
        "step_seconds": seconds(step, repeats),
        "parse_seconds": seconds(lambda: parse(edges, score, nodes), repeats),
    }  # fmt: skip


def one_by_one(edges: torch.Tensor, score: torch.Tensor) -> list[int]:
    """Cluster as the authors do: best link first, then all that point into it."""
    best: dict[int, tuple[float, int]] = {}
    for u, v, s in zip(*edges.tolist(), score.tolist(), strict=True):
        best[u] = min(best.get(u, (float("inf"), -1)), (-s, v))
    left = sorted((value, u, v) for u, (value, v) in best.items())
    group = list(range(int(edges.max()) + 1))
    while left:
        inside = set(left[0][1:])
        size = 0
        while len(inside) > size:
            size = len(inside)
            inside.update([u for _, u, v in left if v in inside])
            left = [link for link in left if link[1] not in inside]
        for node in inside:
            group[node] = -min(inside) - 1
    return group


def beside_sequential(nodes: int) -> dict[str, Any]:
    """Return the time of the parse and of the sequential procedure, E = 2 n."""
    torch.set_num_threads(1)
    edges = random_graph(nodes, 2)
    key = edges.min(0).values * nodes + edges.max(0).values
    order = torch.randperm(nodes * 4, generator=torch.Generator().manual_seed(0))
    score = order[torch.unique(key, return_inverse=True)[1]].double()
    start = time.perf_counter()
    slow = one_by_one(edges, score)
    wall = time.perf_counter() - start
    fast = parse(edges, score, int(edges.max()) + 1).tolist()
    number: dict[int, int] = {}
    same = [number.setdefault(group, len(number)) for group in slow] == fast
    return {
        "nodes": nodes, "edges": edges.size(1) // 2, "sequential_seconds": wall,
        "parse_seconds": seconds(lambda: parse(edges, score, nodes), 9),
        "same_clusters": same,
    }  # fmt: skip


def draw(lines: list[dict[str, Any]], path: Path) -> None:
    """Write the plot of time and memory against nodes plus edges."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    axes = figure.subplots(1, 2)
    kinds = {"step": "forward and backward", "forward": "forward", "parse": "parse"}
    colours = {"step": "#4c78a8", "forward": "#f58518", "parse": "#54a24b"}
    for degree, style in zip(DEGREES, ("o-", "s--"), strict=True):
        rows = sorted(
            (r for r in lines if r["degree"] == degree), key=lambda r: r["nodes"]
        )
        size = [r["nodes"] + r["edges"] for r in rows]
        for kind, name in kinds.items():
            values = [r[f"{kind}_seconds"] for r in rows]
            label = f"{name}, E = {degree}n"
            axes[0].loglog(size, values, style, color=colours[kind], label=label, ms=4)
        memory = [max(r["peak_bytes"], 1) / 2**20 for r in rows]
        axes[1].loglog(
            size, memory, style, color="#4c78a8", label=f"E = {degree}n", ms=4
        )
    for ax, name in zip(axes, ("seconds", "MiB above the start"), strict=True):
        low, high = ax.get_xlim()
        _, top = ax.get_ylim()
        ax.loglog([low, high], [top * low / high, top], ":", color="#9aa5b1",
                  label="slope 1", zorder=0)  # fmt: skip
        ax.set_xlabel("nodes + edges")
        ax.set_ylabel(name)
        ax.grid(True, alpha=0.25)
        ax.legend(fontsize=7, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def main(words: list[str] | None = None) -> int:
    """Measure every size in a process of its own, then draw."""
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--png", type=Path)
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--sequential", type=int, metavar="NODES")
    parser.add_argument("--one", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.one:
        print(json.dumps(measure(*options.one)))
        return 0
    if options.sequential:
        line = beside_sequential(options.sequential)
        print(json.dumps(line))
        record.append(options.out / RESULTS, {**line, **record.surroundings()})
        return 0
    lines = []
    for degree in DEGREES:
        for nodes in (size for size in SIZES if size <= options.largest):
            call = [sys.executable, "-m", "benchmarks.gpn_growth"]
            call += ["--one", str(nodes), str(degree)]
            done = subprocess.run(call, capture_output=True, text=True, check=True)
            line = json.loads(done.stdout.splitlines()[-1])
            print(done.stdout.strip(), flush=True)
            record.append(options.out / RESULTS, {**line, **record.surroundings()})
            lines.append(line)
    if options.png is not None:
        draw(lines, options.png)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
