"""Labelled copies beside plain message passing on ogbg-molhiv, trained equally.

GIN, and the same GIN on copies with one label in balls of radius 3 (1,1 ego 3), by
``pyg-pool train graph``: the whole training split, same width, depth, rate, batches and
seed. Kept are the test ROC-AUC at the best validation epoch and the time of an epoch.

    OMP_NUM_THREADS=1 python -m benchmarks.molhiv --root DATA --runs RUNS

DATA holds ogbg_molhiv as OGB lays it out. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import record

FILE = "molhiv.jsonl"
NETWORKS = {
    "gin": ["--model", "gin"],
    "kl_gnn 1,1 ego 3": ["--model", "kl_gnn", "--k", "1", "--l", "1", "--ego", "3"],
}


def main(argv: Sequence[str] | None = None) -> int:
    """Train both and add a line for each to the records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--out", type=Path, default=record.RESULTS / "training")
    args = parser.parse_args(argv)
    for name, options in NETWORKS.items():
        run = args.runs / name.split()[0]
        words = [sys.executable, "-m", "pyg_pool", "train", "graph"]
        words += ["--dataset", "ogbg-molhiv", "--root", str(args.root), *options]
        words += ["--epochs", str(args.epochs), "--batch-size", "64"]
        words += ["--out", str(run), *(["--resume"] if run.exists() else [])]
        subprocess.run(words, check=True)
        summary = json.loads((run / "summary.json").read_text())
        kept = {"network": name, "epochs": args.epochs, "run": summary["runs"]}
        kept["num_parameters"] = summary["num_parameters"]
        record.append(args.out / FILE, {**kept, **record.surroundings()})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
