"""Node classification on Cora and CiteSeer: graph parsing, Graph U-Net and GCN.

``public`` is the usual split of 20 labels a class, ten runs with different weights;
``random`` are ten seeded splits of 60/20/20 per cent of the nodes, drawn here and not
those of any paper. The test figure is the one of the epoch with the lowest validation
loss. Graph parsing uses the authors' settings: 256 features, own loops, weight decay
5e-4, gradient norm clipped at 1, warm-up and cosine. The U-Net has the settings of
PyG's example, GCN those of its authors.

    python -m benchmarks.gpn_nodes Cora --root DATA --out RUNS

One JSON line per model, split and run in ``gpn_nodes.jsonl``; runs that are there are
passed over.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.datasets import Planetoid
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import NormalizeFeatures
from torch_geometric.utils import dropout_edge

from benchmarks import record
from benchmarks.gpn_training import rate_at
from pyg_pool.kernels.relu_dropout import relu_dropout
from pyg_pool.models import GraphParsingNetwork, GraphUNet

RESULTS = "gpn_nodes.jsonl"


@dataclass(frozen=True)
class Recipe:
    """How a model is built and trained."""

    build: Callable[[int, int, int], Module]
    lr: float
    decay: float
    epochs: int
    warmup: int = 0
    clip: float | None = None


class GCN(Module):
    """Two graph convolutions with dropout in front of each."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first, self.last = GCNConv(features, 64), GCNConv(64, classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return a row of logits per node."""
        # The inputs are not negative, so the ReLU in front of the dropout is none.
        x = self.first(relu_dropout(x, 0.5, training=self.training), edge_index)
        return self.last(relu_dropout(x, 0.5, training=self.training), edge_index)


class UNet(Module):
    """The library's Graph U-Net with the dropouts of PyG's example."""

    def __init__(self, features: int, classes: int, nodes: int) -> None:
        super().__init__()
        self.net = GraphUNet(features, 32, classes, 3, [2000 / nodes, 0.5])

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return a row of logits per node."""
        edge_index, _ = dropout_edge(
            edge_index, 0.2, force_undirected=True, training=self.training
        )
        x = relu_dropout(x, 0.92, training=self.training)  # inputs are not negative
        return self.net(x, edge_index)


def _parsing(layers: int, second: int, edge_layers: int, rate: float, drop: float):
    def build(features: int, classes: int, nodes: int) -> Module:
        return GraphParsingNetwork(
            features,
            256,
            classes,
            task="node",
            num_layers=layers,
            feature_layers=second,
            deepsets_layers=2,
            score_layers=edge_layers,
            dropout=rate,
            dropout_parsing=drop,
        )

    return build


GPN = {
    "Cora": _parsing(1, 2, 1, 0.5, 0.5),
    "CiteSeer": _parsing(2, 3, 3, 0.6, 0.1),
}


def recipes(data: str) -> dict[str, Recipe]:
    """Return the models by name."""
    return {
        "gpn": Recipe(GPN[data], 0.005, 5e-4, 2000, warmup=200, clip=1.0),
        "graph_unet": Recipe(UNet, 0.01, 1e-3, 200),
        "gcn": Recipe(lambda f, c, _: GCN(f, c), 0.01, 5e-4, 200),
    }


def random_split(data: Data, seed: int) -> dict[str, Tensor]:
    """Return masks of 60, 20 and 20 per cent of the nodes."""
    order = torch.randperm(
        data.num_nodes, generator=torch.Generator().manual_seed(seed)
    )
    first, second = round(0.6 * len(order)), round(0.8 * len(order))
    bounds = {"train": (0, first), "val": (first, second), "test": (second, None)}
    masks = {}
    for name, (start, stop) in bounds.items():
        masks[name] = torch.zeros(data.num_nodes, dtype=torch.bool)
        masks[name][order[start:stop]] = True
    return masks


def public_split(data: Data, seed: int) -> dict[str, Tensor]:
    """Return the masks of the data set; the seed only draws the weights."""
    return {name: data[f"{name}_mask"] for name in ("train", "val", "test")}


SPLITS = {"public": public_split, "random": random_split}


def train(
    data: Data,
    masks: dict[str, Tensor],
    recipe: Recipe,
    seed: int,
    *,
    epochs: int | None = None,
    patience: int | None = None,
) -> dict[str, Any]:
    """Train once and return the figures at the lowest validation loss."""
    torch.manual_seed(seed)
    classes = int(data.y.max()) + 1
    model = recipe.build(data.num_features, classes, data.num_nodes)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=recipe.lr, weight_decay=recipe.decay, fused=True
    )
    total = epochs or recipe.epochs
    warmup = min(recipe.warmup, total // 10)
    best: dict[str, Any] = {"best_val": math.inf, "best_epoch": -1}
    start = time.perf_counter()
    for epoch in range(total):
        for group in optimizer.param_groups:
            group["lr"] = recipe.lr * rate_at(epoch, total, warmup)
        model.train()
        out = model(data.x, data.edge_index)
        loss = cross_entropy(out[masks["train"]], data.y[masks["train"]])
        optimizer.zero_grad()
        loss.backward()
        if recipe.clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step()
        if (epoch + 1) % (10 if total > 500 else 1) > 0:
            continue
        model.eval()
        with torch.no_grad():
            out = model(data.x, data.edge_index)
        value = float(cross_entropy(out[masks["val"]], data.y[masks["val"]]))
        if value < best["best_val"]:
            right = out.argmax(-1) == data.y
            best = {"best_val": value, "best_epoch": epoch}
            best |= {
                f"{n}_score": float(right[m].float().mean()) for n, m in masks.items()
            }
        elif patience is not None and epoch - best["best_epoch"] >= patience:
            break
    seconds = time.perf_counter() - start
    return {**best, "epochs": total, "patience": patience, "seconds": seconds}


def main(words: list[str] | None = None) -> int:
    """Train what is missing and print means and deviations."""
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("data", choices=GPN)
    parser.add_argument("--root", type=Path, required=True, help="folder of Planetoid")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    names = list(recipes("Cora"))
    parser.add_argument("--models", nargs="+", choices=names, default=names)
    parser.add_argument("--splits", nargs="+", choices=SPLITS, default=list(SPLITS))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--epochs", type=int, help="default: those of the recipe")
    parser.add_argument(
        "--patience", type=int, help="stop so many epochs after the best one"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--bf16", action="store_true", help="products of float32 matrices in bfloat16"
    )
    options = parser.parse_args(words)
    torch.set_num_threads(options.threads)
    if options.bf16:
        torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    data = Planetoid(str(options.root), options.data, transform=NormalizeFeatures())[0]
    path = options.out / RESULTS
    for split in options.splits:
        for name in options.models:
            scores = []
            for seed in range(options.runs):
                key = {
                    "data": options.data,
                    "split": split,
                    "model": name,
                    "seed": seed,
                }
                done = known(path, key)
                if done is None:
                    masks = SPLITS[split](data, seed)
                    recipe = recipes(options.data)[name]
                    limits = {"epochs": options.epochs, "patience": options.patience}
                    done = train(data, masks, recipe, seed, **limits)
                    done |= {**key, "bf16": options.bf16, **record.surroundings()}
                    record.append(path, done)
                scores.append(done["test_score"])
            found = torch.tensor(scores) * 100
            spread = f"{found.std(correction=0):.2f}"
            print(
                options.data, split, name, f"{found.mean():.2f} ± {spread}", flush=True
            )
    return 0


def known(path: Path, key: dict[str, Any]) -> dict[str, Any] | None:
    """Return the record of a run, if there is one."""
    if not path.exists():
        return None
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return next((r for r in lines if {k: r[k] for k in key} == key), None)


if __name__ == "__main__":
    raise SystemExit(main())
