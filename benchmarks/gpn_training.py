"""Graph parsing network beside GPool, GCN and EdgePooling on TU data sets.

Adam, weight decay 1e-4, gradient norm clipped at 1, at most 500 epochs, a cosine
schedule with a linear warm-up of 50 epochs where the authors schedule, an end after 50
epochs without a lower validation loss; the test figure is the one of the epoch with
the lowest validation loss. Features are node labels and attributes, and the degree as
a one-hot vector. The folds come from a file, as ``pyg_pool.train.read_splits`` reads
it; a fold without validation part takes the test part of the fold before.

    python -m benchmarks.gpn_training NCI1 --root DATA --splits folds.json --out RUNS

Each fold is one JSON line in ``gpn_training.jsonl``. A run that was stopped goes on
where it was: finished folds are passed over, others start from their last checkpoint.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.datasets import TUDataset
from torch_geometric.transforms import OneHotDegree

from benchmarks import record
from benchmarks.gpn_models import BUILDERS, GRAPH_SETTINGS, Settings, build_graph_model
from pyg_pool.train import GraphStore

RESULTS = "gpn_training.jsonl"


def load_store(name: str, root: Path) -> GraphStore:
    """Return the graphs of a TU set with one-hot degrees."""
    plain = TUDataset(str(root), name, use_node_attr=True)
    edges = [data.edge_index for data in plain]
    top = max(int(torch.bincount(e[0]).max()) if e.numel() else 0 for e in edges)
    degree = OneHotDegree(top)
    graphs = []
    for data in plain:
        data = degree(Data(x=data.x, edge_index=data.edge_index, y=data.y))
        graphs.append(data)
    return GraphStore.from_graphs(graphs)


def read_folds(path: Path) -> list[dict[str, Tensor]]:
    """Return train, validation and test indices of each fold."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    found = json.loads(content)
    found = found["folds"] if isinstance(found, dict) else found
    folds = []
    for number, fold in enumerate(found):
        val = fold.get("val") or found[number - 1]["test"]
        train = sorted(set(fold["train"]) - set(val))
        parts = {"train": train, "val": val, "test": fold["test"]}
        folds.append({key: torch.tensor(value) for key, value in parts.items()})
    return folds


def rate_at(epoch: int, epochs: int, warmup: int) -> float:
    """Return the factor on the learning rate in an epoch that counts from 0."""
    if warmup == 0:
        return 1.0
    if epoch < warmup:
        return (epoch + 1) / warmup
    share = (epoch - warmup) / max(epochs - warmup, 1)
    return 0.5 * (1.0 + math.cos(math.pi * share))


class Fold:
    """The training of one model on one fold, with its checkpoint."""

    def __init__(
        self,
        store: GraphStore,
        parts: dict[str, Tensor],
        model: torch.nn.Module,
        given: Settings,
        options: argparse.Namespace,
        path: Path,
    ) -> None:
        self.store, self.parts, self.model = store, parts, model
        self.given, self.options, self.path = given, options, path
        self.optimizer = torch.optim.Adam(
            model.parameters(), lr=given.lr, weight_decay=1e-4, fused=True
        )
        self.state: dict[str, Any] = {
            "epoch": 0, "best_epoch": -1, "best_val": math.inf, "val_score": 0.0,
            "test_score": 0.0, "seconds": 0.0, "losses": [],
        }  # fmt: skip
        if path.exists():
            self._load()

    def run(self) -> dict[str, Any]:
        """Train to the end and return what there is to record."""
        saved = time.monotonic()
        while not self._is_over():
            start = time.monotonic()
            self._epoch()
            self.state["seconds"] += time.monotonic() - start
            if time.monotonic() - saved > self.options.save_every:
                self._save()
                saved = time.monotonic()
        self._save()
        return {key: value for key, value in self.state.items() if key != "losses"}

    def _is_over(self) -> bool:
        epoch, best = self.state["epoch"], self.state["best_epoch"]
        waited = epoch - 1 - best
        return epoch >= self.options.epochs or waited >= self.options.patience

    def _epoch(self) -> None:
        state, given = self.state, self.given
        factor = rate_at(state["epoch"], self.options.epochs, given.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = given.lr * factor
        order = self.parts["train"][torch.randperm(len(self.parts["train"]))]
        self.model.train()
        total = 0.0
        for index in order.split(given.batch):
            loss, _ = self._loss(index)
            self.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            total += float(loss.detach()) * len(index)
        val, score = self._measure("val")
        if val < state["best_val"]:
            state.update(best_val=val, val_score=score, best_epoch=state["epoch"])
            state["test_score"] = self._measure("test")[1]
        state["losses"].append([total / len(order), val])
        state["epoch"] += 1
        if state["epoch"] % self.options.log_every == 0:
            figures = f"train {total / len(order):.4f} val {val:.4f} {score:.4f}"
            best = f"best {state['best_epoch']} test {state['test_score']:.4f}"
            seconds = state["seconds"] / state["epoch"]
            name, epoch = self.path.stem, state["epoch"]
            print(f"{name} {epoch} {figures} {best} {seconds:.1f}s", flush=True)

    def _loss(self, index: Tensor) -> tuple[Tensor, Tensor]:
        batch = self.store.batch(index)
        out = self.model(batch.x, batch.edge_index, batch.batch, len(index))
        return cross_entropy(out, batch.y), (out.argmax(-1) == batch.y).sum()

    @torch.no_grad()
    def _measure(self, part: str) -> tuple[float, float]:
        """Return mean loss and accuracy of a part."""
        self.model.eval()
        total, hits, index = 0.0, 0, self.parts[part]
        for some in index.split(self.given.batch):
            loss, right = self._loss(some)
            total, hits = total + float(loss) * len(some), hits + int(right)
        return total / len(index), hits / len(index)

    def _save(self) -> None:
        held = {
            "state": self.state,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
        }
        part = self.path.with_suffix(f".{os.getpid()}.part")
        torch.save(held, part)
        part.replace(self.path)

    def _load(self) -> None:
        held = torch.load(self.path, weights_only=True)
        self.state = held["state"]
        self.model.load_state_dict(held["model"])
        self.optimizer.load_state_dict(held["optimizer"])
        for group in self.optimizer.param_groups:
            group["fused"] = True  # older checkpoints say otherwise
        torch.set_rng_state(held["random"])


def finished(path: Path) -> set[tuple[str, str, int, int]]:
    """Return model, data set, seed and fold of the recorded runs."""
    if not path.exists():
        return set()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {(r["model"], r["data"], r["seed"], r["fold"]) for r in lines}


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("data", choices=GRAPH_SETTINGS)
    parser.add_argument("--root", type=Path, required=True, help="folder of TU sets")
    parser.add_argument(
        "--splits", type=Path, required=True, help="folds as .json or .json.gz"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--models", nargs="+", choices=BUILDERS, default=list(BUILDERS))
    parser.add_argument("--folds", nargs="+", type=int, help="from 0; default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--patience", type=int, default=50)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--save-every", type=float, default=60.0, help="seconds")
    parser.add_argument("--log-every", type=int, default=5, help="epochs")
    parser.add_argument(
        "--bf16", action="store_true", help="products of float32 matrices in bfloat16"
    )
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """Train what is missing, fold by fold."""
    options = parse(words)
    torch.set_num_threads(options.threads)
    if options.bf16:
        torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    store = load_store(options.data, options.root)
    folds = read_folds(options.splits)
    given = GRAPH_SETTINGS[options.data]
    classes, features = int(store.y.max()) + 1, store.num_node_features
    options.out.mkdir(parents=True, exist_ok=True)
    results = options.out / RESULTS
    for number in options.folds or range(len(folds)):
        for name in options.models:
            key = (name, options.data, options.seed, number)
            if key in finished(results):
                continue
            torch.manual_seed(options.seed)
            model = build_graph_model(name, features, classes, given)
            stem = f"{options.data}-{name}-seed{options.seed}-fold{number}"
            path = options.out / f"{stem}.pt"
            fold = Fold(store, folds[number], model, given, options, path)
            found = fold.run()
            line = {
                "model": name, "data": options.data, "seed": options.seed,
                "fold": number, "epochs": options.epochs, "bf16": options.bf16,
                "patience": options.patience, **found, **record.surroundings(),
            }  # fmt: skip
            record.append(results, line)
            print(json.dumps({key: line[key] for key in list(line)[:12]}), flush=True)
            path.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
