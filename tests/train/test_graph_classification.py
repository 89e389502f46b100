from __future__ import annotations

import functools
import json
import logging
import operator
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from pyg_pool.train import (
    GraphDataset,
    GraphJob,
    OptionError,
    Split,
    TrainConfig,
    load_model,
    train_graphs,
)
from pyg_pool.train.checkpoint import load_checkpoint, read_json, read_metrics
from tests.train.conftest import make_dataset

ROOT = Path(__file__).resolve().parents[2]
SMALL = {
    "dataset": "rings",
    "hidden": 8,
    "levels": 2,
    "epochs": 4,
    "batch_size": 5,
    "lr": 0.01,
    "dropout": 0.3,
    "patience": 9,
    "device": "cpu",
    "threads": 1,
}

# A run that kills itself at one training batch, by the signal nobody can catch.
KILLED = """
import json, os, signal, sys
from dataclasses import dataclass
sys.path[:0] = [{root!r}, {tests!r}]
from conftest import make_dataset
from pyg_pool.train import GraphDataset, TrainConfig, train_graphs

dataset, seen = make_dataset(), 0
loss = dataset.loss

def deadly(y_pred, y_true):
    global seen
    seen += y_pred.requires_grad
    if seen == {batch}:
        os.kill(os.getpid(), signal.SIGKILL)
    return loss(y_pred, y_true)

object.__setattr__(dataset, "loss", deadly)
config = TrainConfig.from_dict(json.loads({options!r}))
train_graphs(config, {out!r}, dataset=dataset)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was killed in the middle of its third epoch."""
    out = tmp_path_factory.mktemp("killed") / "run"
    # Twenty training graphs are four batches: the tenth is in the third epoch.
    program = KILLED.format(
        root=str(ROOT),
        tests=str(Path(__file__).parent),
        batch=10,
        options=json.dumps(SMALL),
        out=str(out),
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    lines = read_metrics(out / "seed0/metrics.jsonl")
    assert [line["epoch"] for line in lines] == [0, 1]
    return out


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the same run, uninterrupted."""
    out = tmp_path_factory.mktemp("whole")
    train_graphs(TrainConfig.from_dict(SMALL), out, dataset=make_dataset())
    return out


def numbers_of(folder: Path) -> dict[str, Any]:
    """All that must not depend on a kill: everything but times and memory."""
    result = read_json(folder / "result.json")
    lines = read_metrics(folder / "metrics.jsonl")
    for timed in (result, *lines):
        for key in ("epoch_seconds", "peak_memory_mb", "seconds"):
            timed.pop(key, None)
    return {"result": result, "lines": lines}


def assert_same_weights(a: Path, b: Path) -> None:
    for name in ("best.ckpt", "last.ckpt"):
        first, second = load_checkpoint(a / name), load_checkpoint(b / name)
        assert first["state_dict"].keys() == second["state_dict"].keys()
        for key, value in first["state_dict"].items():
            assert torch.equal(value, second["state_dict"][key]), (name, key)
        moments = [
            [s["exp_avg"] for s in c["optimizer_states"][0]["state"].values()]
            for c in (first, second)
        ]
        assert all(map(torch.equal, *moments))


def test_killed_run_resumes_to_the_same_numbers(
    killed: Path, whole: Path, tmp_path: Path, rings: GraphDataset
) -> None:
    # The copy shows at once that a run folder may be moved.
    out = tmp_path / "moved"
    shutil.copytree(killed, out)
    train_graphs(TrainConfig.from_dict(SMALL), out, resume=True, dataset=rings)
    assert numbers_of(out / "seed0") == numbers_of(whole / "seed0")
    assert_same_weights(out / "seed0", whole / "seed0")
    log = (out / "train.log").read_text()
    assert "seed0: resumes after 2 finished epoch(s)" in log
    for epoch in range(1, 5):
        assert log.count(f"seed0: epoch {epoch},") == 1
    assert not (killed / "seed0/result.json").exists()


def test_epochs_draw_their_own_numbers(tmp_path: Path) -> None:
    # Otherwise the test above could pass with a constant order and dropout.
    from pyg_pool.train.loop import EpochBatches, epoch_seed

    seeds = {
        epoch_seed(3, epoch=e, stream=s) for e in (0, 1) for s in ("order", "dropout")
    }
    assert len(seeds) == 4
    orders = [list(EpochBatches(20, 5, seed=s)) for s in sorted(seeds)[:2]]
    assert orders[0] != orders[1]
    assert sorted(functools.reduce(operator.iadd, orders[0], [])) == list(range(20))


def test_lines_after_the_last_checkpoint_are_dropped(
    killed: Path, whole: Path, tmp_path: Path, rings: GraphDataset
) -> None:
    out = tmp_path / "run"
    shutil.copytree(killed, out)
    # As if the kill had come between the line of an epoch and its checkpoint.
    with (out / "seed0/metrics.jsonl").open("a") as file:
        file.write('{"epoch": 2, "val_score": 9.0}\n{"epoch": 3, "val')
    train_graphs(TrainConfig.from_dict(SMALL), out, resume=True, dataset=rings)
    assert numbers_of(out / "seed0") == numbers_of(whole / "seed0")


def test_run_stopped_early_is_not_trained_further(
    rings: GraphDataset, tmp_path: Path
) -> None:
    options = {**SMALL, "model": "gcn", "lr": 1e-7, "patience": 1, "epochs": 50}
    config = TrainConfig.from_dict(options)
    summary = train_graphs(config, tmp_path, dataset=rings)
    epochs = summary.runs[0].epochs
    assert epochs < 50
    # As if the kill had come after the last epoch, before the test.
    (tmp_path / "seed0/result.json").unlink()
    again = train_graphs(config, tmp_path, resume=True, dataset=rings)
    assert again.runs[0].epochs == epochs
    assert again.runs[0].test_score == summary.runs[0].test_score


def test_finished_runs_are_skipped(
    rings: GraphDataset, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = TrainConfig.from_dict({**SMALL, "model": "gcn", "seeds": [0, 1]})
    first = train_graphs(config, tmp_path, dataset=rings)
    (tmp_path / "seed1/result.json").unlink()
    before = (tmp_path / "seed0/last.ckpt").stat().st_mtime_ns
    with caplog.at_level(logging.INFO, "pyg_pool.train"):
        second = train_graphs(config, tmp_path, resume=True, dataset=rings)
    assert "seed0: finished before, skipped" in caplog.messages
    assert (tmp_path / "seed0/last.ckpt").stat().st_mtime_ns == before
    assert [run.test_score for run in second.runs] == [
        run.test_score for run in first.runs
    ]


def test_existing_run_needs_resume(rings: GraphDataset, tmp_path: Path) -> None:
    GraphJob.prepare(SMALL, tmp_path, dataset=rings)
    with pytest.raises(OptionError, match=r"already holds a run .* --resume"):
        GraphJob.prepare(SMALL, tmp_path, dataset=rings)


def test_resume_names_changed_options(rings: GraphDataset, tmp_path: Path) -> None:
    GraphJob.prepare(SMALL, tmp_path, dataset=rings)
    changed = {"lr": 0.5, "workers": 1, "hidden": 8}
    with pytest.raises(OptionError, match=r"lr \(0\.01 in the folder, 0\.5 now\); exp"):
        GraphJob.prepare(changed, tmp_path, resume=True, dataset=rings)
    job = GraphJob.prepare({"workers": 1}, tmp_path, resume=True, dataset=rings)
    assert job.config.lr == 0.01
    assert job.config.workers == 1


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_other_tasks(task: str, tmp_path: Path) -> None:
    dataset = make_dataset(task=task)
    dataset.graphs.y[3] = float("nan")
    config = TrainConfig.from_dict({**SMALL, "model": "gin", "epochs": 2})
    summary = train_graphs(config, tmp_path, dataset=dataset)
    assert summary.metric == dataset.metric
    lines = read_metrics(tmp_path / "seed0/metrics.jsonl")
    assert [line["epoch"] for line in lines] == [0, 1]
    assert all(line["train_loss"] > 0 for line in lines)


def test_folder_holds_what_is_promised(rings: GraphDataset, tmp_path: Path) -> None:
    summary = train_graphs(TrainConfig.from_dict(SMALL), tmp_path, dataset=rings)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "config.yaml",
        "curves.png",
        "levels.png",
        "seed0",
        "summary.json",
        "train.log",
    }
    runs = {path.name for path in (tmp_path / "seed0").iterdir()}
    assert runs == {"best.ckpt", "last.ckpt", "metrics.jsonl", "result.json"}
    content = read_json(tmp_path / "summary.json")
    assert content["test"] == {"mean": summary.test_mean, "deviation": 0.0}
    assert content["num_parameters"] == summary.num_parameters > 0
    assert content["peak_memory_mb"] > 1
    assert content["epoch_seconds"] > 0
    assert "torch" in content["versions"]
    for picture in summary.pictures:
        assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_test_score_belongs_to_the_best_epoch(
    rings: GraphDataset, tmp_path: Path
) -> None:
    validation = [0.25, 0.75, 0.5]
    scripted = iter(validation)

    def evaluate(y_true: torch.Tensor, y_pred: torch.Tensor) -> float:
        # A score that tells apart any two models, once validation is over.
        return next(scripted, float(y_pred.double().mean()))

    object.__setattr__(rings, "evaluate", evaluate)
    config = TrainConfig.from_dict({**SMALL, "model": "gcn", "epochs": 3, "lr": 0.05})
    run = train_graphs(config, tmp_path, dataset=rings).runs[0]
    assert (run.best_epoch, run.epochs, run.val_score) == (2, 3, 0.75)
    scores = []
    for name in ("best", "last"):
        model = load_model(tmp_path / f"seed0/{name}.ckpt")
        with torch.no_grad():
            output, _ = model(rings.part("test").batch())
        scores.append(float(output.double().mean()))
    assert run.test_score == pytest.approx(scores[0], abs=1e-6)
    assert run.test_score != pytest.approx(scores[1], abs=1e-3)


def test_deviation_over_seeds_and_splits(tmp_path: Path) -> None:
    first = make_dataset()
    order = torch.arange(40)
    second = Split(order[20:], order[:10], order[10:20], "other")
    object.__setattr__(first, "splits", (*first.splits, second))
    config = TrainConfig.from_dict({**SMALL, "model": "gcn", "epochs": 1, "seeds": 2})
    summary = train_graphs(config, tmp_path, dataset=first)
    assert [run.name for run in summary.runs] == [
        "seed0-fold0",
        "seed0-fold1",
        "seed1-fold0",
        "seed1-fold1",
    ]
    scores = torch.tensor([run.test_score for run in summary.runs]).double()
    assert summary.test_mean == pytest.approx(float(scores.mean()))
    assert summary.test_deviation == pytest.approx(float(scores.std(correction=0)))


def test_missing_device_is_refused(rings: GraphDataset, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="got 'cuda:77', expected a device"):
        GraphJob.prepare({**SMALL, "device": "cuda:77"}, tmp_path, dataset=rings)
    assert not any(tmp_path.iterdir())


def test_unknown_names_are_refused_before_any_data_are_read(tmp_path: Path) -> None:
    absent = {**SMALL, "dataset": "PROTEINS", "root": str(tmp_path / "absent")}
    for option in ("pool", "conv"):
        with pytest.raises(OptionError, match=f"'{option}' got 'nothing like it'"):
            GraphJob.prepare({**absent, option: "nothing like it"}, tmp_path / "run")
    with pytest.raises(FileNotFoundError):
        GraphJob.prepare(absent, tmp_path / "run")


def test_empty_part_is_refused(rings: GraphDataset, tmp_path: Path) -> None:
    bad = Split(rings.split.train, rings.split.val[:0], rings.split.test, "bad")
    object.__setattr__(rings, "splits", (bad,))
    with pytest.raises(OptionError, match="no graph in part 'val'"):
        GraphJob.prepare(SMALL, tmp_path, dataset=rings)


def test_other_checkpoints_are_refused(tmp_path: Path) -> None:
    torch.save({"state_dict": {}}, tmp_path / "a.ckpt")
    with pytest.raises(ValueError, match="no entry 'pyg_pool'"):
        load_model(tmp_path / "a.ckpt")
