"""What stands beside a figure: versions, commit, machine, load; and its storage."""

from __future__ import annotations

import datetime
import fcntl
import importlib
import json
import os
import subprocess
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

SCHEMA = 1
ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = (
    "torch",
    "torch-geometric",
    "torch-geometric-pool",
    "torch-scatter",
    "torch-sparse",
    "numpy",
    "numba",
)


def versions() -> dict[str, str]:
    """Return the versions of this library and of all peers that are installed."""
    own = getattr(importlib.import_module("pyg_pool"), "__version__", "unknown")
    found = {"pyg_pool": own}
    for name in PACKAGES:
        found.update((name, part.version) for part in metadata.distributions(name=name))
    return found


def _git(*words: str) -> str:
    """Return what a git command says, empty where it fails."""
    try:
        done = subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def commit() -> str:
    """Return the commit that is measured, ending in ``+changes`` if it was edited."""
    head = _git("rev-parse", "--short=12", "HEAD") or "none"
    edited = _git("status", "--porcelain", "--", "pyg_pool", "benchmarks/*.py")
    return f"{head}+changes" if edited else head


def machine_class() -> str:
    """Return processor model, number of processors and memory, but no host name."""
    model = "unknown processor"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                model = " ".join(line.split(":", 1)[1].split())
                break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {os.cpu_count()} processors, {memory:.0f} GiB"


def surroundings() -> dict[str, Any]:
    """Return all that is recorded beside the figures."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "schema": SCHEMA,
        "date": now.isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine_class(),
        "load": round(os.getloadavg()[0], 2),
        "versions": versions(),
    }


def append(path: Path, record: dict[str, Any]) -> None:
    """Add one line to a file of JSON lines; readers see all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        old = path.read_text() if path.exists() else ""
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            file.write(old + json.dumps(record, sort_keys=True) + "\n")
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).chmod(0o644)
        Path(file.name).replace(path)
    finally:
        os.close(folder)


def read_all(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """Return the records of all files of a folder, oldest first per file.

    Raises:
        ValueError: If a line is no record of the present schema.
    """
    records = []
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            record = json.loads(line)
            if record.get("schema") != SCHEMA:
                raise ValueError(
                    f"{path.name} line {number} has schema {record.get('schema')}, "
                    f"expected {SCHEMA}; measure the row again."
                )
            records.append(record)
    return records
