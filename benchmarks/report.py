"""Turns records into tables: on the screen, and into the documentation page.

``python -m benchmarks.report`` writes ``docs/guide/benchmarks.md`` from the
committed records; with ``--check`` it only says whether the page is up to date.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import record

PAGE = record.ROOT / "docs" / "guide" / "benchmarks.md"
KEY = ("bench", "row", "input", "shuffled", "threads")
HEAD = (
    "row",
    "input",
    "rows are",
    "threads",
    "ours ms",
    "peer ms",
    "times faster",
    "ours MB",
    "peer MB",
    "times less memory",
    "ours later MB",
    "peer later MB",
)
INTRODUCTION = """\
# Benchmarks

This page is written by `python -m benchmarks.report` from the records in
`benchmarks/results`; do not edit it by hand. `make bench` measures anew, and
`make bench-peers` also installs the peers that need a compiler.

One step is the forward pass, the sum of squares over all floating outputs, and the
backward pass to inputs and parameters. Both sides get the same tensors and the same
weights and alternate in one process. *Times faster* is the median over at least nine
pairs of peer time / our time, after two warm-up pairs, with the quartiles in
brackets; the times are medians. Memory is the rise of the resident peak above the
level just before the first step, each side in a fresh process; *later MB* is the same
rise for the steps after it. Where a row of ours runs numba, its first figure includes
numba's start, about 55 MB of code once in a process (the shuffled rows of bench_gpool,
its U-net and the GNP rows were measured with numba started before). *Shuffled* means
that the same graphs have their nodes, and so the batch vector, in random order.

Inputs (float32, 64 channels): `a` 128 molecule-like graphs, 3,220 nodes, 6,696 edge
columns; `b` 32 graphs, 9,653 nodes, 38,612 columns; `c` one graph, 100,000 nodes,
1,000,000 columns. `benchmarks/inputs.py` builds them.
"""


def latest(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep the last record of every row, input and setting, in first-seen order."""
    newest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in records:
        newest[tuple(entry[key] for key in KEY)] = entry
    return list(newest.values())


def _milliseconds(spread: dict[str, float] | None) -> str:
    """Print a time with three digits that count."""
    if spread is None:
        return "-"
    value = spread["median"] * 1e3
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _megabytes(entry: dict[str, Any], key: str) -> str:
    """Print a size in units of 10^6 bytes; a failed side's size is a lower bound."""
    size = entry.get(key)
    if size is None:
        return "-"
    reached = entry["status"] == "peer failed" and key.startswith("peer")
    return f"{'over ' if reached else ''}{size / 1e6:,.1f}"


def _faster(entry: dict[str, Any]) -> str:
    """Print the quotient with its quartiles, or that there is none."""
    if entry["status"] != "measured":
        return str(entry["status"])
    spread = entry["quotient"]
    return f"{spread['median']:.2f} ({spread['q1']:.2f} to {spread['q3']:.2f})"


def _leaner(entry: dict[str, Any]) -> str:
    """Print how many times less memory ours takes."""
    ours, peer = entry.get("ours_peak_bytes"), entry.get("peer_peak_bytes")
    if not ours or peer is None:
        return "-"
    return f"{'over ' if entry['status'] == 'peer failed' else ''}{peer / ours:.2f}"


def cells(entry: dict[str, Any]) -> list[str]:
    """Return the table cells of one record."""
    return [
        entry["row"],
        entry["input"],
        "shuffled" if entry["shuffled"] else "sorted",
        str(entry["threads"]),
        _milliseconds(entry.get("ours_seconds")),
        _milliseconds(entry.get("peer_seconds")),
        _faster(entry),
        _megabytes(entry, "ours_peak_bytes"),
        _megabytes(entry, "peer_peak_bytes"),
        _leaner(entry),
        _megabytes(entry, "ours_later_peak_bytes"),
        _megabytes(entry, "peer_later_peak_bytes"),
    ]


def _loss_warning(entry: dict[str, Any]) -> str | None:
    """Say so where the two sides did not compute the same thing."""
    gap = entry.get("loss_gap", 0.0)
    if gap <= 1e-3:
        return None
    return f"{entry['row']} on {entry['input']}: losses differ by {gap:.1%}"


def text_table(entries: Sequence[dict[str, Any]]) -> str:
    """Return a table for the screen, with notes and what was skipped below."""
    lines = [list(HEAD)] + [cells(entry) for entry in entries]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = [
        "  ".join(
            cell.ljust(width) for cell, width in zip(line, widths, strict=True)
        ).rstrip()
        for line in lines
    ]
    notes = dict.fromkeys(
        f"{entry['row']}: {entry['note']}" for entry in entries if entry["note"]
    )
    losses = [text for entry in entries if (text := _loss_warning(entry))]
    return "\n".join([*table, "", *notes, *losses, *_reasons(entries)])


def _reasons(entries: Sequence[dict[str, Any]]) -> list[str]:
    """Say of each row without a quotient why it has none."""
    found = dict.fromkeys(
        f"{entry['status'].upper()} {entry['row']} on {entry['input']}: "
        f"{entry['reason']}"
        for entry in entries
        if entry["status"] != "measured"
    )
    return list(found)


def _fact(name: str, value: float) -> str:
    """A checked figure in words; names say the unit, shares have none."""
    *words, unit = name.split("_")
    if unit == "ms":
        return f"{' '.join(words)} {value:.3g} ms"
    return f"{name.replace('_', ' ')} {value:.1%}"


def _section(bench: str, entries: Sequence[dict[str, Any]]) -> str:
    """Return the Markdown of one benchmark file."""
    lines = [f"## {bench}", ""]
    for entry in {entry["row"]: entry for entry in entries}.values():
        note = f" {entry['note']}" if entry["note"] else ""
        lines.append(f"- **{entry['row']}**: {entry['ours']} / {entry['peer']}.{note}")
    lines += ["", f"| {' | '.join(HEAD)} |", f"|{' --- |' * len(HEAD)}"]
    lines += [
        f"| {' | '.join(cell.replace('|', '/') for cell in cells(entry))} |"
        for entry in entries
    ]
    facts = [
        f"- {entry['row']} on {entry['input']}"
        f"{' shuffled' if entry['shuffled'] else ''}: "
        + ", ".join(_fact(*fact) for fact in entry["facts"].items())
        for entry in entries
        if entry.get("facts")
    ]
    if facts:
        lines += ["", "Checked beside the figures:", "", *facts]
    reasons = [f"- {reason}" for reason in _reasons(entries)]
    if reasons:
        lines += ["", "Not measured:", "", *reasons]
    return "\n".join([*lines, ""])


def _origin(entry: dict[str, Any]) -> str:
    """Say where and with what a record was measured."""
    packages = ", ".join(f"{name} {v}" for name, v in entry["versions"].items())
    return f"{entry['machine']}; commit {entry['commit']}; {packages}"


def markdown(records: Sequence[dict[str, Any]]) -> str:
    """Return the documentation page for some records."""
    entries = latest(records)
    sections = [
        _section(bench, [entry for entry in entries if entry["bench"] == bench])
        for bench in sorted({entry["bench"] for entry in entries})
    ]
    origins = [f"- {text}" for text in dict.fromkeys(map(_origin, entries))]
    dates = sorted(entry["date"][:10] for entry in entries)
    measured = (
        f"Measured {dates[0]} to {dates[-1]} on:" if dates else "Nothing measured yet."
    )
    return "\n".join([INTRODUCTION, *sections, measured, "", *origins]).rstrip() + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the documentation page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report")
    parser.add_argument("--results", type=Path, default=record.RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(arguments)
    text = markdown(record.read_all(options.results))
    if options.check:
        is_current = options.page.exists() and options.page.read_text() == text
        print(f"{options.page.name} is {'up to date' if is_current else 'stale'}")
        return int(not is_current)
    options.page.parent.mkdir(parents=True, exist_ok=True)
    options.page.write_text(text)
    print(f"wrote {options.page.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
