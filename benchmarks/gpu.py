"""On a CUDA device: tests of the Triton kernels, then speed. One command.

``python -m benchmarks.gpu`` takes less than eight minutes, says which targets are met,
and exits with 1 where a test fails. Rows of segments are forward and backward over
``--rows`` rows of 64 channels; the share of the bandwidth counts the bytes that a step
must read and write at least once. Rows of graphs have a tenth of the nodes. ``--dry``
walks through all of it on the CPU with small inputs, in native torch.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import (
    MaxAggregation,
    MeanAggregation,
    PowerMeanAggregation,
    SoftmaxAggregation,
    SumAggregation,
    TopKPooling,
)
from torch_geometric.utils import coalesce as merge_in_pyg

from benchmarks import record
from pyg_pool import (
    GLOTAggregation,
    GNPAggregation,
    GPool,
    GraphParsingPooling,
    HistographAggregation,
)
from pyg_pool.kernels import (
    coalesce,
    connected_components,
    segment_attention,
    segment_pnorm,
    segment_reduce,
    segment_softmax,
    sparse_product,
    topk,
    use_backend,
)
from pyg_pool.kernels.gather_sum import gather_sum
from pyg_pool.kernels.parse import parse
from pyg_pool.kernels.tuple_propagate import tuple_propagate

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "kernels" / "triton_cases.py"
CHANNELS, GRAPH = 64, 25
LIMIT = 420.0
FUSED, REDUCTIONS = ("softmax_sum", "pnorm"), ("sum", "mean", "max")
LEAST_GAIN, LEAST_SHARE = 3.0, 0.6

Door = Callable[[Tensor, Tensor, int], Tensor]
Step = Callable[[], Tensor]


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Args:
        name: Its name.
        ours: A step of ours.
        peer: The same by PyG or torch.
        passes: How often ``size`` must be read or written at least.
        size: Bytes of the rows.
        leaves: Tensors whose gradients are dropped ahead of each step.
    """

    name: str
    ours: Step
    peer: Step | None = None
    passes: int = 0
    size: int = 0
    leaves: tuple[Tensor, ...] = ()


def aggregation(module: torch.nn.Module) -> Door:
    """PyG's aggregation as a function."""
    return lambda x, i, n: module(x, i, dim_size=n)


def reduction(how: str) -> Door:
    """Ours, by the name of the reduction."""
    return lambda x, i, n: segment_reduce(x, i, dim_size=n, reduce=how)  # type: ignore[arg-type]


# Ours, the peer, and how often the rows must be read or written at least.
SEGMENTS: dict[str, tuple[Door, Door | None, int]] = {
    "sum": (reduction("sum"), aggregation(SumAggregation()), 2),
    "mean": (reduction("mean"), aggregation(MeanAggregation()), 2),
    "max": (reduction("max"), aggregation(MaxAggregation()), 2),
    "logsumexp": (reduction("logsumexp"), None, 3),
    "softmax": (lambda x, i, n: segment_softmax(x, i, dim_size=n), None, 5),
    "softmax_sum": (
        lambda x, i, n: segment_attention(x, x, i, dim_size=n),
        aggregation(SoftmaxAggregation()),
        3,
    ),
    "pnorm": (
        lambda x, i, n: segment_pnorm(x, 2.0, 0.5, i, dim_size=n),
        aggregation(PowerMeanAggregation(p=2.0)),
        4,
    ),
}


def segment_rows(rows: int, device: str, *, shuffled: bool) -> list[Row]:
    """Reductions of rows in order, or in none."""
    index = torch.arange(rows, device=device) // GRAPH
    if shuffled:
        index = index[torch.randperm(rows, device=device)]
    x = torch.randn(rows, CHANNELS, device=device, requires_grad=True)
    size, num_bytes = rows // GRAPH + 1, x.numel() * x.element_size()

    def step(door: Door) -> Step:
        return lambda: door(x, index, size)

    return [
        Row(
            name, step(ours), None if peer is None else step(peer), passes, num_bytes,
            (x,),
        )
        for name, (ours, peer, passes) in SEGMENTS.items()
    ]  # fmt: skip


def graph_rows(nodes: int, device: str) -> list[Row]:
    """Integer primitives, messages, poolings and readouts on graphs of 25 nodes."""
    graphs = max(1, nodes // GRAPH)
    nodes = graphs * GRAPH
    ids = torch.arange(nodes, device=device)
    batch = ids // GRAPH
    ends = batch * GRAPH + torch.randint(GRAPH, (2, nodes), device=device)
    pairs = torch.cat([torch.stack([ids, ends[0]]), torch.stack([ids, ends[1]])], 1)
    edges, _ = coalesce(torch.cat([pairs, pairs.flip(0)], 1), num_nodes=nodes)
    count = edges.size(1)
    attr = torch.randn(count, 16, device=device, requires_grad=True)
    weight = torch.rand(count, device=device, requires_grad=True)
    x = torch.randn(nodes, CHANNELS, device=device, requires_grad=True)
    score = torch.randn(nodes, device=device)
    many, twice = torch.cat([edges, edges], 1), torch.cat([attr, attr])
    tuples = min(graphs, 2000)
    ptr = torch.arange(tuples + 1, device=device) * GRAPH
    inside = edges[:, (edges[0] < tuples * GRAPH).nonzero().view(-1)]
    wide = torch.randn(tuples * GRAPH**2, CHANNELS, device=device, requires_grad=True)
    shape = (nodes, nodes, nodes)
    gpool, topk_pool = (m(CHANNELS).to(device) for m in (GPool, TopKPooling))
    parsing = GraphParsingPooling(CHANNELS).to(device)
    gnp = GNPAggregation(CHANNELS).to(device)
    power = PowerMeanAggregation(learn=True).to(device)
    half = CHANNELS // 2
    histograph = HistographAggregation([half, half], half).to(device)
    glot = GLOTAggregation(CHANNELS, half).to(device)
    sizes: dict[str, Any] = {"batch": batch, "batch_size": graphs}
    table = [
        Row("topk", lambda: topk(score, 0.5, **sizes)),
        Row(
            "coalesce",
            lambda: coalesce(many, twice, num_nodes=nodes)[1],  # type: ignore[arg-type,return-value]
            lambda: merge_in_pyg(many, twice, nodes)[1],
        ),
        Row("components", lambda: connected_components(edges, nodes)),
        Row("parse", lambda: parse(edges, weight.detach(), nodes)),
        Row(
            "gather_sum",
            lambda: gather_sum(x, edges, nodes),
            lambda: torch.zeros_like(x).index_add(0, edges[1], x[edges[0]]),
        ),
        Row("tuple_propagate", lambda: tuple_propagate(wide, inside, ptr)),
        Row(
            "sparse_product",
            lambda: sparse_product(edges, weight, edges, weight, shape)[1],  # type: ignore[arg-type,return-value]
        ),
        Row(
            "GPool",
            lambda: gpool(x, edges, **sizes).x,
            lambda: topk_pool(x, edges, batch=batch)[0],
        ),
        Row("GraphParsingPooling", lambda: parsing(x, edges, **sizes).x),
        Row(
            "GNPAggregation",
            lambda: gnp(x, batch, dim_size=graphs),
            lambda: power(x, batch, dim_size=graphs),
        ),
        Row("HistographAggregation", lambda: histograph(x, batch, dim_size=graphs)),
        Row("GLOTAggregation", lambda: glot(x, batch, dim_size=graphs)),
    ]
    return [replace(row, leaves=(x, attr, weight, wide)) for row in table]


def wait(device: str) -> None:
    """Until the device has done all its work."""
    if device == "cuda":
        torch.cuda.synchronize()


def median_seconds(
    step: Step, leaves: tuple[Tensor, ...], device: str, turns: int
) -> float:
    """Median time of a step, backward where there is one, after two more."""
    times = []
    for turn in range(turns + 2):
        for leaf in leaves:
            leaf.grad = None
        wait(device)
        start = time.perf_counter()
        out = step()
        if out.requires_grad:
            out.backward(out.detach())
        wait(device)
        if turn > 1:
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def bandwidth(device: str, length: int) -> float:
    """Bytes per second of a copy, counted both ways."""
    a = torch.empty(length, device=device)
    b, best = torch.empty_like(a), float("inf")
    for _ in range(8):
        wait(device)
        start = time.perf_counter()
        b.copy_(a)
        wait(device)
        best = min(best, time.perf_counter() - start)
    return 2 * a.numel() * a.element_size() / best


def measured(
    step: Step, leaves: tuple[Tensor, ...], device: str, turns: int
) -> tuple[float | None, int]:
    """Seconds, ``None`` where the memory does not do, and the most bytes held."""
    try:
        if device != "cuda":
            return median_seconds(step, leaves, device, turns), 0
        torch.cuda.reset_peak_memory_stats()
        seconds = median_seconds(step, leaves, device, turns)
        return seconds, torch.cuda.max_memory_allocated()
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        return None, 0


def measure(
    rows: list[Row], device: str, speed: float, deadline: float, *, turns: int = 9,
    shuffled: bool = False,
) -> list[dict[str, Any]]:  # fmt: skip
    """One record per row, until the time is over."""
    records = []
    name = torch.cuda.get_device_name() if device == "cuda" else "dry run on the CPU"
    for row in rows:
        if time.monotonic() > deadline:
            print(f"The time is over: {row.name} and all after it are left out.")
            break
        entry: dict[str, Any] = {
            **record.surroundings(), "bench": "gpu", "row": row.name,
            "shuffled": shuffled, "device": name, "bytes_per_second": speed,
        }  # fmt: skip
        for backend in ("triton", "native"):
            used: Any = backend if device == "cuda" else "native"
            with use_backend(used):
                found = measured(row.ours, row.leaves, device, turns)
            entry[f"{backend}_seconds"], entry[f"{backend}_bytes"] = found
        if row.peer is not None:
            found = measured(row.peer, row.leaves, device, turns)
            entry["peer_seconds"], entry["peer_bytes"] = found
        ours, peer = entry["triton_seconds"], entry.get("peer_seconds")
        if ours and row.passes:
            entry["share_of_bandwidth"] = row.passes * row.size / speed / ours
        if ours and peer:
            entry["gain"] = peer / ours
        records.append(entry)
        keys = ("row", "shuffled", "triton_seconds", "native_seconds",
                "peer_seconds", "gain", "share_of_bandwidth")  # fmt: skip
        print({key: entry[key] for key in keys if key in entry}, flush=True)
    return records


def targets(records: list[dict[str, Any]]) -> list[str]:
    """What was aimed at, and whether it is met."""
    lines = []
    for entry in records:
        name, order = entry["row"], "no order" if entry["shuffled"] else "order"
        gain, share = entry.get("gain"), entry.get("share_of_bandwidth")
        if name in FUSED and gain is not None:
            word = "met" if gain >= LEAST_GAIN else "MISSED"
            lines.append(f"{word}: {name}, rows in {order}: {gain:.1f}x PyG, aim 3x")
        if name in REDUCTIONS and share is not None and not entry["shuffled"]:
            word = "met" if share >= LEAST_SHARE else "MISSED"
            lines.append(f"{word}: {name}: {share:.0%} of the bandwidth, aim 60%")
    return lines


def run_tests() -> int:
    """The cases of all twins on the device; the exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CASES)],
        cwd=ROOT,
        check=False,
    )
    return done.returncode


def main(arguments: list[str] | None = None) -> int:
    """Test, measure, store."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, default=record.RESULTS / "gpu.json")
    parser.add_argument("--dry", action="store_true", help="small, on the CPU")
    options = parser.parse_args(arguments)
    if not options.dry and not torch.cuda.is_available():
        print("torch finds no CUDA device; run this where there is one, or --dry.")
        return 2
    deadline = time.monotonic() + LIMIT
    device, rows = ("cpu", 1000) if options.dry else ("cuda", options.rows)
    code = 0 if options.dry else run_tests()
    speed = bandwidth(device, 1 << 16 if options.dry else 1 << 28)
    records: list[dict[str, Any]] = []
    turns = 1 if options.dry else 9
    for shuffled in (False, True):
        table = segment_rows(rows, device, shuffled=shuffled)
        records += measure(
            table, device, speed, deadline, turns=turns, shuffled=shuffled
        )
        del table
    records += measure(
        graph_rows(rows // 10, device), device, speed, deadline, turns=turns
    )
    lines = [] if options.dry else targets(records)
    print("\n".join(lines))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"tests": code, "targets": lines, "records": records}, indent=1)
    options.out.write_text(text + "\n", encoding="utf-8")
    return int(code != 0)


if __name__ == "__main__":
    raise SystemExit(main())
