"""On a CUDA device: tests of the Triton kernels, then their speed. One command.

``python -m benchmarks.gpu`` takes less than eight minutes and exits with 1 where a test
fails. Each row is forward and backward over ``--rows`` rows of 64 channels; the share
of the bandwidth counts the bytes that a step must read and write at least once.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.nn import (
    MaxAggregation,
    MeanAggregation,
    PowerMeanAggregation,
    SoftmaxAggregation,
    SumAggregation,
)

from benchmarks import record
from pyg_pool.kernels import (
    segment_attention,
    segment_pnorm,
    segment_reduce,
    segment_softmax,
    use_backend,
)

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "kernels" / "triton_cases.py"
CHANNELS = 64
LIMIT = 420.0

Door = Callable[[Tensor, Tensor, int], Tensor]


def aggregation(module: torch.nn.Module) -> Door:
    """PyG's aggregation as a function."""
    return lambda x, i, n: module(x, i, dim_size=n)


def reduction(how: str) -> Door:
    """Ours, by the name of the reduction."""
    return lambda x, i, n: segment_reduce(x, i, dim_size=n, reduce=how)  # type: ignore[arg-type]


# Ours, the peer, and how often the rows must be read or written at least.
ROWS: dict[str, tuple[Door, Door | None, int]] = {
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


def median_seconds(door: Door, x: Tensor, index: Tensor, size: int) -> float:
    """Median time of a step after two that do not count."""
    times = []
    for turn in range(11):
        x.grad = None
        torch.cuda.synchronize()
        start = time.perf_counter()
        out = door(x, index, size)
        out.backward(out.detach())
        torch.cuda.synchronize()
        if turn > 1:
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def bandwidth() -> float:
    """Bytes per second of a copy, counted both ways."""
    a = torch.empty(1 << 28, device="cuda")
    b = torch.empty_like(a)

    def copy(x: Tensor, index: Tensor, size: int) -> Tensor:
        return b.copy_(a)

    best = float("inf")
    for _ in range(8):
        torch.cuda.synchronize()
        start = time.perf_counter()
        copy(a, a, 0)
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return 2 * a.numel() * a.element_size() / best


def measure(rows: int, deadline: float) -> list[dict[str, object]]:
    """One record per row, order and backend, until the time is over."""
    speed, records = bandwidth(), []
    for shuffled in (False, True):
        index = torch.arange(rows, device="cuda") // 25
        if shuffled:
            index = index[torch.randperm(rows, device="cuda")]
        size = rows // 25 + 1
        x = torch.randn(rows, CHANNELS, device="cuda", requires_grad=True)
        for name, (ours, peer, passes) in ROWS.items():
            if time.monotonic() > deadline:
                return records
            entry: dict[str, object] = {
                **record.surroundings(), "bench": "gpu", "row": name, "rows": rows,
                "shuffled": shuffled, "device": torch.cuda.get_device_name(),
                "bytes_per_second": speed,
            }  # fmt: skip
            for backend in ("triton", "native"):
                torch.cuda.reset_peak_memory_stats()
                with use_backend(backend):  # type: ignore[arg-type]
                    entry[f"{backend}_seconds"] = median_seconds(ours, x, index, size)
                entry[f"{backend}_bytes"] = torch.cuda.max_memory_allocated()
            least = passes * x.numel() * x.element_size() / speed
            entry["share_of_bandwidth"] = least / float(str(entry["triton_seconds"]))
            if peer is not None:
                torch.cuda.reset_peak_memory_stats()
                entry["peer_seconds"] = median_seconds(peer, x, index, size)
                entry["peer_bytes"] = torch.cuda.max_memory_allocated()
            records.append(entry)
            keys = ("row", "shuffled", "triton_seconds", "native_seconds",
                    "peer_seconds", "share_of_bandwidth")  # fmt: skip
            print({key: entry[key] for key in keys if key in entry}, flush=True)
    return records


def main() -> int:
    """Test, measure, store."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, default=record.RESULTS / "gpu.json")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("torch finds no CUDA device; run this where there is one.")
        return 2
    deadline = time.monotonic() + LIMIT
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CASES)],
        cwd=ROOT,
        check=False,
    )
    records = measure(options.rows, deadline)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"tests": tests.returncode, "records": records}, indent=1)
    options.out.write_text(text + "\n", encoding="utf-8")
    return int(tests.returncode != 0)


if __name__ == "__main__":
    raise SystemExit(main())
