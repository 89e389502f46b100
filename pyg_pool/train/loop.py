"""Lightning parts of graph-level training: module, callbacks, checkpoint files.

All randomness of an epoch (order of the graphs, dropout) derives from the seed of
the run and the number of the epoch. A run that was killed and resumed therefore
goes through the same states as one that was not. Import this module only where
Lightning is installed: the rest of the room works without it.
"""

from __future__ import annotations

import inspect
import logging
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import lightning.pytorch as pl
import numpy as np
import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint
from torch import Tensor
from torch.utils.data import DataLoader, Sampler
from torch_geometric.data import Batch
from tqdm.auto import tqdm

from pyg_pool.train.checkpoint import (
    append_metrics,
    load_checkpoint,
    save_checkpoint,
)
from pyg_pool.train.config import TrainConfig
from pyg_pool.train.data import GraphDataset

__all__ = [
    "EpochBatches",
    "GraphTask",
    "epoch_seed",
    "fit",
    "make_trainer",
    "quiet_lightning",
]

log = logging.getLogger(__name__)

Part = Literal["train", "val", "test"]

#: Word of our options -> word of Lightning.
_PRECISION = {"32": "32-true", "64": "64-true", "bf16": "bf16-mixed", "16": "16-mixed"}
#: What the streams of random numbers of a run are for.
_STREAMS = {"weights": 0, "order": 1, "dropout": 2, "versions": 3}


def epoch_seed(seed: int, *, fold: int = 0, epoch: int = 0, stream: str) -> int:
    """Return the seed of one stream of random numbers in one epoch.

    Streams of neighbouring seeds, folds and epochs are unrelated.
    """
    key = [seed, fold, epoch, _STREAMS[stream]]
    return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0]) >> 1


class EpochBatches(Sampler[list[int]]):
    """Indices of the batches of one epoch.

    The sizes differ by at most one, so no batch is left with a single graph, which
    batch normalisation could not use.

    Args:
        num_graphs: Number of graphs.
        batch_size: Upper bound on the graphs of a batch.
        seed: Seed of the order; :obj:`None` keeps the given order.

    Example:
        >>> [len(batch) for batch in EpochBatches(9, 4, seed=3)]
        [3, 3, 3]
    """

    def __init__(self, num_graphs: int, batch_size: int, *, seed: int | None) -> None:
        self.num_graphs = num_graphs
        self.num_batches = -(-num_graphs // batch_size)
        self.seed = seed

    def __len__(self) -> int:
        """Return the number of batches."""
        return self.num_batches

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the same batches each time."""
        order = torch.arange(self.num_graphs)
        if self.seed is not None:
            generator = torch.Generator().manual_seed(self.seed)
            order = torch.randperm(self.num_graphs, generator=generator)
        for part in order.tensor_split(self.num_batches) if self.num_batches else ():
            yield part.tolist()


class GraphTask(pl.LightningModule):
    """A graph model with its loss, optimiser, loaders and scores.

    Args:
        model: Maps a batch of graphs to outputs of shape [B, C].
        config: The options of the run.
        dataset: Gives the graphs, the loss and the score.
        seed: Seed of this run.
        fold: Number of its split.
        plain: What a checkpoint must hold to build the model again: plain values.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        *,
        config: TrainConfig,
        dataset: GraphDataset,
        seed: int = 0,
        fold: int = 0,
        plain: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.config = config
        self.dataset = dataset
        self.seed = seed
        self.fold = fold
        self.plain = dict(plain or {})
        self.scores: dict[str, float] = {}
        self._seen: list[tuple[Tensor, Tensor]] = []

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the outputs of the model and the loss of its pools."""
        output: tuple[Tensor, Tensor] = self.model(batch)
        return output

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return AdamW over all weights."""
        return torch.optim.AdamW(
            self.parameters(),
            lr=self.config.lr,
            weight_decay=self.config.weight_decay,
        )

    def train_dataloader(self) -> DataLoader[Any]:
        """Return the batches of the current epoch, in its own order."""
        key = {"fold": self.fold, "epoch": self.current_epoch}
        return self._loader("train", epoch_seed(self.seed, **key, stream="order"))

    def val_dataloader(self) -> DataLoader[Any]:
        """Return the validation graphs in their order."""
        return self._loader("val", None)

    def test_dataloader(self) -> DataLoader[Any]:
        """Return the test graphs in their order."""
        return self._loader("test", None)

    def on_after_batch_transfer(self, batch: Batch, dataloader_idx: int) -> Batch:
        """Give measured features the precision of the weights."""
        for name in ("x", "edge_attr"):
            value = getattr(batch, name, None)
            if value is not None and value.is_floating_point():
                batch[name] = value.to(self.dtype)
        return batch

    def on_train_epoch_start(self) -> None:
        """Start the random numbers of this epoch."""
        key = {"fold": self.fold, "epoch": self.current_epoch}
        torch.manual_seed(epoch_seed(self.seed, **key, stream="dropout"))

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Return the loss of one batch."""
        output, pool_loss = self(batch)
        loss = self.dataset.loss(output, batch.y) + pool_loss
        self.log(
            "train_loss", loss, on_epoch=True, on_step=False, batch_size=_size(batch)
        )
        return loss

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Collect the outputs of one validation batch."""
        self._collect(batch, "val")

    def test_step(self, batch: Batch, batch_idx: int) -> None:
        """Collect the outputs of one test batch."""
        self._collect(batch, "test")

    def on_validation_epoch_end(self) -> None:
        """Log the validation score."""
        self.log("val_score", self._score("val"))

    def on_test_epoch_end(self) -> None:
        """Log the test score."""
        self.log("test_score", self._score("test"))

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add what is needed to build the model again."""
        checkpoint["pyg_pool"] = self.plain

    def _loader(self, part: Part, seed: int | None) -> DataLoader[Any]:
        """Return a loader whose workers gather whole batches from the flat store."""
        store = self.dataset.part(part, self.fold)
        batches = EpochBatches(len(store), self.config.batch_size, seed=seed)
        return DataLoader(
            range(len(store)),  # type: ignore[arg-type]
            batch_sampler=batches,
            collate_fn=store.batch,
            num_workers=self.config.workers,
            # A generator of its own keeps the loader off the global random numbers.
            generator=torch.Generator().manual_seed(0),
            pin_memory=torch.cuda.is_available() and self.config.device != "cpu",
        )

    def _collect(self, batch: Batch, part: str) -> None:
        """Keep outputs and targets of a batch, and log its loss."""
        output, _ = self(batch)
        loss = self.dataset.loss(output, batch.y)
        self.log(f"{part}_loss", loss, batch_size=_size(batch))
        self._seen.append((batch.y.cpu(), output.float().cpu()))

    def _score(self, part: Part) -> float:
        """Return the score of the collected outputs and forget them."""
        seen, self._seen = self._seen, []
        targets, outputs = zip(*seen, strict=True)
        score = self.dataset.evaluate(torch.cat(targets), torch.cat(outputs))
        self.scores[part] = score
        return score


class SafeCheckpointIO(TorchCheckpointIO):
    """Checkpoint files that are renamed into place and read without running code."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None
    ) -> None:
        """Write a checkpoint under a temporary name and rename it."""
        save_checkpoint(checkpoint, path)

    def load_checkpoint(
        self,
        path: Any,
        map_location: Any = "cpu",
        weights_only: bool | None = None,
    ) -> dict[str, Any]:
        """Read a checkpoint of tensors and plain values only."""
        return load_checkpoint(path, map_location=map_location)


class RunCheckpoint(ModelCheckpoint):
    """A checkpoint file of a fixed name, in a folder that may be moved."""

    def __init__(self, folder: Path, name: str, *, mode: str | None = None) -> None:
        super().__init__(
            dirpath=folder,
            filename=name,
            monitor=None if mode is None else "val_score",
            mode=mode or "min",
            save_on_train_epoch_end=True,
            enable_version_counter=False,
        )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the state, with the paths of the folder as it is now."""
        old, new = str(state_dict["dirpath"]), str(self.dirpath)
        moved = {key: _moved(value, old, new) for key, value in state_dict.items()}
        super().load_state_dict(moved)


class EpochLog(Callback):
    """Appends one line per epoch to ``metrics.jsonl``.

    It runs before the checkpoints of the epoch are written: a kill in between leaves
    a line too many, which a resume removes, and never one too few.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        self._started = 0.0

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Take the time."""
        self._started = time.perf_counter()

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Write the line."""
        values = trainer.callback_metrics
        line = {
            "epoch": trainer.current_epoch,
            **{key: float(values[key]) for key in ("train_loss", "val_loss")},
            "val_score": pl_module.scores["val"],
            "lr": trainer.optimizers[0].param_groups[0]["lr"],
            "seconds": round(time.perf_counter() - self._started, 4),
        }
        append_metrics(self.path, line)
        log.debug(
            "%s: epoch %d, loss %.4f, validation loss %.4f, score %.4f (%.1f s)",
            self.name,
            line["epoch"] + 1,
            *(line[key] for key in ("train_loss", "val_loss", "val_score", "seconds")),
        )


class ProgressLine(Callback):
    """One progress bar over all batches of a run."""

    def __init__(self, name: str, better: Callable[[float, float], float]) -> None:
        self.name = name
        self.better = better
        self._bar: Any = None
        self._best: float | None = None

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Open the bar where the run stands."""
        batches = int(trainer.num_training_batches)
        self._bar = tqdm(
            total=batches * (trainer.max_epochs or 0),
            initial=batches * trainer.current_epoch,
            desc=self.name,
            unit="batch",
            leave=False,
            dynamic_ncols=True,
        )

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, idx: int
    ) -> None:
        """Move the bar."""
        self._bar.update()

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Show the scores."""
        score = float(trainer.callback_metrics["val_score"])
        self._best = score if self._best is None else self.better(self._best, score)
        epoch = f"epoch {trainer.current_epoch + 1}/{trainer.max_epochs}"
        self._bar.set_postfix_str(f"{epoch}, val {score:.3f}, best {self._best:.3f}")

    def on_train_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Close the bar."""
        self._bar.close()


def make_trainer(
    config: TrainConfig,
    folder: Path,
    *,
    name: str,
    greater_is_better: bool,
    progress: bool,
) -> pl.Trainer:
    """Return the Lightning trainer of one run, which writes into `folder`."""
    mode = "max" if greater_is_better else "min"
    callbacks: list[Callback] = [EpochLog(folder / "metrics.jsonl", name)]
    if progress:
        callbacks.append(ProgressLine(name, max if greater_is_better else min))
    if config.patience:
        callbacks.append(
            EarlyStopping(
                "val_score",
                mode=mode,
                patience=config.patience,
                check_on_train_epoch_end=True,
                # A score may be undefined on a small part; that is no reason to stop.
                check_finite=False,
            )
        )
    # Lightning runs checkpoints last, in this order: `last` knows about `best`.
    callbacks += [
        RunCheckpoint(folder, "best", mode=mode),
        RunCheckpoint(folder, "last"),
    ]
    accelerator, _, index = config.device.partition(":")
    return pl.Trainer(
        accelerator="gpu" if accelerator == "cuda" else accelerator,
        devices=[int(index)] if index else 1,
        precision=_PRECISION[config.precision],  # type: ignore[arg-type]
        max_epochs=config.epochs,
        callbacks=callbacks,
        plugins=[SafeCheckpointIO()],
        deterministic=config.deterministic,
        # Anew in each epoch, because the order depends on its number.
        reload_dataloaders_every_n_epochs=1,
        num_sanity_val_steps=0,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
    )


def fit(trainer: pl.Trainer, task: GraphTask, *, resume_from: Path | None) -> None:
    """Train, from a checkpoint if one is given."""
    # Lightning before 2.6 lacks the argument; SafeCheckpointIO then does the same.
    has_option = "weights_only" in inspect.signature(trainer.fit).parameters
    extra: dict[str, Any] = {"weights_only": True} if has_option else {}
    trainer.fit(task, ckpt_path=resume_from, **extra)


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Silence Lightning's advice, but neither its warnings of substance nor errors."""
    names = ("lightning.pytorch", "lightning.fabric", "lightning")
    levels = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            for message in _ADVICE:
                warnings.filterwarnings("ignore", message=message)
            yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


_ADVICE = (
    r".*does not have many workers.*",
    r"Checkpoint directory .* exists and is not empty",
    r".*GPU available but not used.*",
    r".*`isinstance\(treespec, LeafSpec\)` is deprecated.*",
)


def _size(batch: Batch) -> int:
    """Return the number of graphs in a batch, without asking the device."""
    return int(batch.y.size(0))


def _moved(value: Any, old: str, new: str) -> Any:
    """Replace the leading folder in every path of a checkpoint callback's state."""
    if isinstance(value, str) and value.startswith(old):
        return new + value[len(old) :]
    if isinstance(value, dict):
        return {_moved(key, old, new): item for key, item in value.items()}
    return value
