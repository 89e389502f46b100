"""Coarsening of large graphs: passes, memory, and association beside rivals.

A pass is one SciPy float32 product ``y = A x`` on one thread in the same process. Each
graph is measured in its own process: CPU time on one thread, wall time on two; and in
one more, which does nothing else, the rise of resident memory above the input. Rivals
run in the process of the times; where one cannot be given a size, ours is run again at
the size that it reached. One that is not installed says so in its place. Times are
medians of three runs. With several sizes, the exponent with which time counted in
passes grows is told for each kind of graph; ``--growth`` reads it from a record.

    python -m benchmarks.coarsening --edges 1e5 1e6 1e7 5e7 --out results.jsonl
    python -m benchmarks.coarsening --growth results.jsonl
    python -m benchmarks.coarsening --files roads/*.gr.xz --rivals
    python -m benchmarks.coarsening --molecules
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks import record
from benchmarks.large_graphs import GRAPHS, make

PASSES = 5
RUNS = 3
CPU, WALL = "cpu_passes_1_thread", "wall_passes_2_threads"


def memory(path: str, n: int) -> int:
    """Rise of resident memory above the input, in a process that did nothing else."""
    from benchmarks.harness import PeakMeter

    ours(make("sbm", 100_000), 1000, 1)
    with np.load(path) as file:
        indptr, indices = file["indptr"], file["indices"]
    parts, size = (np.ones(indices.size, np.float32), indices, indptr), indptr.size - 1
    rows = csr_matrix(parts, (size, size))
    gc.collect()
    meter = PeakMeter()
    ours(rows, n, 1)
    return meter.rise()


def one_pass(rows: Any) -> float:
    """CPU seconds of a product with the adjacency, the median of some."""
    x = np.random.default_rng(0).random(rows.shape[0], dtype=np.float32)
    times = []
    for _ in range(PASSES):
        begin = time.process_time()
        rows @ x
        times.append(time.process_time() - begin)
    return statistics.median(times)


def ours(rows: Any, n: int, threads: int) -> tuple[np.ndarray, float, float]:
    """Labels, CPU and wall seconds."""
    from pyg_pool.coarsen import coarsen

    cpu, wall = time.process_time(), time.perf_counter()
    found = coarsen(rows, num_clusters=n, num_threads=threads)
    return (
        found.cluster.numpy(),
        time.process_time() - cpu,
        time.perf_counter() - wall,
    )


def middle(rows: Any, n: int, threads: int) -> tuple[np.ndarray, float, float]:
    """Labels, and medians of CPU and wall seconds of some runs."""
    found = [ours(rows, n, threads) for _ in range(RUNS)]
    cpu, wall = (statistics.median(run[i] for run in found) for i in (1, 2))
    return found[0][0], cpu, wall


def association(rows: Any, label: np.ndarray) -> float:
    """Similarity captured by merging, by nodes, in the rw kernel."""
    from pyg_pool.coarsen import from_labels

    return from_labels(rows, label).quality().association / rows.shape[0]


def lloyd(rows: Any, n: int) -> np.ndarray:
    """PyAMG's Lloyd aggregation at a share of the nodes."""
    from pyamg.aggregation import lloyd_aggregation

    matrix = rows.astype(np.float64)
    found, _ = lloyd_aggregation(matrix, ratio=n / rows.shape[0])
    return np.asarray(found.tocsr().argmax(axis=1)).ravel()


def standard(rows: Any, n: int) -> np.ndarray:
    """PyAMG's standard aggregation; its size is its own."""
    from pyamg.aggregation import standard_aggregation

    found, _ = standard_aggregation(rows.astype(np.float64).tocsr())
    label = np.asarray(found.tocsr().argmax(axis=1)).ravel()
    alone = np.asarray(found.sum(axis=1)).ravel() == 0
    label[alone] = found.shape[1] + np.arange(alone.sum())
    return label


def repeated(rows: Any, n: int, step_of: Callable[[Any], np.ndarray]) -> np.ndarray:
    """Merges again and again until the size is reached or it stalls."""
    from scipy.sparse import coo_matrix

    label, here = np.arange(rows.shape[0]), rows.tocoo()
    while True:
        step = step_of(here)
        size = int(step.max()) + 1
        if size > 0.95 * here.shape[0]:
            return label
        label = step[label]
        if size <= n:
            return label
        parts = (here.data, (step[here.row], step[here.col]))
        here = coo_matrix(parts, (size, size)).tocsr().tocoo()


def matching(rows: Any, n: int) -> np.ndarray:
    """NetworKit's matchings, one after the other."""
    import networkit

    def step(here: Any) -> np.ndarray:
        upper = here.row < here.col
        parts = (here.data[upper], (here.row[upper], here.col[upper]))
        graph = networkit.GraphFromCoo(parts, n=here.shape[0], weighted=True)
        matcher = networkit.matching.PathGrowingMatcher(graph)
        matcher.run()
        # Kept by a name: the coarsening only points to it.
        pairs = matcher.getMatching()
        coarse = networkit.coarsening.MatchingCoarsening(graph, pairs, True)
        coarse.run()
        return np.asarray(coarse.getFineToCoarseNodeMapping())

    return repeated(rows, n, step)


def metis(rows: Any, n: int) -> np.ndarray:
    """METIS k-way partition."""
    import pymetis

    _, found = pymetis.part_graph(n, xadj=rows.indptr, adjncy=rows.indices)
    return np.asarray(found)


def graclus(rows: Any, n: int) -> np.ndarray:
    """Graclus of torch-cluster, one after the other."""
    import torch
    from torch_cluster import graclus_cluster

    def step(here: Any) -> np.ndarray:
        ends = [torch.from_numpy(e.astype(np.int64)) for e in (here.row, here.col)]
        weight = torch.from_numpy(here.data.astype(np.float32))
        found = graclus_cluster(*ends, weight, here.shape[0]).numpy()
        return np.unique(found, return_inverse=True)[1]

    return repeated(rows, n, step)


RIVALS: dict[str, Callable[[Any, int], np.ndarray]] = {
    "pyamg lloyd": lloyd,
    "pyamg standard": standard,
    "networkit matching": matching,
    "metis": metis,
    "graclus": graclus,
}


def measure(name: str, source: str, ratio: float, rivals: bool) -> dict[str, Any]:
    """One line of the table."""
    for kind in GRAPHS:
        # Large enough to load all compiled loops.
        ours(make(kind, 100_000), 1000, 1)
        ours(make(kind, 100_000), 1000, 2)
    if source == "file":
        from pyg_pool.coarsen import read_graph

        rows = read_graph(name).to_scipy(loops=False).astype(np.float32)
        rows.sort_indices()
    else:
        rows = make(name, int(float(source)))
    n = int(np.ceil(ratio * rows.shape[0] - 1e-9))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.npz"
        np.savez(path, indptr=rows.indptr, indices=rows.indices)
        rise = alone(memory, path, n)
    unit = one_pass(rows)
    label, cpu, _ = middle(rows, n, 1)
    _, _, wall = middle(rows, n, 2)
    unit = statistics.median([unit, one_pass(rows), one_pass(rows)])
    line = {
        "graph": Path(name).name,
        "nodes": rows.shape[0],
        "edges": rows.nnz // 2,
        "clusters": int(label.max()) + 1,
        "pass_seconds": unit,
        "runs": RUNS,
        CPU: cpu / unit,
        WALL: wall / unit,
        "association": association(rows, label),
        "memory_mb": rise / 1e6,
        "bytes_per_directed_edge": rise / max(rows.nnz, 1),
    }
    for rival, run in RIVALS.items() if rivals else ():
        begin = time.process_time()
        try:
            found = run(rows, n)
        except ImportError as error:
            line[rival] = str(error)
            continue
        seconds = time.process_time() - begin
        size = len(np.unique(found))
        equal = label if size == n else ours(rows, size, 1)[0]
        line[rival] = {
            "clusters": size,
            "time_ratio": seconds / cpu,
            "association": association(rows, np.unique(found, return_inverse=True)[1]),
            "ours_at_its_size": association(rows, equal),
        }
    return line


def molecules(count: int = 128) -> dict[str, Any]:
    """Milliseconds for a batch of molecule-like graphs, ratio 0.5."""
    import torch

    from pyg_pool.coarsen import coarsen_batch

    random = np.random.default_rng(0)
    parts, nodes, first = [], [], 0
    for size in random.integers(15, 35, count):
        parent = [int(random.integers(max(i - 3, 0), i)) for i in range(1, size)]
        child = list(range(1, int(size)))
        pair = np.array([parent + child, child + parent]) + first
        parts.append(torch.from_numpy(pair))
        nodes.append(int(size))
        first += int(size)
    counts = torch.tensor([part.size(1) for part in parts])
    edges, sizes = torch.cat(parts, 1), torch.tensor(nodes)
    times = []
    for _ in range(12):
        begin = time.perf_counter()
        coarsen_batch(edges, sizes, counts, ratio=0.5, num_threads=1)
        times.append(time.perf_counter() - begin)
    return {"graphs": count, "milliseconds": 1e3 * statistics.median(times[2:])}


def growth(lines: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Exponents of time over edges, where a pass takes one unit by edge.

    Of several lines of one size, the last one counts.
    """
    sizes: dict[str, dict[float, dict[str, Any]]] = {}
    for line in lines:
        if line.get("graph") in GRAPHS:
            order = round(float(np.log10(line["edges"])), 1)
            sizes.setdefault(line["graph"], {})[order] = line
    out = {}
    for graph, found in sizes.items():
        if len(found) > 1:
            edges = np.log([line["edges"] for line in found.values()])
            out[graph] = {
                name: 1 + float(np.polyfit(edges, np.log(passes), 1)[0])
                for name in (CPU, WALL)
                for passes in [[line[name] for line in found.values()]]
            }
    return out


def alone(work: Callable[..., Any], *args: Any) -> Any:
    """The result of a function in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(work, *args).result()


def main() -> None:
    """Measure what the command line asks for; one JSON line each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--edges", nargs="*", default=[])
    parser.add_argument("--graphs", nargs="*", default=list(GRAPHS))
    parser.add_argument("--files", nargs="*", default=[])
    parser.add_argument("--ratio", type=float, default=0.1)
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--molecules", action="store_true")
    parser.add_argument("--growth", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.growth is not None:
        known = args.growth.read_text().splitlines()
        print(json.dumps(growth([json.loads(line) for line in known]), indent=1))
        return
    jobs = [(graph, edges) for edges in args.edges for graph in args.graphs]
    jobs += [(path, "file") for path in args.files]
    works = [(molecules, ())] if args.molecules else []
    works += [(measure, (*job, args.ratio, args.rivals)) for job in jobs]
    done = []
    for work, options in works:
        line = {**alone(work, *options), **record.surroundings()}
        done.append(line)
        print(json.dumps(line), flush=True)
        if args.out is not None:
            record.append(args.out, line)
    if grown := growth(done):
        line = {"growth": grown, **record.surroundings()}
        print(json.dumps(line), flush=True)
        if args.out is not None:
            record.append(args.out, line)


if __name__ == "__main__":
    main()
