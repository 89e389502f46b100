"""Records from which size each compiled CPU twin is faster than native torch.

The table ``NUMBA_FROM`` of the package is set by the last record of each primitive.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import record
from pyg_pool.kernels.crossover import SIZES, measure_crossovers, size_to_use

FILE = record.RESULTS / "crossover" / "crossover.jsonl"


def measure(sizes: tuple[int, ...] = SIZES) -> list[dict[str, Any]]:
    """Return one record per primitive."""
    return [
        {
            **record.surroundings(),
            "bench": "crossover",
            "primitive": each.primitive,
            "sizes": list(sizes),
            "gains": [round(gain, 2) for gain in each.gains],
            "measured": each.measured,
            "used": size_to_use(each.primitive, each.measured, sizes[0]),
            "threads": torch.get_num_threads(),
        }
        for each in measure_crossovers(sizes)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, store and show."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.crossover", description=__doc__
    )
    parser.add_argument("--out", type=Path, default=FILE, help="file of the records")
    parser.add_argument("--dry", action="store_true", help="store nothing")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    start = time.perf_counter()
    for entry in measure():
        if not options.dry:
            record.append(options.out, entry)
        gains = " ".join(f"{gain:7.2f}" for gain in entry["gains"])
        print(f"{entry['primitive']:18}{gains}  used from {entry['used']:,}")
    print(f"{time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
