"""Jobs on meshes: what they learn, write, and carry on after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from pyg_pool.mesh import generate_shape, primal_dual_graph
from pyg_pool.train import (
    MeshConfig,
    MeshJob,
    OptionError,
    load_mesh_model,
    train_meshes,
)
from pyg_pool.train.checkpoint import load_checkpoint, read_json, read_metrics
from pyg_pool.train.mesh_segmentation import _matmul
from tests.train.mesh_runs import PARTS, SMALL, make_classes, make_parts

pytest.importorskip("lightning")
ROOT = Path(__file__).resolve().parents[2]

# A run that kills itself at one training batch, by the signal nobody can catch.
KILLED = """
import json, os, signal, sys
sys.path.insert(0, {root!r})
from tests.train.mesh_runs import make_classes
from pyg_pool.train import MeshConfig, mesh_loop, train_meshes

seen, loss = 0, mesh_loop.mesh_loss

def deadly(scores, *others, **options):
    global seen
    seen += scores.requires_grad
    if seen == 8:  # three batches an epoch: in the third
        os.kill(os.getpid(), signal.SIGKILL)
    return loss(scores, *others, **options)

mesh_loop.mesh_loss = deadly
config = MeshConfig.from_dict(json.loads({options!r}))
train_meshes(config, {out!r}, sets=[make_classes()])
"""


def classes(out: Path, resume: bool = False, **options: Any) -> Any:
    config = MeshConfig.from_dict({**SMALL, **options})
    return train_meshes(config, out, resume=resume, sets=[make_classes()])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a classification that was not interrupted."""
    out = tmp_path_factory.mktemp("whole")
    classes(out)
    return out


# The meshes come in two versions, so the draw of each epoch is resumed as well.
def test_killed_run_ends_with_the_same_numbers(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    program = KILLED.format(root=str(ROOT), options=json.dumps(SMALL), out=str(out))
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
    classes(out, resume=True)
    for folder in (whole, out):
        lines = read_metrics(folder / "seed0/metrics.jsonl")
        assert [line["epoch"] for line in lines] == [0, 1, 2, 3]
    for name in ("best.ckpt", "last.ckpt"):
        first, second = (
            load_checkpoint(folder / "seed0" / name)["state_dict"]
            for folder in (whole, out)
        )
        for key, value in first.items():
            assert torch.equal(value, second[key]), (name, key)


def test_a_finished_run_takes_more_epochs(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    classes(out, epochs=2)
    before = read_json(out / "seed0/result.json")
    assert before["epochs"] == before["tested_epoch"] == 2
    classes(out, resume=True, epochs=4)
    after = read_json(out / "seed0/result.json")
    assert after["epochs"] == 4
    expected = read_json(whole / "seed0/result.json")
    assert after["train_loss"] == expected["train_loss"]
    with pytest.raises(OptionError, match="already holds a run"):
        classes(out)


def test_results_are_written(whole: Path) -> None:
    summary = read_json(whole / "summary.json")
    assert summary["majority"] == 0.5
    assert summary["area_weighted"] is None
    assert 0.0 <= summary["test"]["mean"] <= 1.0
    assert summary["num_parameters"] > 0
    (row,) = summary["categories"]
    assert (row["name"], row["test_score"]) == ("vessels", summary["test"]["mean"])
    assert "vessels" in (whole / "results.txt").read_text()
    lines = read_metrics(whole / "seed0/metrics.jsonl")
    assert lines[-1]["train_loss"] < lines[0]["train_loss"]
    assert "val_score" not in lines[0]


def test_parts_are_learned(tmp_path: Path) -> None:
    problem = make_parts()
    config = MeshConfig.from_dict({**PARTS, "epochs": 6, "constant_epochs": 3})
    summary = train_meshes(config, tmp_path, sets=[problem])
    (run,) = summary.runs
    lines = read_metrics(tmp_path / "seed0/metrics.jsonl")
    assert lines[-1]["train_loss"] < 0.8 * lines[0]["train_loss"]
    assert run.area_weighted is not None
    assert run.num_faces == sum(data.x.size(0) for data in problem.test)
    rates = [line["lr"] for line in lines]
    assert rates == pytest.approx([0.01, 0.01, 0.01, 0.0075, 0.005, 0.0025])
    model = load_mesh_model(tmp_path / "seed0/last.ckpt")
    assert model.num_faces == max(data.x.size(0) for data in problem.train)
    assert model.class_names == problem.class_names
    hits = sum(float((model(data).argmax(1) == data.y).sum()) for data in problem.test)
    assert hits / run.num_faces == pytest.approx(run.test_score, abs=0.01)


def test_validation_holds_meshes_out(tmp_path: Path) -> None:
    config = MeshConfig.from_dict(
        {**SMALL, "val_share": 0.5, "epochs": 1, "evaluate": "best"}
    )
    train_meshes(config, tmp_path, sets=[make_classes()])
    lines = read_metrics(tmp_path / "seed0/metrics.jsonl")
    assert {"val_loss", "val_score"} <= set(lines[0])
    config = MeshConfig.from_dict({**SMALL, "val_share": 0.05})
    with pytest.raises(OptionError, match="at least one on either side"):
        train_meshes(config, tmp_path / "none", sets=[make_classes()])


def test_scale_of_the_features_is_saved(whole: Path) -> None:
    model = load_mesh_model(whole / "seed0/last.ckpt")
    assert float(model.scaling.std_dual[0]) > 0.1
    data = primal_dual_graph(generate_shape("box"))
    assert model(data).shape == (1, 2)


def test_foreign_checkpoints_are_refused(tmp_path: Path) -> None:
    torch.save({"state_dict": {}}, tmp_path / "a.ckpt")
    with pytest.raises(ValueError, match="no entry 'mesh_config'"):
        load_mesh_model(tmp_path / "a.ckpt")
    with pytest.raises(OptionError, match="existing folder"):
        MeshJob.prepare({"data": str(tmp_path / "no")}, tmp_path / "run")


@pytest.mark.parametrize(("precision", "size"), [("highest", None), ("medium", "1")])
def test_lower_precision_keeps_little_code(
    precision: str, size: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
    for name in names:
        monkeypatch.setenv(name, "7")
        monkeypatch.delenv(name)
    with _matmul(precision):
        assert torch.get_float32_matmul_precision() == precision
        assert [os.environ.get(name) for name in names] == [size, size]
    assert torch.get_float32_matmul_precision() == "highest"
