"""Distortion and spectrum of small graphs, method by method.

Means over the graphs of a set: ``J``, ``B``, its root, and the relative error of the
five largest eigenvalues; for pairs of graphs the bias and the root mean square of the
change of their Gromov-Wasserstein distance. Never one number alone: a method whose
distances scatter may show a small bias.

    python -m benchmarks.gw_coarsening --root data --sets MUTAG PTC_MR --ratios .3 .5
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

METHODS = (
    "multilevel",
    "ward",
    "kmeans",
    "mgc",
    "sgc",
    "variation_edges",
    "variation_neighborhoods",
    "heavy_edge",
    "algebraic",
)


def graphs_of(root: Path, name: str, step: int) -> list[Any]:
    """Every ``step``-th graph of a set without isolated nodes."""
    from torch_geometric.datasets import TUDataset

    found = TUDataset(str(root), name)[::step]
    return [g for g in found if g.num_edges and not g.has_isolated_nodes()]


def one(graph: Any, ratio: float, method: str, kernel: str) -> Any:
    """The coarsening of one graph; five clusters at least."""
    from pyg_pool.coarsen import coarsen

    wanted = int(np.ceil(ratio * graph.num_nodes - 1e-9))
    n = min(max(wanted, 5), graph.num_nodes)
    return coarsen(
        graph.edge_index,
        num_clusters=n,
        size=graph.num_nodes,
        method=method,
        kernel=kernel,
        mass="degree" if kernel == "rw" else "uniform",
        num_threads=1,
        symmetrize="max",
        duplicates="max",
        refine=method == "ward",
    )


def table(graphs: list[Any], ratio: float, kernel: str, methods: Any) -> Any:
    """One row per method."""
    for method in methods:
        begin = time.process_time()
        found = [one(graph, ratio, method, kernel) for graph in graphs]
        seconds = time.process_time() - begin
        quality = [each.quality(5) for each in found]
        bound = np.array([each.gw_upper_bound for each in quality])
        yield {
            "method": method,
            "kernel": kernel,
            "ratio": ratio,
            "J": float(np.mean([each.objective for each in quality])),
            "B_1000": float(1000 * (bound**2).mean()),
            "sqrt_B": float(bound.mean()),
            "eig5": float(np.mean([each.spectral_error for each in quality])),
            "clusters": float(np.mean([each.num_clusters for each in found])),
            "cpu_seconds": seconds,
        }


def distances(graphs: list[Any], ratio: float, method: str, starts: int) -> Any:
    """Bias and root mean square of the change of distances between pairs."""
    from pyg_pool.coarsen.gw import coarse_space, space_of, transport

    fine, coarse, members = [], [], []
    for graph in graphs:
        found = one(graph, ratio, method, "normalized")
        fine.append(space_of(found.source, "normalized", "uniform"))
        label = found.cluster.numpy()
        coarse.append(coarse_space(found.state, label, found.num_clusters))
        members.append(np.eye(found.num_clusters)[label])
    gaps, sizes = [], []
    for i in range(len(graphs)):
        for j in range(i):
            value, plan = transport(fine[i], fine[j])
            start = members[i].T @ plan @ members[j]
            small, _ = transport(coarse[i], coarse[j], start)
            sizes.append(np.sqrt(max(value, 0)))
            gaps.append(np.sqrt(max(small, 0)) - sizes[-1])
    gaps = np.array(gaps)
    return {
        "method": method,
        "ratio": ratio,
        "mean_distance": float(np.mean(sizes)),
        "bias": float(gaps.mean()),
        "rms": float(np.sqrt((gaps**2).mean())),
    }


def main() -> None:
    """Measure what the command line asks for; one JSON line each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=["MUTAG", "PTC_MR", "PROTEINS"])
    parser.add_argument("--ratios", nargs="+", type=float, default=[0.3, 0.5])
    parser.add_argument("--kernels", nargs="+", default=["normalized"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--every", type=int, default=1, help="use every n-th graph")
    parser.add_argument("--pairs", type=int, default=0, help="graphs to pair up")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    lines = []
    for name in args.sets:
        graphs = graphs_of(args.root, name, args.every)
        for ratio in args.ratios:
            for kernel in args.kernels:
                for line in table(graphs, ratio, kernel, args.methods):
                    lines.append({"set": name, "graphs": len(graphs), **line})
                    print(json.dumps(lines[-1]), flush=True)
            for method in args.methods if args.pairs else ():
                line = distances(graphs[: args.pairs], ratio, method, 1)
                lines.append({"set": name, **line})
                print(json.dumps(lines[-1]), flush=True)
    if args.out is not None:
        with args.out.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


if __name__ == "__main__":
    main()
