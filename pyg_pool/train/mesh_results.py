"""What mesh training gave: one result a run, and a table of all categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from pyg_pool.train.versions import versions

__all__ = ["MeshCategory", "MeshRun", "MeshSummary"]


@dataclass(frozen=True)
class MeshRun:
    """What one run gave.

    Args:
        name: Name of the run and of its folder.
        dataset: Name of the problem.
        seed: Its seed.
        epochs: Epochs that were trained.
        tested_epoch: Epoch whose weights were tested, counted from 1.
        train_loss: Training loss of the last epoch.
        test_score: Accuracy on the test meshes, or on their faces.
        area_weighted: The same by area; :obj:`None` for classification.
        majority: Test score of the most frequent label.
        num_faces: Faces of the test meshes.
        epoch_seconds: Mean time of an epoch, in seconds.
        peak_memory_mb: Largest memory so far, in 10^6 bytes.
    """

    name: str
    dataset: str
    seed: int
    epochs: int
    tested_epoch: int
    train_loss: float
    test_score: float
    area_weighted: float | None
    majority: float
    num_faces: int
    epoch_seconds: float
    peak_memory_mb: float


@dataclass(frozen=True)
class MeshCategory:
    """The runs on one category, or on one classification problem.

    Args:
        name: Its name.
        seeds: Number of runs.
        epochs: Epochs of a run.
        num_faces: Faces of the test meshes.
        test_score: Mean accuracy on the test meshes, or on their faces.
        deviation: Standard deviation of it over the runs.
        area_weighted: The mean by area; :obj:`None` for classification.
        majority: Mean test score of the most frequent label.
        epoch_seconds: Mean time of an epoch, in seconds.
    """

    name: str
    seeds: int
    epochs: int
    num_faces: int
    test_score: float
    deviation: float
    area_weighted: float | None
    majority: float
    epoch_seconds: float

    @classmethod
    def of(cls, runs: Sequence[MeshRun]) -> MeshCategory:
        """Bring the runs of all seeds together."""
        scores = [run.test_score for run in runs]
        areas = [run.area_weighted for run in runs if run.area_weighted is not None]
        return cls(
            name=runs[0].dataset,
            seeds=len(runs),
            epochs=max(run.epochs for run in runs),
            num_faces=runs[0].num_faces,
            test_score=fmean(scores),
            deviation=pstdev(scores),
            area_weighted=fmean(areas) if areas else None,
            majority=fmean(run.majority for run in runs),
            epoch_seconds=fmean(run.epoch_seconds for run in runs),
        )


@dataclass(frozen=True)
class MeshSummary:
    """What a job gave, over all its runs.

    Args:
        out: The folder.
        task: ``"classification"`` or ``"segmentation"``.
        runs: One result for each run.
        num_parameters: Number of weights of the first network.
    """

    out: Path
    task: str
    runs: tuple[MeshRun, ...]
    num_parameters: int

    @property
    def test_mean(self) -> float:
        """Mean test score over the runs, thus over the categories."""
        return fmean(run.test_score for run in self.runs)

    @property
    def categories(self) -> tuple[MeshCategory, ...]:
        """A row for each category, in the order of the runs."""
        names = dict.fromkeys(run.dataset for run in self.runs)
        return tuple(
            MeshCategory.of([run for run in self.runs if run.dataset == name])
            for name in names
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as ``summary.json`` holds them."""
        scores = [run.test_score for run in self.runs]
        areas = [
            run.area_weighted for run in self.runs if run.area_weighted is not None
        ]
        return {
            "task": self.task,
            "test": {"mean": fmean(scores), "deviation": pstdev(scores)},
            "area_weighted": fmean(areas) if areas else None,
            "majority": fmean(run.majority for run in self.runs),
            "num_parameters": self.num_parameters,
            "categories": [asdict(row) for row in self.categories],
            "runs": [asdict(run) for run in self.runs],
            "versions": versions(),
        }

    def to_text(self) -> str:
        """Return the table of ``results.txt``: a row a category, and their mean."""
        lines = [_HEADS, *(_cells(row) for row in self.categories)]
        if len(lines) > 2:
            lines.append(self._mean())
        kept = [
            k
            for k, head in enumerate(_HEADS)
            if (head != "by area" or self.task == "segmentation")
            and (head != "+-" or any(row.seeds > 1 for row in self.categories))
        ]
        widths = [max(len(line[k]) for line in lines) for k in kept]
        what = "faces" if self.task == "segmentation" else "meshes"
        epochs = sorted({run.tested_epoch for run in self.runs})
        text = [
            f"{self.task}: share of right {what} of the test, in percent",
            f"weights of epoch {', '.join(map(str, epochs))}; "
            f"{self.num_parameters:,} weights",
            "",
        ]
        for line in lines:
            cells = [
                f"{line[k]:<{w}}" if k == 0 else f"{line[k]:>{w}}"
                for k, w in zip(kept, widths, strict=True)
            ]
            text.append("  ".join(cells).rstrip())
        return "\n".join(text) + "\n"

    def _mean(self) -> tuple[str, ...]:
        """Last line of the table: every category weighs the same."""
        rows = self.categories
        areas = [row.area_weighted for row in rows if row.area_weighted is not None]
        return _cells(
            MeshCategory(
                name=f"mean of {len(rows)}",
                seeds=min(row.seeds for row in rows),
                epochs=max(row.epochs for row in rows),
                num_faces=sum(row.num_faces for row in rows),
                test_score=fmean(row.test_score for row in rows),
                deviation=fmean(row.deviation for row in rows),
                area_weighted=fmean(areas) if areas else None,
                majority=fmean(row.majority for row in rows),
                epoch_seconds=fmean(row.epoch_seconds for row in rows),
            )
        )


_HEADS = (
    "category", "accuracy", "+-", "by area", "majority", "faces", "seeds", "epochs",
    "s/epoch",
)  # fmt: skip


def _cells(row: MeshCategory) -> tuple[str, ...]:
    """A row of the table, in the order of its heads."""
    area = "" if row.area_weighted is None else f"{100 * row.area_weighted:.2f}"
    return (
        row.name, f"{100 * row.test_score:.2f}", f"{100 * row.deviation:.2f}", area,
        f"{100 * row.majority:.2f}", f"{row.num_faces:,}", str(row.seeds),
        str(row.epochs), f"{row.epoch_seconds:.2f}",
    )  # fmt: skip
