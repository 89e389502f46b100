"""Command line shared by all benchmark files: pick rows, run, store, show."""

from __future__ import annotations

import argparse
import importlib
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import record
from benchmarks.harness import (
    MIN_PAIRS,
    WARMUPS,
    Job,
    Row,
    absent_packages,
    find_row,
    in_child,
    memory_job,
    time_alone,
    time_job,
)
from benchmarks.report import text_table

ORDERS = {"sorted": False, "shuffled": True}


def _parser(benches: Sequence[str]) -> argparse.ArgumentParser:
    """Build the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure this library beside its peers.",
    )
    parser.add_argument("--bench", nargs="+", choices=benches, default=list(benches))
    parser.add_argument("--rows", nargs="+", metavar="ROW", help="default: all")
    parser.add_argument("--inputs", nargs="+", metavar="INPUT", help="default: all")
    parser.add_argument(
        "--orders", nargs="+", choices=ORDERS, default=list(ORDERS), metavar="ORDER"
    )
    parser.add_argument("--threads", nargs="+", type=int, default=[1], metavar="N")
    parser.add_argument("--pairs", type=int, default=MIN_PAIRS)
    parser.add_argument(
        "--limit", type=float, default=3600.0, help="seconds one process may take"
    )
    parser.add_argument(
        "--peers", action="store_true", help="fail where a peer is not installed"
    )
    parser.add_argument("--no-memory", action="store_true", help="times only")
    parser.add_argument("--dry", action="store_true", help="store nothing")
    parser.add_argument(
        "--out", type=Path, default=record.RESULTS, help="folder of the records"
    )
    parser.add_argument("--list", action="store_true", help="name the rows and stop")
    return parser


def plan(options: argparse.Namespace) -> list[Job]:
    """Return the jobs that the options ask for, in the order of the files."""
    jobs = []
    known: set[str] = set()
    for bench in options.bench:
        rows: tuple[Row, ...] = importlib.import_module(f"benchmarks.{bench}").ROWS
        known.update(row.name for row in rows)
        for row in rows:
            if options.rows and row.name not in options.rows:
                continue
            inputs = [i for i in row.inputs if i in (options.inputs or row.inputs)]
            jobs += [
                Job(bench, row.name, name, ORDERS[order], threads)
                for name, order, threads in itertools.product(
                    inputs, options.orders, options.threads
                )
            ]
    unknown = set(options.rows or ()) - known
    if unknown:
        raise ValueError(
            f"--rows got {', '.join(sorted(unknown))}, expected some of "
            f"{', '.join(sorted(known))}."
        )
    return jobs


def run_job(job: Job, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one job in fresh processes and return its record."""
    row = find_row(job.bench, job.row)
    result: dict[str, Any] = {
        **record.surroundings(),
        **vars(job),
        "ours": row.ours.label,
        "peer": row.peer.label,
        "weight_gradient": row.weight_gradient,
        "warmups": WARMUPS,
        "note": row.note,
    }
    absent = absent_packages(row)
    if absent:
        status = "failed" if options.peers else "skipped"
        reason = f"{', '.join(absent)} not installed"
        return {**result, "status": status, "reason": reason}
    failures = {}
    if not options.no_memory:
        for side in ("ours", "peer"):
            part = in_child(memory_job, job, side, limit=options.limit)
            if "error" in part:
                failures[side] = part.pop("error")
            result.update(part)
    if not failures:
        part = in_child(time_job, job, options.pairs, limit=options.limit)
        if "error" not in part:
            return {**result, "status": "measured", **part}
        failures["peer"] = part["error"]
    # Either side may be the one that failed; ours alone tells which.
    part = in_child(time_alone, job, options.pairs, limit=options.limit)
    reason = failures.get("ours", part.get("error"))
    if reason is not None:
        return {**result, "status": "failed", "reason": reason}
    return {**result, **part, "status": "peer failed", "reason": failures["peer"]}


def main(benches: Sequence[str], arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; 1 if something of ours failed."""
    parser = _parser(benches)
    options = parser.parse_args(arguments)
    if options.pairs < MIN_PAIRS and not options.dry:
        parser.error(
            f"--pairs {options.pairs} is below {MIN_PAIRS}; add --dry to look at a "
            "rough figure without storing it."
        )
    try:
        jobs = plan(options)
    except ValueError as error:
        parser.error(str(error))
    if options.list:
        for job in jobs:
            print(job)
        return 0
    results = []
    for number, job in enumerate(jobs, start=1):
        print(f"[{number}/{len(jobs)}] {job}", flush=True)
        results.append(run_job(job, options))
        # A skipped row is no result, so only the screen shows it.
        if not options.dry and results[-1]["status"] != "skipped":
            record.append(options.out / f"{job.bench}.jsonl", results[-1])
    print()
    print(text_table(results))
    return int(any(result["status"] == "failed" for result in results))
