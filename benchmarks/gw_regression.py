"""Regression on coarse molecules: a graph convolution on the operator of the clusters.

Molecules are coarsened to 0.3 of their atoms, five at least; clusters get the mean of
the atoms' one-hot features, edges the operator ``"gcn"``, which averages the fine
graph's normalised message; the readout is the mean that weights clusters by their
sizes. Four convolutions of 145 channels with batch norm and residual, L1 loss, Adam at
1e-3, halved after ten epochs without progress, until 1e-5: the protocol of Chen, Yao,
Yang, Chen (ICML 2023) as their code has it, on OGB's scaffold splits. One JSON line per
method and seed: mean absolute error (theirs) and root mean square error (OGB's) of the
test set at the best epoch of the validation set.

    python -m benchmarks.gw_regression --root data --sets ogbg-molesol --seeds 3
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from benchmarks.gw_coarsening import one, size_of

METHODS = (
    "fine",
    "multilevel",
    "multilevel_rw",
    "variation_edges",
    "kmeans_from_edges",
)


class Net(nn.Module):
    """Four convolutions on given operators, a weighted mean, a perceptron."""

    def __init__(self, in_channels: int, width: int = 145, depth: int = 4) -> None:
        super().__init__()
        self.first = nn.Linear(in_channels, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(depth))
        half, quarter = width // 2, width // 4
        self.head = nn.Sequential(
            nn.Linear(width, half),
            nn.ReLU(),
            nn.Linear(half, quarter),
            nn.ReLU(),
            nn.Linear(quarter, 1),
        )

    def forward(self, data: Any) -> Tensor:
        """One number per graph."""
        row, col = data.edge_index
        x = self.first(data.x)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            message = layer(x)[col] * data.edge_weight[:, None]
            total = torch.zeros_like(x).index_add(0, row, message)
            x = x + norm(total).relu()
        weighted = x * data.share[:, None]
        pooled = x.new_zeros(data.num_graphs, x.size(1))
        return self.head(pooled.index_add(0, data.batch, weighted)).view(-1)


def one_hot(x: Tensor) -> Tensor:
    """Each of the atoms' integer features as its own block of columns."""
    from ogb.utils.features import get_atom_feature_dims

    sizes = get_atom_feature_dims()
    parts = [nn.functional.one_hot(x[:, i], n) for i, n in enumerate(sizes)]
    return torch.cat(parts, 1).float()


def coarse(data: Data, method: str) -> Data:
    """The molecule that the network sees."""
    from pyg_pool.coarsen import from_labels

    x, nodes = one_hot(data.x), data.num_nodes
    if method == "fine" or nodes < 2 or data.edge_index.numel() == 0:
        found = from_labels(data.edge_index, torch.arange(nodes), size=nodes)
    else:
        found = one(data, size_of(0.3), method)
    small = found.graph("gcn", x=x)
    return Data(
        x=small.x,
        edge_index=small.edge_index,
        edge_weight=small.edge_weight.float(),
        share=found.size / nodes,
        y=data.y.view(-1).float(),
        num_nodes=found.num_clusters,
    )


def train(sets: dict[str, list[Data]], seed: int, epochs: int) -> dict[str, Any]:
    """Errors of the test set at the best validation epoch."""
    torch.manual_seed(seed)
    loaders = {
        name: DataLoader(part, batch_size=128, shuffle=name == "train")
        for name, part in sets.items()
    }
    model = Net(sets["train"][0].x.size(1))
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    slow = torch.optim.lr_scheduler.ReduceLROnPlateau(adam, factor=0.5, patience=10)
    best, out = float("inf"), {"mae": float("inf"), "rmse": float("inf")}
    for epoch in range(1, epochs + 1):
        model.train()
        for batch in loaders["train"]:
            adam.zero_grad()
            (model(batch) - batch.y).abs().mean().backward()
            adam.step()
        valid, _ = errors(model, loaders["val"])
        if valid < best:
            best, (mae, rmse) = valid, errors(model, loaders["test"])
            out = {"mae": mae, "rmse": rmse, "valid_mae": valid, "best_epoch": epoch}
        slow.step(valid)
        if adam.param_groups[0]["lr"] < 1e-5:
            break
    return {**out, "epochs": epoch}


@torch.no_grad()
def errors(model: Net, loader: Any) -> tuple[float, float]:
    """Mean absolute and root mean square error."""
    model.eval()
    gaps = torch.cat([model(batch) - batch.y for batch in loader])
    return float(gaps.abs().mean()), float(gaps.square().mean().sqrt())


def main() -> None:
    """Measure what the command line asks for; one JSON line each, at once."""
    from pyg_pool.train.ogb_sets import load_ogb

    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=["ogbg-molesol", "ogbg-mollipo"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    for name in args.sets:
        found = load_ogb(name, args.root, download=False)
        for method in args.methods:
            begin = time.process_time()
            graphs = [coarse(graph, method) for graph in found.graphs]
            seconds = time.process_time() - begin
            sets = {
                part: [graphs[i] for i in getattr(found.split, part).tolist()]
                for part in ("train", "val", "test")
            }
            for seed in range(args.seeds):
                begin = time.process_time()
                row = {
                    "set": name,
                    "table": "regression",
                    "ratio": 0.3,
                    "method": method,
                    "seed": seed,
                    **train(sets, seed, args.epochs),
                    "coarsening_cpu_seconds": seconds,
                }
                row["training_cpu_seconds"] = time.process_time() - begin
                print(json.dumps(row), flush=True)
                if args.out is not None:
                    with args.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
