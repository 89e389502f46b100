"""Training of graph classifiers and regressors: one job of one or more runs.

A job trains one model per seed and split, each in a folder of its own, and writes
what came out. It can be killed at any moment and resumed: runs that had finished are
skipped, and the one that was under way goes on after its last whole epoch.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

import torch

from pyg_pool.errors import require
from pyg_pool.train.architectures import (
    GraphFeatures,
    GraphModel,
    build_model,
    check_names,
)
from pyg_pool.train.checkpoint import (
    finished_epochs,
    is_done,
    load_checkpoint,
    read_json,
    read_metrics,
    trim_metrics,
    write_json,
)
from pyg_pool.train.config import (
    CONFIG_FILE,
    OptionError,
    TrainConfig,
    options_for_run,
    write_config,
)
from pyg_pool.train.data import GraphDataset, load_dataset
from pyg_pool.train.messages import keep_messages
from pyg_pool.train.plots import draw_curves, draw_levels, save_figure
from pyg_pool.train.versions import versions

if TYPE_CHECKING:
    from pyg_pool.train.loop import GraphTask

__all__ = ["GraphJob", "JobSummary", "RunResult", "load_model", "train_graphs"]

log = logging.getLogger(__name__)

RESULT, METRICS, SUMMARY = "result.json", "metrics.jsonl", "summary.json"
BEST, LAST = "best.ckpt", "last.ckpt"


@dataclass(frozen=True)
class RunResult:
    """What one run gave.

    Args:
        name: Name of the run and of its folder.
        seed: Its seed.
        fold: Number of its split.
        best_epoch: Epoch of the best validation score, counted from 1.
        epochs: Epochs that were trained.
        val_score: Validation score of the best epoch.
        test_score: Test score of the best epoch.
        epoch_seconds: Mean time of an epoch, in seconds.
        peak_memory_mb: Largest memory so far, of the device or else of the process,
            in 10^6 bytes.
    """

    name: str
    seed: int
    fold: int
    best_epoch: int
    epochs: int
    val_score: float | None
    test_score: float | None
    epoch_seconds: float
    peak_memory_mb: float


@dataclass(frozen=True)
class JobSummary:
    """What a job gave, over all its runs.

    Args:
        out: The folder.
        dataset: Name of the data set.
        metric: Name of the score.
        runs: One result for each run.
        num_parameters: Number of weights of the model.
        majority: Test score of the best constant answer, mean over splits.
        pictures: Files with pictures.
    """

    out: Path
    dataset: str
    metric: str
    runs: tuple[RunResult, ...]
    num_parameters: int
    majority: float
    pictures: tuple[Path, ...]

    @property
    def test_mean(self) -> float:
        """Mean test score over the runs."""
        return _mean_and_deviation([run.test_score for run in self.runs])[0]

    @property
    def test_deviation(self) -> float:
        """Standard deviation of the test score over the runs."""
        return _mean_and_deviation([run.test_score for run in self.runs])[1]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as ``summary.json`` holds them."""
        scores = {}
        for part in ("test", "val"):
            values = [getattr(run, f"{part}_score") for run in self.runs]
            mean, deviation = _mean_and_deviation(values)
            scores[part] = {"mean": mean, "deviation": deviation}
        return {
            "dataset": self.dataset,
            "metric": self.metric,
            **scores,
            "majority": self.majority,
            "epoch_seconds": fmean(run.epoch_seconds for run in self.runs),
            "peak_memory_mb": max(run.peak_memory_mb for run in self.runs),
            "num_parameters": self.num_parameters,
            "runs": [asdict(run) for run in self.runs],
            "versions": versions(),
        }


@dataclass(frozen=True)
class GraphJob:
    """A checked job: options, data and folder, ready to run.

    Made by :meth:`prepare`, which finds everything that can be wrong with what a
    user gave; :meth:`run` does the work.
    """

    config: TrainConfig
    out: Path
    dataset: GraphDataset
    features: GraphFeatures
    num_parameters: int

    @classmethod
    def prepare(
        cls,
        options: Mapping[str, Any],
        out: str | Path,
        *,
        resume: bool = False,
        dataset: GraphDataset | None = None,
    ) -> GraphJob:
        """Check the options, load the data, and claim the folder.

        Args:
            options: Options by name; those left out have their default, or on a
                resume the value of the run.
            out: The run folder.
            resume: Whether a run in that folder is carried on. A folder without one
                is started, so that a repeated command needs no change.
            dataset: Data to use instead of loading the set that the options name.

        Raises:
            ValueError: If an option, the folder or the data cannot be used.
            FileNotFoundError: If data are missing.
            ImportError: If an optional package is missing.
        """
        out = Path(out)
        config = options_for_run(options, out, resume=resume)
        require("lightning", "train")
        _check_device(config.device)
        check_names(config)
        if dataset is None:
            dataset = load_dataset(
                config.dataset,
                config.root,
                folds=config.folds or None,
                split_file=config.split_file,
            )
        _check_parts(dataset)
        features = GraphFeatures.of(dataset)
        model = build_model(config, features)
        count = sum(weight.numel() for weight in model.parameters())
        write_config(config, out / CONFIG_FILE)
        return cls(config, out, dataset, features, count)

    def run(self, *, progress: bool = False) -> JobSummary:
        """Train what is not trained yet and write the results.

        Args:
            progress: Whether to show progress bars.

        Returns:
            The summary, which ``summary.json`` holds too.
        """
        with keep_messages(self.out / "train.log"), _threads(self.config.threads):
            names = self._names()
            log.info("%s: %d run(s) in %s", self.config.dataset, len(names), self.out)
            results = tuple(
                self._one(name, seed, fold, progress=progress)
                for name, (seed, fold) in names.items()
            )
            summary = self._summary(results)
            write_json(self.out / SUMMARY, summary.to_dict())
            log.info(
                "test %s %.4f (deviation %.4f over %d run(s))",
                summary.metric,
                summary.test_mean,
                summary.test_deviation,
                len(results),
            )
        return summary

    def _names(self) -> dict[str, tuple[int, int]]:
        """Return seed and split of each run, by its name."""
        count = len(self.dataset.splits)
        return {
            f"seed{seed}" + (f"-fold{fold}" if count > 1 else ""): (seed, fold)
            for seed in self.config.seeds
            for fold in range(count)
        }

    def _one(self, name: str, seed: int, fold: int, *, progress: bool) -> RunResult:
        """Train and test one run, or read the result that it had before."""
        folder = self.out / name
        if (folder / RESULT).exists():
            log.info("%s: finished before, skipped", name)
            content = read_json(folder / RESULT)
            content.pop("format")
            return RunResult(**content)
        # Lightning is imported here: the rest works without it.
        from pyg_pool.train.loop import fit, make_trainer, quiet_lightning

        folder.mkdir(parents=True, exist_ok=True)
        task = self._task(seed, fold)
        with quiet_lightning():
            trainer = make_trainer(
                self.config,
                folder,
                name=name,
                greater_is_better=self.dataset.greater_is_better,
                progress=progress,
            )
            resume_from = self._where_to_resume(folder, name)
            if torch.cuda.is_available():
                torch.cuda.reset_peak_memory_stats()
            if resume_from is None or not self._is_done(resume_from):
                fit(trainer, task, resume_from=resume_from)
            # The test part is looked at here and nowhere else.
            best = load_checkpoint(folder / BEST)
            task.load_state_dict(best["state_dict"])
            trainer.test(task, verbose=False)
        result = self._result(name, task, finished_epochs(best))
        write_json(folder / RESULT, asdict(result))
        log.info(
            "%s: best epoch %d of %d, validation %.4f, test %.4f",
            name,
            result.best_epoch,
            result.epochs,
            _or_nan(result.val_score),
            _or_nan(result.test_score),
        )
        return result

    def _task(self, seed: int, fold: int) -> GraphTask:
        """Return the model with fresh weights, and all that trains it."""
        from pyg_pool.train.loop import GraphTask, epoch_seed

        torch.manual_seed(epoch_seed(seed, fold=fold, stream="weights"))
        return GraphTask(
            build_model(self.config, self.features),
            config=self.config,
            dataset=self.dataset,
            seed=seed,
            fold=fold,
            plain={
                "config": self.config.to_dict(),
                "features": self.features.to_dict(),
            },
        )

    def _where_to_resume(self, folder: Path, name: str) -> Path | None:
        """Return the last checkpoint, with the epochs after it forgotten."""
        last = folder / LAST
        done = finished_epochs(load_checkpoint(last)) if last.exists() else 0
        dropped = trim_metrics(folder / METRICS, done)
        if not last.exists():
            return None
        log.info(
            "%s: resumes after %d finished epoch(s)%s",
            name,
            done,
            f", {dropped} unfinished line(s) dropped" if dropped else "",
        )
        return last

    def _is_done(self, last: Path) -> bool:
        """Tell whether the run of a checkpoint needs no further epoch."""
        return is_done(
            load_checkpoint(last),
            epochs=self.config.epochs,
            patience=self.config.patience,
        )

    def _result(self, name: str, task: GraphTask, best_epoch: int) -> RunResult:
        """Collect the figures of a run."""
        lines = read_metrics(self.out / name / METRICS)
        return RunResult(
            name=name,
            seed=task.seed,
            fold=task.fold,
            best_epoch=best_epoch,
            epochs=len(lines),
            val_score=lines[best_epoch - 1]["val_score"],
            test_score=task.scores["test"],
            epoch_seconds=fmean(line["seconds"] for line in lines),
            peak_memory_mb=_peak_memory_mb(),
        )

    def _summary(self, results: tuple[RunResult, ...]) -> JobSummary:
        """Draw the pictures and put everything together."""
        curves = {
            run.name: read_metrics(self.out / run.name / METRICS) for run in results
        }
        title = f"{self.config.dataset}: {self.config.model}"
        figure = draw_curves(
            curves,
            metric=self.dataset.metric,
            greater_is_better=self.dataset.greater_is_better,
            title=title,
        )
        pictures = [self.out / "curves.png"]
        save_figure(figure, pictures[0])
        model = load_model(self.out / results[0].name / BEST)
        if model.is_pooled:
            test = self.dataset.splits[results[0].fold].test
            figure = draw_levels(model, self.dataset, _to_show(self.dataset, test))
            pictures.append(self.out / "levels.png")
            save_figure(figure, pictures[1])
        count = len(self.dataset.splits)
        return JobSummary(
            out=self.out,
            dataset=self.config.dataset,
            metric=self.dataset.metric,
            runs=results,
            num_parameters=self.num_parameters,
            majority=fmean(self.dataset.majority_baseline(k) for k in range(count)),
            pictures=tuple(pictures),
        )


def train_graphs(
    config: TrainConfig,
    out: str | Path,
    *,
    resume: bool = False,
    progress: bool = False,
    dataset: GraphDataset | None = None,
) -> JobSummary:
    """Train graph models as a configuration says.

    Args:
        config: The options.
        out: The run folder. It gets ``config.yaml``, ``summary.json``, ``train.log``,
            pictures, and a folder for each run with ``metrics.jsonl``, ``best.ckpt``,
            ``last.ckpt`` and ``result.json``.
        resume: Whether to carry on a run in that folder; the options must agree.
        progress: Whether to show progress bars.
        dataset: Data to use instead of loading the set that `config` names.

    Returns:
        Scores of all runs, their mean and deviation.

    Raises:
        ValueError: If an option, the folder or the data cannot be used.
        FileNotFoundError: If data are missing.
        ImportError: If an optional package is missing.
    """
    job = GraphJob.prepare(config.to_dict(), out, resume=resume, dataset=dataset)
    return job.run(progress=progress)


def load_model(path: str | Path) -> GraphModel:
    """Return the trained model of a checkpoint, ready for evaluation.

    Args:
        path: ``best.ckpt`` or ``last.ckpt`` of a run.

    Raises:
        ValueError: If the file holds no model of this package.
    """
    content = load_checkpoint(path)
    if "pyg_pool" not in content:
        raise ValueError(
            f"checkpoint {str(path)!r} has no entry 'pyg_pool', expected a checkpoint "
            "of a training run of this package; give best.ckpt of such a run."
        )
    plain = content["pyg_pool"]
    config = TrainConfig.from_dict(plain["config"])
    model = build_model(config, GraphFeatures(**plain["features"]))
    prefix = "model."
    weights = {
        key.removeprefix(prefix): value
        for key, value in content["state_dict"].items()
        if key.startswith(prefix)
    }
    model.load_state_dict(weights)
    return model.eval()


def _check_device(device: str) -> None:
    """Refuse a device that is not there."""
    kind, _, index = device.partition(":")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    missing = kind == "cuda" and int(index or 0) >= count
    if missing or (kind == "mps" and not torch.backends.mps.is_available()):
        raise OptionError(
            f"option 'device' got {device!r}, expected a device that torch can use "
            f"({count} CUDA device(s) here); choose 'auto' or 'cpu', or install torch "
            "for your accelerator."
        )


def _check_parts(dataset: GraphDataset) -> None:
    """Refuse splits with an empty part."""
    for split in dataset.splits:
        for part in ("train", "val", "test"):
            if len(split[part]) == 0:
                raise OptionError(
                    f"data set {dataset.name!r} has no graph in part {part!r} of "
                    f"{split!r}, expected at least one; use another split."
                )


def _to_show(dataset: GraphDataset, test: torch.Tensor) -> int:
    """Choose the test graph to draw: easy to look at, with various nodes."""
    sizes = dataset.graphs.num_nodes[test]
    fits = test[(sizes >= 10) & (sizes <= 18)][:200].tolist()
    if not fits:
        return int(test[(sizes - 14).abs().argmin()])
    # The first column of molecules is the element.
    kinds = [len(dataset.graphs[i].x[:, 0].unique()) for i in fits]
    return int(fits[kinds.index(max(kinds))])


def _peak_memory_mb() -> float:
    """Return the largest memory of the device, or of the process."""
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        return torch.cuda.max_memory_allocated() / 1e6
    # Not on every system, so not at the top.
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in KiB, macOS in bytes.
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def _mean_and_deviation(values: list[float | None]) -> tuple[float, float]:
    """Return mean and population deviation; NaN where a score is undefined."""
    numbers = [_or_nan(value) for value in values]
    return fmean(numbers), pstdev(numbers)


def _or_nan(value: float | None) -> float:
    """Return a number for a score that JSON had to leave out."""
    return float("nan") if value is None else value


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Use this many CPU threads; 0 leaves the number as it is."""
    before = torch.get_num_threads()
    if count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
