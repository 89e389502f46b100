"""The Lightning parts of mesh training."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Batch

pytest.importorskip("lightning")

from pyg_pool.train import MeshConfig, build_mesh_model
from pyg_pool.train.mesh_loop import (
    MeshCheckpoint,
    MeshParts,
    MeshTask,
    make_mesh_trainer,
)
from tests.train.mesh_runs import PARTS, SMALL, make_classes, make_parts


def task_of(options: dict, problem: object) -> MeshTask:
    config = MeshConfig.from_dict(options)
    parts = MeshParts(problem.train, [], problem.test)  # type: ignore[attr-defined]
    model = build_mesh_model(config, problem)  # type: ignore[arg-type]
    return MeshTask(model, config=config, parts=parts)


def test_loaders_keep_every_mesh_once() -> None:
    task = task_of(SMALL, make_classes())
    sizes = [batch.num_graphs for batch in task.train_dataloader()]
    assert sizes == [2, 2, 2]
    orders = [
        [batch.y.tolist() for batch in loader]
        for loader in (task.test_dataloader(), task.test_dataloader())
    ]
    assert orders[0] == orders[1]


def test_every_epoch_draws_a_version_of_each_mesh() -> None:
    first, second, third = list("abc"), list("ABC"), list("123")
    parts = MeshParts(first, [], [], [second, third])  # type: ignore[arg-type,list-item]
    drawn = [list(parts.drawn(seed)) for seed in range(40)]
    columns = [set(column) for column in zip(*drawn, strict=True)]
    assert columns == [{"a", "A", "1"}, {"b", "B", "2"}, {"c", "C", "3"}]
    assert list(parts.drawn(7)) == drawn[7]
    assert MeshParts(first, [], []).drawn(3) is first  # type: ignore[arg-type]


def test_loss_weighs_faces_or_meshes() -> None:
    problem = make_parts()
    batch = Batch.from_data_list(problem.train)
    losses = []
    for per in ("face", "mesh"):
        task = task_of({**PARTS, "loss_per": per}, problem)
        scores = torch.linspace(0, 1, batch.y.numel() * 4).view(-1, 4)
        losses.append(float(task._loss(scores, batch)))
    assert losses[0] != losses[1]


def test_optimiser_is_adam_unless_weights_decay() -> None:
    problem = make_classes()
    assert type(task_of(SMALL, problem).configure_optimizers()) is torch.optim.Adam
    decaying = task_of({**SMALL, "weight_decay": 0.1}, problem)
    assert type(decaying.configure_optimizers()) is torch.optim.AdamW


def test_best_is_that_of_the_training_without_validation(tmp_path: Path) -> None:
    for share, monitor in ((0.0, "train_loss"), (0.5, "val_score")):
        config = MeshConfig.from_dict({**SMALL, "val_share": share})
        trainer = make_mesh_trainer(config, tmp_path, name="a", progress=False)
        kept = [c for c in trainer.callbacks if isinstance(c, MeshCheckpoint)]
        assert [c.monitor for c in kept] == [monitor, None]
