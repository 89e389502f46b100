"""Training on real meshes: SHREC16 classes and the parts of the Princeton set.

    python -m benchmarks.mesh_training shrec16 --data FOLDER --out RUN
    python -m benchmarks.mesh_training princeton --data FOLDER --out RUN --epochs 60
    python -m benchmarks.mesh_training princeton --out RUN --record-only

Both go through the public job of ``pyg-pool mesh train``: a run that was stopped goes
on where it was, a finished one is not trained again. The test meshes are looked at
once, with the weights of the last epoch. Every run gives one JSON line, a set of
several categories one more with their means; ``--record-only`` writes the lines of a
folder that was trained before.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks import record

RESULTS = "mesh_training.jsonl"
#: Options of each set that differ from the defaults of the job.
SETTINGS: dict[str, dict[str, Any]] = {
    "shrec16": {
        "task": "classification",
        "epochs": 120,
        "constant_epochs": 60,
        "lr": 4e-4,
        "matmul": "medium",
        "threads": 1,
    },
    "princeton": {
        "task": "segmentation",
        "primal_features": "shape",
        "epochs": 60,
        "constant_epochs": 25,
        "batch_size": 4,
        "lr": 2e-3,
        "matmul": "medium",
        "threads": 1,
    },
}
#: Options that say where something is and not what was computed.
PLACES = ("data", "download", "cache", "workers", "device")


def train(name: str, options: dict[str, Any], out: Path) -> None:
    """Train what is not trained yet."""
    from pyg_pool.train import MeshJob, show_messages

    given = options if (out / "config.yaml").exists() else {**SETTINGS[name], **options}
    with show_messages(bars=False):
        MeshJob.prepare(given, out, resume=True).run()
    print((out / "results.txt").read_text(), end="")


def lines(name: str, out: Path) -> list[dict[str, Any]]:
    """Return a line for each finished run of a folder, and one for their means.

    Raises:
        ValueError: If no run of the folder is finished.
    """
    from pyg_pool.train.checkpoint import read_json, read_metrics
    from pyg_pool.train.config import read_config

    settings = read_config(out / "config.yaml")
    kept = {key: value for key, value in settings.items() if key not in PLACES}
    figures: dict[str, Any] = {"bench": "mesh_training", "row": name, "settings": kept}
    summary = out / "summary.json"
    if summary.exists():
        found = read_json(summary)
        figures["num_parameters"] = found["num_parameters"]
        figures["trained_with"] = found["versions"]
    runs = []
    for path in sorted(out.glob("*/result.json")):
        run = read_json(path)
        del run["format"], run["name"]
        seconds = (
            each["seconds"] for each in read_metrics(path.parent / "metrics.jsonl")
        )
        runs.append({**run, "seconds": round(sum(seconds), 1)})
    if not runs:
        raise ValueError(
            f"folder {str(out)!r} holds no */result.json, expected a finished run; "
            f"train it first."
        )
    found_lines = [{**figures, **run} for run in runs]
    sets = {run["dataset"] for run in runs}
    if len(sets) > 1:
        means = {
            key: fmean(run[key] for run in runs)
            for key in ("test_score", "area_weighted", "majority", "epoch_seconds")
            if runs[0][key] is not None
        }
        found_lines.append(
            {
                **figures, "dataset": f"mean of {len(sets)}", **means,
                "epochs": max(run["epochs"] for run in runs),
                "num_faces": sum(run["num_faces"] for run in runs),
                "seconds": round(sum(run["seconds"] for run in runs), 1),
            }
        )  # fmt: skip
    return found_lines


def main(words: Sequence[str] | None = None) -> int:
    """Train, and record every result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", choices=SETTINGS)
    parser.add_argument("--data", help="folder of the meshes, laid out")
    parser.add_argument("--out", type=Path, required=True, help="run folder")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--set", nargs="+", default=[], metavar="OPTION=VALUE")
    parser.add_argument("--results", type=Path, default=record.RESULTS / "meshes")
    parser.add_argument("--record-only", action="store_true")
    parser.add_argument("--commit", help="that of the training, if it was another")
    given = parser.parse_args(words)
    options: dict[str, Any] = dict(word.split("=", 1) for word in given.set)
    options |= {} if given.data is None else {"data": given.data}
    options |= {} if given.epochs is None else {"epochs": given.epochs}
    if not given.record_only:
        train(given.name, options, given.out)
    around = record.surroundings()
    around |= {} if given.commit is None else {"commit": given.commit}
    for line in lines(given.name, given.out):
        print(f"{line['dataset']}: {100 * line['test_score']:.2f} %")
        record.append(given.results / RESULTS, {**line, **around})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
