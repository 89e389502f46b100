from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch
from torch import Tensor

from pyg_pool.train import GraphDataset, GraphFeatures, TrainConfig, build_model
from pyg_pool.train.checkpoint import load_checkpoint, read_metrics, save_checkpoint
from pyg_pool.train.loop import (
    EpochBatches,
    GraphTask,
    SafeCheckpointIO,
    epoch_seed,
    fit,
    make_trainer,
    quiet_lightning,
)

CONFIG = TrainConfig(
    model="gcn", hidden=4, levels=1, epochs=2, batch_size=7, device="cpu", threads=1
)


def task_of(dataset: GraphDataset, config: TrainConfig = CONFIG) -> GraphTask:
    model = build_model(config, GraphFeatures.of(dataset))
    return GraphTask(model, config=config, dataset=dataset, seed=3)


def test_seeds_of_streams_differ() -> None:
    keys = [
        {"seed": seed, "fold": fold, "epoch": epoch, "stream": stream}
        for seed in (0, 1, 5)
        for fold in (0, 1)
        for epoch in (0, 1, 2)
        for stream in ("weights", "order", "dropout")
    ]
    seeds = [epoch_seed(key.pop("seed"), **key) for key in keys]
    assert len(set(seeds)) == len(seeds)
    assert min(seeds) >= 0
    assert epoch_seed(1, stream="order") == epoch_seed(1, stream="order")


@pytest.mark.parametrize(
    ("graphs", "size", "sizes"),
    [(9, 4, [3, 3, 3]), (8, 4, [4, 4]), (3, 9, [3]), (5, 1, [1] * 5), (0, 4, [])],
)
def test_batches_cover_all_graphs_evenly(
    graphs: int, size: int, sizes: list[int]
) -> None:
    batches = EpochBatches(graphs, size, seed=5)
    found = list(batches)
    assert [len(batch) for batch in found] == sizes
    assert len(batches) == len(sizes)
    assert sorted(i for batch in found for i in batch) == list(range(graphs))
    assert found == list(batches)


def test_batches_without_a_seed_keep_the_order() -> None:
    assert list(EpochBatches(4, 2, seed=None)) == [[0, 1], [2, 3]]
    assert list(EpochBatches(40, 40, seed=1)) != [list(range(40))]


def test_order_depends_on_the_epoch(
    rings: GraphDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = task_of(rings)
    orders = []
    for epoch in (0, 1, 0):
        monkeypatch.setattr(GraphTask, "current_epoch", epoch)
        orders.append(list(task.train_dataloader().batch_sampler))
    assert orders[0] != orders[1]
    assert orders[0] == orders[2]


def test_random_numbers_depend_on_the_epoch(
    rings: GraphDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = task_of(rings)
    drawn = []
    for epoch in (0, 1, 0):
        monkeypatch.setattr(GraphTask, "current_epoch", epoch)
        torch.rand(3)
        task.on_train_epoch_start()
        drawn.append(torch.rand(4))
    assert not torch.equal(drawn[0], drawn[1])
    assert torch.equal(drawn[0], drawn[2])


@pytest.mark.parametrize("workers", [0, 1])
def test_loaders_give_the_parts(rings: GraphDataset, workers: int) -> None:
    config = TrainConfig.from_dict({**CONFIG.to_dict(), "workers": workers})
    task = task_of(rings, config)
    for loader, part in (
        (task.val_dataloader(), "val"),
        (task.test_dataloader(), "test"),
    ):
        found = torch.cat([batch.y for batch in loader])
        assert torch.equal(found, rings.part(part).y)
    found = torch.cat([batch.x for batch in task.train_dataloader()])
    wanted = rings.part("train").batch().x
    assert found.shape == wanted.shape
    assert torch.equal(found.sort(dim=0)[0], wanted.sort(dim=0)[0])


def test_loss_of_the_pools_is_trained_too(rings: GraphDataset) -> None:
    task = task_of(rings).eval()
    task.log = lambda *args, **options: None
    batch = rings.graphs.batch([0, 1])
    plain = task.training_step(batch, 0)
    model = task.model.forward
    task.model.forward = lambda data: (model(data)[0], torch.tensor(5.0))
    torch.testing.assert_close(task.training_step(batch, 0), plain + 5.0)


def test_fit_writes_lines_and_checkpoints(rings: GraphDataset, tmp_path: Path) -> None:
    task = task_of(rings)
    with quiet_lightning():
        trainer = make_trainer(
            CONFIG, tmp_path, name="run", greater_is_better=True, progress=True
        )
        fit(trainer, task, resume_from=None)
    lines = read_metrics(tmp_path / "metrics.jsonl")
    assert [line["epoch"] for line in lines] == [0, 1]
    assert set(lines[0]) == {
        "epoch",
        "lr",
        "seconds",
        "train_loss",
        "val_loss",
        "val_score",
    }
    last = load_checkpoint(tmp_path / "last.ckpt")
    assert last["epoch"] == 1
    torch.testing.assert_close(last["state_dict"], task.state_dict())


@pytest.mark.parametrize(("greater", "best"), [(True, 2), (False, 1)])
def test_best_epoch_follows_the_direction(
    greater: bool, best: int, rings: GraphDataset, tmp_path: Path
) -> None:
    scores = iter([0.5, 0.25, 0.75, 0.5])
    object.__setattr__(rings, "evaluate", lambda y_true, y_pred: next(scores))
    config = TrainConfig.from_dict({**CONFIG.to_dict(), "epochs": 4})
    with quiet_lightning():
        trainer = make_trainer(
            config, tmp_path, name="run", greater_is_better=greater, progress=False
        )
        fit(trainer, task_of(rings, config), resume_from=None)
    assert load_checkpoint(tmp_path / "best.ckpt")["epoch"] == best


def test_undefined_score_is_never_the_best(rings: GraphDataset, tmp_path: Path) -> None:
    scores = iter([0.5, float("nan"), 0.25])
    object.__setattr__(rings, "evaluate", lambda y_true, y_pred: next(scores))
    config = TrainConfig.from_dict({**CONFIG.to_dict(), "epochs": 3, "patience": 5})
    with quiet_lightning():
        trainer = make_trainer(
            config, tmp_path, name="run", greater_is_better=True, progress=False
        )
        fit(trainer, task_of(rings, config), resume_from=None)
    assert load_checkpoint(tmp_path / "best.ckpt")["epoch"] == 0
    assert len(read_metrics(tmp_path / "metrics.jsonl")) == 3


@pytest.mark.parametrize("precision", ["64", "bf16"])
def test_precisions(precision: str, rings: GraphDataset, tmp_path: Path) -> None:
    config = TrainConfig.from_dict(
        {**CONFIG.to_dict(), "model": "hierarchical", "precision": precision}
    )
    task = task_of(rings, config)
    seen: list[torch.dtype] = []
    loss = rings.loss

    def watch(y_pred: Tensor, y_true: Tensor) -> Tensor:
        seen.append(y_pred.dtype)
        return loss(y_pred, y_true)

    object.__setattr__(rings, "loss", watch)
    with quiet_lightning():
        trainer = make_trainer(
            config, tmp_path, name="run", greater_is_better=True, progress=False
        )
        fit(trainer, task, resume_from=None)
    wanted = {"64": torch.float64, "bf16": torch.bfloat16}[precision]
    assert set(seen) == {wanted}


def test_safe_checkpoint_io(tmp_path: Path) -> None:
    files = SafeCheckpointIO()
    files.save_checkpoint({"a": torch.ones(2)}, tmp_path / "a.ckpt")
    assert [path.name for path in tmp_path.iterdir()] == ["a.ckpt"]
    torch.testing.assert_close(
        files.load_checkpoint(tmp_path / "a.ckpt", weights_only=False)["a"],
        torch.ones(2),
    )
    save_checkpoint({"a": torch.device("cpu")}, tmp_path / "b.ckpt")
    torch.save({"a": logging.Formatter()}, tmp_path / "c.ckpt")
    with pytest.raises(ValueError, match="cannot be read"):
        files.load_checkpoint(tmp_path / "c.ckpt", weights_only=False)


def test_quiet_lightning_keeps_errors_and_puts_levels_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = logging.getLogger("lightning.pytorch")
    before = logger.level
    with quiet_lightning(), caplog.at_level(logging.DEBUG, "lightning.pytorch.sub"):
        logger.info("advice")
        logger.error("trouble")
    assert logger.level == before
    assert "advice" not in caplog.messages
