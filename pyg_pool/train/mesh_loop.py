"""Lightning parts of mesh training: module, callbacks, trainer.

As in :mod:`pyg_pool.train.loop`, all randomness of an epoch derives from the seed of
the run and the number of the epoch, so a run that was killed and resumed goes through
the same states as one that was not.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from torch import Tensor
from torch.utils.data import DataLoader
from torch_geometric.data import Batch
from tqdm.auto import tqdm

from pyg_pool.mesh import PrimalDualData
from pyg_pool.train.checkpoint import append_metrics
from pyg_pool.train.loop import EpochBatches, SafeCheckpointIO, _moved, epoch_seed
from pyg_pool.train.mesh_config import MeshConfig
from pyg_pool.train.mesh_scores import (
    area_weighted_accuracy,
    face_accuracy,
    learning_rate_factor,
    mesh_loss,
)

__all__ = ["MeshParts", "MeshTask", "make_mesh_trainer"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MeshParts:
    """The meshes of one run.

    Args:
        train: Meshes that are trained on.
        val: Meshes that are held out for validation, perhaps none.
        test: Meshes that are tested on.
        augmented: Further versions of the training meshes, in their order.
    """

    train: Sequence[PrimalDualData]
    val: Sequence[PrimalDualData]
    test: Sequence[PrimalDualData]
    augmented: Sequence[Sequence[PrimalDualData]] = ()

    def drawn(self, seed: int) -> Sequence[PrimalDualData]:
        """Return one version of each training mesh, drawn by this seed."""
        if not self.augmented:
            return self.train
        rounds = (self.train, *self.augmented)
        chance = torch.Generator().manual_seed(seed)
        number = torch.randint(len(rounds), (len(self.train),), generator=chance)
        return [rounds[k][i] for i, k in enumerate(number.tolist())]


class MeshTask(pl.LightningModule):
    """A mesh network with its loss, optimiser, loaders and scores.

    Args:
        model: Maps a batch of meshes to scores.
        config: The options of the run.
        parts: The meshes.
        seed: Seed of this run.
        plain: What a checkpoint must hold to build the model again: plain values.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        *,
        config: MeshConfig,
        parts: MeshParts,
        seed: int = 0,
        plain: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.config = config
        self.parts = parts
        self.seed = seed
        self.plain = dict(plain or {})
        self.scores: dict[str, dict[str, float]] = {}
        self._seen: list[tuple[Tensor, ...]] = []

    def forward(self, batch: Batch) -> Tensor:
        """Return the scores of a batch."""
        out: Tensor = self.model(batch)
        return out

    def configure_optimizers(self) -> Any:
        """Return Adam over all weights, with the rate of each epoch."""
        config = self.config
        kind = torch.optim.AdamW if config.weight_decay else torch.optim.Adam
        optimizer = kind(
            self.parameters(), lr=config.lr, weight_decay=config.weight_decay
        )
        if not config.constant_epochs:
            return optimizer

        def factor(finished: int) -> float:
            return learning_rate_factor(
                finished + 1, config.constant_epochs, config.epochs
            )

        rates = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return {"optimizer": optimizer, "lr_scheduler": rates}

    def train_dataloader(self) -> DataLoader[Any]:
        """Return the batches of the current epoch, in its own order."""
        order, versions = (
            epoch_seed(self.seed, epoch=self.current_epoch, stream=stream)
            for stream in ("order", "versions")
        )
        return self._loader(self.parts.drawn(versions), order)

    def val_dataloader(self) -> DataLoader[Any]:
        """Return the validation meshes in their order."""
        return self._loader(self.parts.val, None)

    def test_dataloader(self) -> DataLoader[Any]:
        """Return the test meshes in their order."""
        return self._loader(self.parts.test, None)

    def on_train_epoch_start(self) -> None:
        """Start the random numbers of this epoch."""
        seed = epoch_seed(self.seed, epoch=self.current_epoch, stream="dropout")
        torch.manual_seed(seed)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Return the loss of one batch."""
        scores = self(batch)
        loss = self._loss(scores, batch)
        hits = (scores.detach().argmax(1) == batch.y).float().mean()
        for name, value in (("train_loss", loss), ("train_score", hits)):
            self.log(
                name, value, on_epoch=True, on_step=False, batch_size=batch.num_graphs
            )
        return loss

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Collect the outcome of one validation batch."""
        self._collect(batch, "val")

    def test_step(self, batch: Batch, batch_idx: int) -> None:
        """Collect the outcome of one test batch."""
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

    def _loader(
        self, meshes: Sequence[PrimalDualData], seed: int | None
    ) -> DataLoader[Any]:
        """Return batches of these meshes."""
        return DataLoader(
            meshes,  # type: ignore[arg-type]
            batch_sampler=EpochBatches(len(meshes), self.config.batch_size, seed=seed),
            collate_fn=Batch.from_data_list,
            # A generator of its own keeps the loader off the global random numbers.
            generator=torch.Generator().manual_seed(0),
        )

    def _loss(self, scores: Tensor, batch: Batch) -> Tensor:
        """Cross entropy as the options say."""
        whole = self.config.task == "classification"
        owner = None if whole else batch.batch
        per = "face" if whole else self.config.loss_per
        return mesh_loss(scores, batch.y, owner, per=per)

    def _collect(self, batch: Batch, part: str) -> None:
        """Keep what the scores need, and log the loss of a batch."""
        scores = self(batch)
        self.log(f"{part}_loss", self._loss(scores, batch), batch_size=batch.num_graphs)
        seen = [scores.argmax(1), batch.y]
        if self.config.task == "segmentation":
            before = sum(int(each[3].max()) + 1 for each in self._seen)
            seen += [batch.face_areas, batch.batch + before]
        self._seen.append(tuple(each.cpu() for each in seen))

    def _score(self, part: str) -> float:
        """Return the score of the collected outcomes and forget them."""
        seen, self._seen = self._seen, []
        columns = [torch.cat(column) for column in zip(*seen, strict=True)]
        scores = {"accuracy": face_accuracy(*columns[:2])}
        if self.config.task == "segmentation":
            scores["area_weighted"] = area_weighted_accuracy(*columns)
        self.scores[part] = scores
        return scores["accuracy"]


class MeshCheckpoint(ModelCheckpoint):
    """A checkpoint file of a fixed name, in a folder that may be moved."""

    def __init__(
        self, folder: Path, name: str, monitor: tuple[str, str] | None = None
    ) -> None:
        super().__init__(
            dirpath=folder,
            filename=name,
            monitor=None if monitor is None else monitor[0],
            mode="min" if monitor is None else monitor[1],
            save_on_train_epoch_end=True,
            enable_version_counter=False,
        )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the state, with the paths of the folder as it is now."""
        old, new = str(state_dict["dirpath"]), str(self.dirpath)
        moved = {key: _moved(value, old, new) for key, value in state_dict.items()}
        super().load_state_dict(moved)


class MeshLog(Callback):
    """Appends one line per epoch to ``metrics.jsonl``, before checkpoints are written.

    A kill in between leaves a line too many, which a resume removes, and never one
    too few.
    """

    def __init__(self, path: Path, name: str, *, progress: bool) -> None:
        self.path, self.name, self.progress = path, name, progress
        self._bar: Any = None
        self._started = self._rate = 0.0

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Open the bar where the run stands."""
        self._bar = tqdm(
            total=trainer.max_epochs,
            initial=trainer.current_epoch,
            desc=self.name,
            unit="epoch",
            leave=False,
            dynamic_ncols=True,
            disable=not self.progress,
        )

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Take the time, and the rate before it is changed for the next epoch."""
        self._started = time.perf_counter()
        self._rate = float(trainer.optimizers[0].param_groups[0]["lr"])

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Write the line."""
        values = trainer.callback_metrics
        names = ("train_loss", "train_score", "val_loss", "val_score")
        line = {
            "epoch": trainer.current_epoch,
            **{key: float(values[key]) for key in names if key in values},
            "lr": self._rate,
            "seconds": round(time.perf_counter() - self._started, 4),
        }
        append_metrics(self.path, line)
        self._bar.update()
        score = line.get("val_score", line["train_score"])
        self._bar.set_postfix_str(f"score {score:.3f}")
        log.debug(
            "%s: epoch %d, loss %.4f, training score %.4f (%.1f s)",
            self.name,
            line["epoch"] + 1,
            *(line[key] for key in ("train_loss", "train_score", "seconds")),
        )

    def on_train_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Close the bar."""
        self._bar.close()


def make_mesh_trainer(
    config: MeshConfig, folder: Path, *, name: str, progress: bool
) -> pl.Trainer:
    """Return the Lightning trainer of one run, which writes into `folder`."""
    best = ("val_score", "max") if config.val_share else ("train_loss", "min")
    accelerator, _, index = config.device.partition(":")
    return pl.Trainer(
        accelerator="gpu" if accelerator == "cuda" else accelerator,
        devices=[int(index)] if index else 1,
        max_epochs=config.epochs,
        callbacks=[
            MeshLog(folder / "metrics.jsonl", name, progress=progress),
            # Lightning runs checkpoints last, in this order.
            MeshCheckpoint(folder, "best", best),
            MeshCheckpoint(folder, "last"),
        ],
        plugins=[SafeCheckpointIO()],
        # Anew in each epoch, because the order depends on its number.
        reload_dataloaders_every_n_epochs=1,
        limit_val_batches=1.0 if config.val_share else 0,
        num_sanity_val_steps=0,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
    )
