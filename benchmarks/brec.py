"""How many pairs of BREC each test separates: ``python -m benchmarks.brec FILE``.

FILE is ``BREC.txt.gz`` with a category and two lines of graph6 per line. The published
categories hold 60 basic, 50 regular, 50 strongly regular, 100 extension, 100 CFI, 20
4-vertex condition and 20 distance regular pairs (Wang and Zhang, 2024). With ``--out``
a run that was stopped goes on with the next test of a category.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks import record
from pyg_pool.relational import from_graph6, kl_wl

TESTS: dict[str, dict[str, Any]] = {
    "1-WL": {"k": 1, "l": 0},
    "1,1 ego 1": {"k": 1, "l": 1, "ego": 1},
    "1,1": {"k": 1, "l": 1},
    "1,1 node pool": {"k": 1, "l": 1, "pooling": "node"},
    "DSS": {"k": 1, "l": 1, "update": "DSS"},
    "SSWL": {"k": 1, "l": 1, "update": "SSWL"},
    "2-FWL": {"k": 2, "l": 0, "folklore": True},
    "1,2 root+neighbour": {"k": 1, "l": 2, "domain": "star"},
    "1,2 pairs unordered": {"k": 1, "l": 2, "domain": "subset", "ordered": False},
}
# Pairs of tuple and node of both graphs up to which a pair is looked at.
WORK = 4_000_000


def load_pairs(path: Path) -> dict[str, list[tuple[str, str]]]:
    """Read the pairs by category."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    for line in text.splitlines():
        category, one, two = line.split()
        found[category].append((one, two))
    return found


def work_of(options: dict[str, Any], size: int, num_edges: int) -> int:
    """Items of one graph."""
    if options["k"] > 1:
        return size**3
    if options["l"] == 2:
        tuples = num_edges if options["domain"] == "star" else size * (size - 1) // 2
        return tuples * size
    return size ** (1 + options["l"])


def main() -> None:
    """Print one line of JSON per test and category."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--tests", nargs="+", choices=TESTS, default=list(TESTS))
    parser.add_argument("--categories", nargs="+", help="default: all")
    parser.add_argument("--work", type=int, default=WORK, help="leave out above it")
    parser.add_argument("--out", type=Path, help="file of lines; those in it are done")
    args = parser.parse_args()
    done = set()
    if args.out is not None and args.out.exists():
        lines = [json.loads(line) for line in args.out.read_text().splitlines()]
        done = {(line["category"], line["test"]) for line in lines}
    for category, pairs in load_pairs(args.file).items():
        if args.categories and category not in args.categories:
            continue
        for test in args.tests:
            if (category, test) in done:
                continue
            start, separated, evaluated = time.perf_counter(), 0, 0
            for texts in pairs:
                graphs = [from_graph6(text) for text in texts]
                sizes = [(int(g.num_nodes or 0), g.num_edges) for g in graphs]
                if sum(work_of(TESTS[test], *size) for size in sizes) > args.work:
                    continue
                colors = kl_wl(graphs, mode="hash", **TESTS[test])
                separated += int(colors[0] != colors[1])
                evaluated += 1
            row = {
                "category": category,
                "test": test,
                "separated": separated,
                "evaluated": evaluated,
                "total": len(pairs),
                "seconds": round(time.perf_counter() - start, 1),
            }
            print(json.dumps(row), flush=True)
            if args.out is not None:
                record.append(args.out, {**record.surroundings(), **row})


if __name__ == "__main__":
    main()
