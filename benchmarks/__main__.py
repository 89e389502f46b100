"""Run all benchmark files: ``python -m benchmarks``; peers that lack are named."""

from __future__ import annotations

import pkgutil

import benchmarks
from benchmarks.runner import main


def bench_files() -> list[str]:
    """Return the names of all benchmark files, in alphabetical order."""
    found = (module.name for module in pkgutil.iter_modules(benchmarks.__path__))
    return sorted(name for name in found if name.startswith("bench_"))


if __name__ == "__main__":
    raise SystemExit(main(bench_files()))
