"""The demonstration: a pooling classifier beside a plain one, on real molecules.

Both models get the same number of epochs, batch size, width and early choice of the
best epoch. These settings were chosen on the validation part of the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyg_pool.train.data import load_dataset
from pyg_pool.train.graph_classification import GraphJob, JobSummary

__all__ = ["Demo", "DemoResult", "DemoRow"]

#: What both models share.
SHARED: dict[str, Any] = {
    "dataset": "solubility",
    "hidden": 64,
    "levels": 3,
    "epochs": 60,
    "batch_size": 32,
    "lr": 0.003,
    "dropout": 0.2,
    "device": "cpu",
    # Batches this small gain nothing from a second thread.
    "threads": 1,
}
#: What makes the two models: name in the table, folder, options.
MODELS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "hierarchical classifier, gPool",
        "hierarchical",
        {
            "model": "hierarchical",
            "pool": "gpool",
            "ratio": 0.8,
            # The size of a molecule matters to its solubility, and sums tell it.
            "readout": "mean,max,sum",
        },
    ),
    ("GCN, mean readout", "gcn", {"model": "gcn", "readout": "mean"}),
)


@dataclass(frozen=True)
class DemoRow:
    """One line of the table of the demonstration.

    Args:
        name: What was trained.
        val_score: Validation accuracy of the best epoch.
        test_score: Test accuracy of that epoch.
        num_parameters: Number of weights.
        seconds: Time of the training, in seconds.
    """

    name: str
    val_score: float
    test_score: float
    num_parameters: int
    seconds: float


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration gave.

    Args:
        rows: One for each model.
        majority: Test accuracy of always answering the most frequent class.
        pictures: The files to look at.
    """

    rows: tuple[DemoRow, ...]
    majority: float
    pictures: tuple[Path, ...]


@dataclass(frozen=True)
class Demo:
    """A checked demonstration, ready to run.

    Args:
        jobs: The job of each model, by the name in the table.
    """

    jobs: dict[str, GraphJob]

    @classmethod
    def prepare(cls, out: str | Path, *, epochs: int | None = None) -> Demo:
        """Check the installation, load the data and claim the folder.

        Args:
            out: Folder with a run folder for each model. A demonstration that was
                broken off goes on; one that was finished is only read.
            epochs: Other number of epochs, for a quick look.

        Raises:
            ImportError: If an optional package is missing.
            ValueError: If the folder holds other runs.
        """
        dataset = load_dataset(SHARED["dataset"])
        changed = {} if epochs is None else {"epochs": epochs}
        return cls(
            {
                name: GraphJob.prepare(
                    {**SHARED, **own, **changed},
                    Path(out, folder),
                    resume=True,
                    dataset=dataset,
                )
                for name, folder, own in MODELS
            }
        )

    def run(self, *, progress: bool = False) -> DemoResult:
        """Train both models on the solubility of molecules: about a minute.

        Args:
            progress: Whether to show progress bars.
        """
        summaries = {
            name: job.run(progress=progress) for name, job in self.jobs.items()
        }
        return DemoResult(
            rows=tuple(_row(name, each) for name, each in summaries.items()),
            majority=max(each.majority for each in summaries.values()),
            pictures=tuple(p for each in summaries.values() for p in each.pictures),
        )


def _row(name: str, summary: JobSummary) -> DemoRow:
    """Return the line of one model."""
    run = summary.runs[0]
    return DemoRow(
        name=name,
        val_score=float(run.val_score or 0.0),
        test_score=float(run.test_score or 0.0),
        num_parameters=summary.num_parameters,
        seconds=run.epoch_seconds * run.epochs,
    )
