"""Training of networks on meshes: classification of meshes, segmentation of faces.

A job trains one network per seed and category, each in a folder of its own. It can be
killed at any moment and resumed. Test meshes are looked at once, when a run has ended.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pyg_pool.errors import require
from pyg_pool.mesh import FeatureScaling, PrimalDualData
from pyg_pool.models import MeshClassifier, MeshOutput, MeshSegmenter, MeshUNet
from pyg_pool.train.checkpoint import (
    finished_epochs,
    load_checkpoint,
    read_json,
    read_metrics,
    trim_metrics,
    write_atomic,
    write_json,
)
from pyg_pool.train.config import CONFIG_FILE, OptionError
from pyg_pool.train.graph_classification import (
    BEST,
    LAST,
    METRICS,
    RESULT,
    SUMMARY,
    _check_device,
    _peak_memory_mb,
    _threads,
)
from pyg_pool.train.mesh_config import (
    MeshConfig,
    mesh_options_for_run,
    write_mesh_config,
)
from pyg_pool.train.mesh_data import MeshSet, load_meshes
from pyg_pool.train.mesh_results import MeshRun, MeshSummary
from pyg_pool.train.messages import keep_messages

if TYPE_CHECKING:
    from pyg_pool.train.mesh_loop import MeshParts

__all__ = [
    "MeshJob",
    "TrainedMeshModel",
    "build_mesh_model",
    "load_mesh_model",
    "train_meshes",
]

log = logging.getLogger(__name__)

TABLE = "results.txt"
_CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")


class TrainedMeshModel(torch.nn.Module):
    """A network together with the scale of its features and the names of its labels.

    Args:
        net: Network on scaled features.
        scaling: Scale of the features, measured on the training meshes.
        config: Options that it was built with.
        class_names: Names of the labels.
    """

    def __init__(
        self,
        net: MeshClassifier | MeshSegmenter | MeshUNet,
        scaling: FeatureScaling,
        *,
        config: MeshConfig,
        class_names: Sequence[str],
    ) -> None:
        super().__init__()
        self.net = net
        self.scaling = scaling
        self.config = config
        self.class_names = list(class_names)
        self.num_faces = 0

    def forward(self, data: PrimalDualData) -> Tensor:
        """Return the scores of meshes with features as they were measured."""
        out: Tensor = self.net(self.scaling(data))
        return out

    def run(self, data: PrimalDualData) -> MeshOutput:
        """Return the scores together with the pooling steps."""
        return self.net.run(self.scaling(data))


@dataclass(frozen=True)
class MeshJob:
    """A checked job: options, data and folder, ready to run.

    Made by :meth:`prepare`, which finds everything that can be wrong with what a
    user gave; :meth:`run` does the work.
    """

    config: MeshConfig
    out: Path
    sets: list[MeshSet]

    @classmethod
    def prepare(
        cls,
        options: Mapping[str, Any],
        out: str | Path,
        *,
        resume: bool = False,
        sets: list[MeshSet] | None = None,
        progress: bool = False,
    ) -> MeshJob:
        """Check the options, load the meshes, and claim the folder.

        Args:
            options: Options by name; those left out have their default, or on a
                resume the value of the run.
            out: The run folder.
            resume: Whether a run in that folder is carried on, perhaps with more
                epochs. A folder without one is started.
            sets: Meshes to use instead of those that the options name.
            progress: Whether to show a bar while graphs are made.

        Raises:
            ValueError: If an option, the folder or the data cannot be used.
            ImportError: If an optional package is missing.
        """
        out = Path(out)
        config = mesh_options_for_run(options, out, resume=resume)
        require("lightning", "train")
        _check_device(config.device)
        if sets is None:
            sets = load_meshes(config, progress=progress)
        build_mesh_model(config, sets[0])
        write_mesh_config(config, out / CONFIG_FILE)
        return cls(config, out, sets)

    def run(self, *, progress: bool = False) -> MeshSummary:
        """Train what is not trained yet and write the results.

        Args:
            progress: Whether to show progress bars.

        Returns:
            The summary, which ``summary.json`` holds too, and ``results.txt`` as a
            table.
        """
        with (
            keep_messages(self.out / "train.log"),
            _threads(self.config.threads),
            _matmul(self.config.matmul),
        ):
            runs = tuple(
                self._one(problem, seed, progress=progress)
                for problem in self.sets
                for seed in self.config.seeds
            )
            model = build_mesh_model(self.config, self.sets[0])
            count = sum(weight.numel() for weight in model.parameters())
            summary = MeshSummary(self.out, self.config.task, runs, count)
            write_json(self.out / SUMMARY, summary.to_dict())
            write_atomic(self.out / TABLE, summary.to_text().encode())
            log.info("test score %.4f over %d run(s)", summary.test_mean, len(runs))
        return summary

    def _one(self, problem: MeshSet, seed: int, *, progress: bool) -> MeshRun:
        """Train and test one run, or read the result that it had before."""
        single = len(self.sets) == 1
        name = f"seed{seed}" if single else f"{problem.name}-seed{seed}"
        folder = self.out / name
        if (folder / RESULT).exists():
            content = read_json(folder / RESULT)
            content.pop("format")
            if content["epochs"] >= self.config.epochs:
                log.info("%s: finished before, skipped", name)
                return MeshRun(**content)
        from pyg_pool.train.loop import fit, quiet_lightning
        from pyg_pool.train.mesh_loop import make_mesh_trainer

        folder.mkdir(parents=True, exist_ok=True)
        task = self._task(problem, seed)
        with quiet_lightning():
            trainer = make_mesh_trainer(
                self.config, folder, name=name, progress=progress
            )
            last = self._where_to_resume(folder, name)
            done = finished_epochs(load_checkpoint(last)) if last else 0
            if done < self.config.epochs:
                fit(trainer, task, resume_from=last)
            # The test part is looked at here and nowhere else.
            file = LAST if self.config.evaluate == "last" else BEST
            tested = load_checkpoint(folder / file)
            task.load_state_dict(tested["state_dict"])
            trainer.test(task, verbose=False)
        result = self._result(name, problem, task, finished_epochs(tested))
        write_json(folder / RESULT, asdict(result))
        log.info("%s: test score %.4f", name, result.test_score)
        return result

    def _task(self, problem: MeshSet, seed: int) -> Any:
        """Return the network with fresh weights, and all that trains it."""
        from pyg_pool.train.loop import epoch_seed
        from pyg_pool.train.mesh_loop import MeshTask

        torch.manual_seed(epoch_seed(seed, stream="weights"))
        model = build_mesh_model(self.config, problem)
        parts = self._held_out(problem, seed)
        model.scaling.fit([*parts.train, *itertools.chain(*parts.augmented)])
        plain = {
            "mesh_config": self.config.to_dict(),
            "class_names": problem.class_names,
            "channels": [problem.train[0].x.size(1), problem.train[0].x_dual.size(1)],
            "num_faces": max(data.x.size(0) for data in parts.train),
        }
        return MeshTask(
            model,
            config=self.config,
            parts=parts,
            seed=seed,
            plain=plain,
        )

    def _held_out(self, problem: MeshSet, seed: int) -> MeshParts:
        """The meshes, with some of those for training held out for validation."""
        from pyg_pool.train.mesh_loop import MeshParts

        meshes = problem.train
        number = round(self.config.val_share * len(meshes))
        if self.config.val_share and not 0 < number < len(meshes):
            raise OptionError(
                f"option 'val_share' got {self.config.val_share} of {len(meshes)} "
                f"meshes, expected at least one on either side; change the share."
            )
        chance = torch.Generator().manual_seed(seed)
        held = set(torch.randperm(len(meshes), generator=chance)[:number].tolist())
        kept = [k for k in range(len(meshes)) if k not in held]
        train, *augmented = (
            [each[k] for k in kept] for each in (meshes, *problem.augmented)
        )
        val = [meshes[k] for k in sorted(held)]
        return MeshParts(train, val, problem.test, augmented)

    def _where_to_resume(self, folder: Path, name: str) -> Path | None:
        """Return the last checkpoint, with the epochs after it forgotten."""
        last = folder / LAST
        done = finished_epochs(load_checkpoint(last)) if last.exists() else 0
        trim_metrics(folder / METRICS, done)
        if not last.exists():
            return None
        log.info("%s: resumes after %d finished epoch(s)", name, done)
        return last

    def _result(self, name: str, problem: MeshSet, task: Any, tested: int) -> MeshRun:
        """Collect the figures of a run."""
        lines = read_metrics(self.out / name / METRICS)
        y = torch.cat([data.y for data in problem.test])
        frequent = torch.cat([data.y for data in problem.train]).bincount().argmax()
        scores = task.scores["test"]
        return MeshRun(
            name=name,
            dataset=problem.name,
            seed=task.seed,
            epochs=len(lines),
            tested_epoch=tested,
            train_loss=lines[-1]["train_loss"],
            test_score=scores["accuracy"],
            area_weighted=scores.get("area_weighted"),
            majority=float((y == frequent).double().mean()),
            num_faces=sum(data.x.size(0) for data in problem.test),
            epoch_seconds=fmean(line["seconds"] for line in lines),
            peak_memory_mb=_peak_memory_mb(),
        )


def build_mesh_model(config: MeshConfig, problem: MeshSet) -> TrainedMeshModel:
    """Return the network that a configuration names, with fresh weights.

    Args:
        config: Options of the run.
        problem: Meshes that it is to fit.
    """
    data = problem.train[0]
    widths = (data.x.size(1), data.x_dual.size(1))
    return _model(config, widths, problem.class_names)


def _model(
    config: MeshConfig, widths: tuple[int, int], class_names: Sequence[str]
) -> TrainedMeshModel:
    """The network for features of these widths."""
    kinds: dict[str, Any] = {
        "classifier": MeshClassifier,
        "segmenter": MeshSegmenter,
        "unet": MeshUNet,
    }
    extra: dict[str, Any] = {}
    if config.model == "classifier":
        extra["head_channels"] = config.head_channels
    net = kinds[config.model](
        *widths,
        len(class_names),
        channels=config.channels,
        heads=config.heads,
        num_skips=config.num_skips,
        norm=config.norm,
        norm_groups=config.norm_groups,
        fraction_to_keep=config.keep,
        reduce=config.reduce,
        config=config.graphs,
        dropout=config.dropout,
        **extra,
    )
    return TrainedMeshModel(
        net, FeatureScaling(*widths), config=config, class_names=class_names
    )


def train_meshes(
    config: MeshConfig,
    out: str | Path,
    *,
    resume: bool = False,
    progress: bool = False,
    sets: list[MeshSet] | None = None,
) -> MeshSummary:
    """Train mesh networks as a configuration says.

    Args:
        config: The options.
        out: The run folder. It gets ``config.yaml``, ``summary.json``, the same as a
            table in ``results.txt``, ``train.log`` and a folder for each run with
            ``metrics.jsonl``, ``best.ckpt``, ``last.ckpt`` and ``result.json``.
        resume: Whether to carry on a run in that folder; the options must agree, but
            there may be more epochs.
        progress: Whether to show progress bars.
        sets: Meshes to use instead of those that `config` names.

    Returns:
        Scores of all runs and their mean.

    Raises:
        ValueError: If an option, the folder or the data cannot be used.
        ImportError: If an optional package is missing.
    """
    job = MeshJob.prepare(config.to_dict(), out, resume=resume, sets=sets)
    return job.run(progress=progress)


def load_mesh_model(path: str | Path) -> TrainedMeshModel:
    """Return the trained network of a checkpoint, ready for evaluation.

    Args:
        path: ``best.ckpt`` or ``last.ckpt`` of a run.

    Raises:
        ValueError: If the file holds no mesh network of this package.
    """
    content = load_checkpoint(path)
    plain = content.get("pyg_pool", {})
    if "mesh_config" not in plain:
        raise ValueError(
            f"checkpoint {str(path)!r} has no entry 'mesh_config', expected a "
            "checkpoint of a mesh training; give last.ckpt of such a run."
        )
    config = MeshConfig.from_dict(plain["mesh_config"])
    model = _model(config, tuple(plain["channels"]), plain["class_names"])
    weights = {
        key.removeprefix("model."): value
        for key, value in content["state_dict"].items()
        if key.startswith("model.")
    }
    model.load_state_dict(weights)
    model.num_faces = int(plain["num_faces"])
    return model.eval()


@contextmanager
def _matmul(precision: str) -> Iterator[None]:
    """Use this precision in products of float32 matrices."""
    if precision != "highest":
        # oneDNN and torch's layer above it keep code and buffers for each of the last
        # 1,024 sizes of a product, and meshes come in ever new sizes: gigabytes after
        # a few epochs.
        for name in _CACHES:
            os.environ.setdefault(name, "1")
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
