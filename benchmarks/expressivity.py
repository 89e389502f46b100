"""Trained networks on sets that test power: ``python -m benchmarks.expressivity``.

EXP: 600 pairs with opposite labels, ten folds by pair. CSL: ten classes of circulants,
the five published folds. SR25: fifteen strongly regular graphs, trained on themselves
and tested on randomly permuted copies, by networks of several (k, l) side by side.
Counting: cycles of length 3 to 6 in random graphs, one network for all four, as mean
absolute error over the standard deviation of the training set. All are judged on graphs
that were not trained on.

    python -m benchmarks.expressivity --root DATA --tasks CSL SR25

DATA holds EXP/EXP.npz, CSL/CSL.npz with its splits, SR25/sr251256.g6 and
counting_er/counting_er.npz. A run that was stopped goes on where it was; one that is
in the results is not made again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import BatchNorm1d
from torch.nn.functional import cross_entropy, l1_loss
from torch_geometric.data import Batch, Data

from benchmarks import record
from benchmarks.expressivity_data import LENGTHS, TASKS, Fold
from pyg_pool.kernels import warm_up
from pyg_pool.models import KLGNN
from pyg_pool.train.checkpoint import load_checkpoint, save_checkpoint
from pyg_pool.transforms import KLTuples

FILE = "expressivity.jsonl"
SAVE_EVERY = 60.0


@dataclass(frozen=True)
class Setting:
    """A network and how it is trained.

    Args:
        options: What :class:`KLGNN` gets.
        width: Width of the network.
        layers: Depth of the base.
        epochs: Passes over the training set.
        batch_size: Graphs per step.
        lr: Rate of the first step.
        stop_at: End once the training loss stays below this for three epochs.
    """

    options: dict[str, Any] = field(default_factory=dict)
    width: int = 32
    layers: int = 4
    epochs: int = 100
    batch_size: int = 32
    lr: float = 2e-3
    stop_at: float = 0.0


_MEANS: dict[str, Any] = {"node_pool": "mean", "tuple_pool": "mean"}
_EDGES: dict[str, Any] = {"l": 2, "domain": "star"}
#: Networks of each task by name; EXP and CSL need one label, SR25 two.
SETTINGS: dict[str, dict[str, Setting]] = {
    "EXP": {
        "1,0": Setting({"l": 0}, epochs=20, layers=4),
        "1,1 ego 2": Setting({"l": 1, "ego": 2}, epochs=60, layers=4, stop_at=1e-3),
    },
    "CSL": {
        "1,0": Setting({"l": 0, **_MEANS}, epochs=20, layers=6, batch_size=15),
        "1,1": Setting(
            {"l": 1, **_MEANS, "num_samples": 4},
            epochs=60, layers=6, batch_size=15, stop_at=0.04,
        ),
    },
    "SR25": {
        "1,0": Setting({"l": 0, **_MEANS}, epochs=60, batch_size=15),
        "1,1": Setting({"l": 1, **_MEANS}, epochs=60, batch_size=15),
        "2-FWL, 0": Setting({"k": 2, "l": 0}, epochs=60, batch_size=15),
        "1,2 root+neighbour": Setting(
            {**_EDGES, **_MEANS}, epochs=200, batch_size=15, lr=5e-3, stop_at=5e-3
        ),
    },
    "counting": {
        "1,1": Setting(
            {"l": 1, "encoding": "spd", "tuple_pool": "sum"},
            width=64, layers=5, epochs=150,
        ),
        "1,2 edges": Setting(
            {
                "l": 2, "domain": "connected_set", "ordered": False,
                "encoding": "spd", "tuple_pool": "sum",
            },
            width=64, layers=5, epochs=200,
        ),
        "1,1 SSWL+": Setting(
            {
                "l": 1, "encoding": "spd", "tuple_pool": "sum", "norm": "layer",
                "context": ("across", "root"),
            },
            width=64, layers=5, epochs=250,
        ),
    },
}  # fmt: skip


class Graphs:
    """Graphs with their copies, listed once.

    Args:
        graphs: The graphs.
        setting: Whose copies.
    """

    def __init__(self, graphs: Sequence[Data], setting: Setting) -> None:
        options = setting.options
        self.k, self.draws = options.get("k", 1), "num_samples" in options
        self.change: KLTuples | None = None
        self.graphs = list(graphs)
        if self.k > 1 or not options["l"]:
            return
        domain, ego = options.get("domain", "distinct"), options.get("ego")
        self.change = KLTuples(options["l"], domain=domain, ego=ego)
        self.graphs = [self.change(data) for data in graphs]

    def predict(self, model: KLGNN, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Outputs and targets of some of them."""
        batch = Batch.from_data_list([self.graphs[i] for i in rows])
        given: dict[str, Any] = {"batch": batch.batch, "batch_size": len(rows)}
        if self.change is not None and not (self.draws and model.training):
            given["copies"] = self.change.copies(batch)
        return model(batch.x, batch.edge_index, **given), batch.y


def loss_of(out: Tensor, y: Tensor) -> Tensor:
    """Cross entropy of classes, mean absolute error of numbers."""
    return l1_loss(out, y) if y.is_floating_point() else cross_entropy(out, y.view(-1))


@torch.no_grad()
def judged(model: KLGNN, graphs: Graphs, rows: Sequence[int]) -> Tensor:
    """Accuracy, or mean absolute error of each column."""
    model.eval()
    found = []
    for start in range(0, len(rows), 50):
        out, y = graphs.predict(model, rows[start : start + 50])
        is_number = y.is_floating_point()
        found.append(
            (out - y).abs() if is_number else (out.argmax(1) == y.view(-1)).view(-1, 1)
        )
    return torch.cat(found).double().mean(0)


class Run:
    """One network on one fold, saved every minute.

    Args:
        setting: The network and its training.
        graphs: All graphs.
        fold: Which of them are for what.
        file: Where an unfinished run is kept.
        seed: Seed of weights and order.
    """

    def __init__(
        self, setting: Setting, graphs: Graphs, fold: Fold, file: Path, seed: int
    ) -> None:
        self.setting, self.graphs, self.fold, self.file = setting, graphs, fold, file
        torch.manual_seed(seed)
        data = graphs.graphs[0]
        outputs = fold.outputs
        sizes = data.x.size(1), setting.width, outputs, setting.layers
        self.model = KLGNN(*sizes, **setting.options)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=setting.lr)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, setting.lr, total_steps=setting.epochs, pct_start=0.1
        )
        self.epoch, self.seconds, self.low = 0, 0.0, 0
        self.best, self.kept = float("inf"), self.model.state_dict()
        if file.exists():
            self.load(load_checkpoint(file))

    def load(self, saved: dict[str, Any]) -> None:
        """Take up a run that was stopped."""
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.schedule.load_state_dict(saved["schedule"])
        self.epoch, self.seconds = saved["epoch"], saved["seconds"]
        self.low, self.best, self.kept = saved["low"], saved["best"], saved["kept"]
        torch.set_rng_state(saved["random"])

    def save(self) -> None:
        """Keep all that a later start needs."""
        save_checkpoint(
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "schedule": self.schedule.state_dict(),
                "epoch": self.epoch,
                "seconds": self.seconds,
                "low": self.low,
                "best": self.best,
                "kept": self.kept,
                "random": torch.get_rng_state(),
            },
            self.file,
        )

    def train_once(self) -> float:
        """One pass over the training set; returns the mean loss."""
        self.model.train()
        rows, step = self.fold.train, self.setting.batch_size
        order = torch.randperm(len(rows)).tolist()
        total = 0.0
        for start in range(0, len(order), step):
            picked = [rows[i] for i in order[start : start + step]]
            loss = loss_of(*self.graphs.predict(self.model, picked))
            self.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            total += float(loss.detach()) * len(picked)
        self.schedule.step()
        return total / len(rows)

    @torch.no_grad()
    def settle(self) -> None:
        """Take the statistics of batch norms from the training set anew.

        Their running means lag behind weights that moved until the last step.
        """
        norms = [m for m in self.model.modules() if isinstance(m, BatchNorm1d)]
        for norm in norms:
            norm.reset_running_stats()
        self.model.train()
        rows, step = self.fold.train, self.setting.batch_size
        order = torch.randperm(len(rows)).tolist()
        for count, start in enumerate(range(0, len(order), step), start=1):
            for norm in norms:
                norm.momentum = 1 / count
            self.graphs.predict(self.model, [rows[i] for i in order[start:][:step]])

    def train(self) -> dict[str, Any]:
        """Train to the end, and judge on what was not trained on."""
        saved = time.perf_counter()
        while self.epoch < self.setting.epochs and self.low < 3:
            start = time.perf_counter()
            loss = self.train_once()
            self.epoch += 1
            self.low = self.low + 1 if loss < self.setting.stop_at else 0
            if self.fold.val and self.epoch % 5 == 0:
                error = float(judged(self.model, self.graphs, self.fold.val).mean())
                if error < self.best:
                    state = self.model.state_dict()
                    self.kept = {key: value.clone() for key, value in state.items()}
                    self.best = error
            now = time.perf_counter()
            self.seconds += now - start
            print(f"{self.file.stem} epoch {self.epoch} loss {loss:.4f}", flush=True)
            if now - saved > SAVE_EVERY:
                self.save()
                saved = now
        if self.fold.val and self.best < float("inf"):
            self.model.load_state_dict(self.kept)
        else:
            self.settle()
        found = judged(self.model, self.graphs, self.fold.test).tolist()
        self.file.unlink(missing_ok=True)
        return {
            "found": found,
            "epochs": self.epoch,
            "seconds": round(self.seconds, 1),
            "tested on": len(self.fold.test),
        }


def finished(file: Path) -> dict[str, dict[str, Any]]:
    """The lines of the results by their key."""
    if not file.exists():
        return {}
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return {line["key"]: line for line in lines}


def table(lines: dict[str, dict[str, Any]]) -> str:
    """Mean over the folds of each task, network and seed."""
    groups: dict[tuple[str, str], list[list[float]]] = {}
    for line in lines.values():
        groups.setdefault((line["task"], line["network"]), []).append(line["found"])
    rows = []
    for (task, network), values in groups.items():
        mean = torch.tensor(values, dtype=torch.float64).mean(0).tolist()
        if task == "counting":
            pairs = zip(LENGTHS, mean, strict=True)
            text = ", ".join(f"{length}-cycles {x:.4f}" for length, x in pairs)
        else:
            text = f"{100 * mean[0]:.2f} %, worst {100 * min(v[0] for v in values):.2f}"
        rows.append(f"{task:9} {network:20} {len(values):3} run(s): {text}")
    return "\n".join(rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is asked for and not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path)
    parser.add_argument("--tasks", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--networks", nargs="+", help="names; default: all of a task")
    parser.add_argument("--folds", nargs="+", type=int, help="numbers; default: all")
    parser.add_argument("--seeds", nargs="+", type=int, default=[7])
    parser.add_argument("--epochs", type=int, help="default: those of the network")
    parser.add_argument("--out", type=Path, default=record.RESULTS / "expressivity")
    parser.add_argument("--runs", type=Path, default=Path("runs") / "expressivity")
    parser.add_argument("--table", action="store_true", help="show results only")
    args = parser.parse_args(argv)
    if args.table:
        print(table(finished(args.out / FILE)))
        return 0
    if args.root is None:
        parser.error("--root is missing: the folder with EXP, CSL, SR25, counting_er")
    torch.set_num_threads(1)
    warm_up()
    for task in args.tasks:
        _run_task(task, args)
    return 0


def _run_task(task: str, args: argparse.Namespace) -> None:
    """All networks, folds and seeds of a task."""
    graphs, folds = TASKS[task](args.root, args.runs)
    for name, setting in SETTINGS[task].items():
        if args.networks and name not in args.networks:
            continue
        epochs = args.epochs or setting.epochs
        setting = Setting(**{**vars(setting), "epochs": epochs})
        word = f"{task}_{name}".replace(" ", "").replace(",", "-").replace("+", "-")
        prepared = Graphs(graphs, setting)
        for number in args.folds or range(len(folds)):
            for seed in args.seeds:
                key = f"{word}_fold{number}_seed{seed}_epochs{epochs}"
                if key in finished(args.out / FILE):
                    continue
                file = args.runs / f"{key}.pt"
                found = Run(setting, prepared, folds[number], file, seed).train()
                line = {"key": key, "task": task, "network": name, "fold": number}
                words = {"seed": seed, "options": vars(setting), **found}
                entry = {**record.surroundings(), **line, **words}
                record.append(args.out / FILE, entry)
                print(json.dumps({**line, **found}), flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
