"""Readouts on one and the same GIN backbone: accuracy over fixed folds.

Embedding, GIN layers with batch normalisation and ReLU, readout, and a head with one
hidden layer. All readouts see the last layer, HISTOGRAPH all of them. Adam, gradient
norm clipped at 1, the learning rate of GNP's exponents ten times that of the rest. The
test figure is the one of the epoch with the best validation score (of equal ones that
with the lower validation loss); training ends after ``--patience`` epochs without a
better one. Folds come from a file, as ``pyg_pool.train.load_dataset`` reads it; a fold
without a validation part gives a stratified tenth of train. A set of OGB keeps its own
split, and its "folds" are seeds.

    python -m benchmarks.readout_table MUTAG --root DATA --splits folds.json --out RUNS
    python -m benchmarks.readout_table MUTAG --out RUNS --show

Each fold is one JSON line in ``readout_table.jsonl``; a run that was stopped goes on
where it was.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn import (
    AttentionalAggregation,
    GINConv,
    GraphMultisetTransformer,
    MeanAggregation,
    Set2Set,
)

from benchmarks import record
from benchmarks.gin_backbone import gin_layer
from pyg_pool import GNPAggregation, HistographAggregation
from pyg_pool.readout import parameter_groups
from pyg_pool.train import GraphDataset, GraphStore, NodeEncoder, load_dataset

RESULTS = "readout_table.jsonl"
SETTINGS = ("hidden", "layers", "batch", "lr", "epochs", "patience", "dropout")


def mlp(*widths: int) -> torch.nn.Sequential:
    """Two linear layers with a ReLU between them."""
    first, middle, last = widths
    return torch.nn.Sequential(
        torch.nn.Linear(first, middle), torch.nn.ReLU(), torch.nn.Linear(middle, last)
    )


def attentional(hidden: int, _: int) -> torch.nn.Module:
    """PyG's gated sum."""
    return AttentionalAggregation(mlp(hidden, hidden, 1))


def histograph(hidden: int, layers: int) -> torch.nn.Module:
    """Our readout of all layers."""
    return HistographAggregation(hidden, hidden, layers + 1)


BUILDERS: dict[str, Callable[[int, int], torch.nn.Module]] = {
    "mean": lambda hidden, layers: MeanAggregation(),
    "gnp": lambda hidden, layers: GNPAggregation(hidden, mode="proj"),
    "histograph": histograph,
    "attentional": attentional,
    "gmt": lambda hidden, layers: GraphMultisetTransformer(hidden, k=10, heads=4),
    "set2set": lambda hidden, layers: Set2Set(hidden, processing_steps=3),
}


class Part(NamedTuple):
    """A batch of graphs."""

    x: Tensor
    edge_index: Tensor
    batch: Tensor
    y: Tensor


class Network(torch.nn.Module):
    """Embedding, GIN layers, a readout and a head."""

    def __init__(self, dataset: GraphDataset, name: str, given: Any) -> None:
        """Build it for the features and targets of a data set."""
        super().__init__()
        hidden = given.hidden
        kind, channels = dataset.feature_kind, dataset.in_channels
        self.embed = NodeEncoder(kind, channels, hidden)
        self.convs = torch.nn.ModuleList(
            GINConv(mlp(hidden, hidden, hidden), train_eps=True)
            for _ in range(given.layers)
        )
        self.norms = torch.nn.ModuleList(
            torch.nn.BatchNorm1d(hidden) for _ in self.convs
        )
        self.sees_all = name == "histograph"
        self.readout = BUILDERS[name](hidden, given.layers)
        width = 2 * hidden if name == "set2set" else hidden
        self.head = torch.nn.Sequential(
            torch.nn.Linear(width, hidden), torch.nn.ReLU(),
            torch.nn.Dropout(given.dropout),
            torch.nn.Linear(hidden, dataset.num_outputs),
        )  # fmt: skip

    def forward(self, data: Any) -> Tensor:
        """Return one row of outputs per graph."""
        layers = [self.embed(data.x)]
        edges, back = data.edge_index, data.edge_index.flip(0)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            layers.append(gin_layer(conv, norm, layers[-1], edges, back))
        x = torch.cat(layers, -1) if self.sees_all else layers[-1]
        size = data.y.size(0)
        out: Tensor = self.head(self.readout(x, data.batch, dim_size=size))
        return out


def train_fold(
    dataset: GraphDataset, name: str, parts: dict[str, Tensor], given: Any
) -> dict[str, Any]:
    """Train one readout on one fold and return what there is to record."""
    model = Network(dataset, name, given)
    groups = parameter_groups(model, lr=10 * given.lr)
    groups = [group for group in groups if group["params"]]
    optimizer = torch.optim.Adam(groups, lr=given.lr, fused=True)
    held = {part: gather(dataset, parts[part]) for part in ("val", "test")}
    best: dict[str, Any] = {"key": (-float("inf"), 0.0), "epoch": -1}
    start = time.monotonic()
    epoch = 0
    for epoch in range(given.epochs):
        train_epoch(model, dataset, parts["train"], optimizer, given.batch)
        score, loss = measure(model, dataset, held["val"])
        key = (score if dataset.greater_is_better else -score, -loss)
        if key > best["key"]:
            test = measure(model, dataset, held["test"])[0]
            best = {"key": key, "epoch": epoch, "val": score, "test": test}
        if epoch - best["epoch"] >= given.patience:
            break
    return {
        "val": best["val"], "test": best["test"], "best_epoch": best["epoch"],
        "epochs_run": epoch + 1, "seconds": time.monotonic() - start,
        "parameters": sum(p.numel() for p in model.parameters()),
    }  # fmt: skip


def train_epoch(
    model: torch.nn.Module,
    dataset: GraphDataset,
    index: Tensor,
    optimizer: torch.optim.Optimizer,
    size: int,
) -> None:
    """Pass once over the graphs in a new order."""
    model.train()
    parameters = list(model.parameters())
    for batch in batches(dataset.graphs[index[torch.randperm(len(index))]], size):
        optimizer.zero_grad()
        dataset.loss(model(batch), batch.y).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()


def batches(graphs: GraphStore, size: int) -> Iterator[Part]:
    """Cut graphs into batches; all are put side by side once, not batch by batch."""
    whole = graphs.batch()
    edge_ptr = [0, *graphs.num_edges.cumsum(0).tolist()]
    node_ptr = whole.ptr.tolist()
    for first in range(0, len(graphs), size):
        last = min(first + size, len(graphs))
        if last - first < 2:
            continue  # batch normalisation needs two rows
        start, stop = node_ptr[first], node_ptr[last]
        yield Part(
            x=whole.x[start:stop],
            edge_index=whole.edge_index[:, edge_ptr[first] : edge_ptr[last]] - start,
            batch=whole.batch[start:stop] - first,
            y=whole.y[first:last],
        )


def gather(dataset: GraphDataset, index: Tensor) -> list[Any]:
    """Return batches of graphs whose order does not matter."""
    return [dataset.graphs.batch(chosen) for chosen in index.split(256)]


@torch.no_grad()
def measure(
    model: torch.nn.Module, dataset: GraphDataset, batches: list[Any]
) -> tuple[float, float]:
    """Return score and loss of some graphs."""
    model.eval()
    found = torch.cat([model(batch) for batch in batches])
    wanted = torch.cat([batch.y for batch in batches])
    return dataset.evaluate(wanted, found), float(dataset.loss(found, wanted))


def read_results(path: Path) -> list[dict[str, Any]]:
    """Return the recorded folds."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def same_run(line: dict[str, Any], given: Any, readout: str, fold: int) -> bool:
    """Whether a record is that of a fold with these settings."""
    wanted = {name: getattr(given, name) for name in ("data", "seed", *SETTINGS)}
    wanted.update(readout=readout, fold=fold)
    return all(line[name] == value for name, value in wanted.items())


def table(lines: list[dict[str, Any]]) -> str:
    """Return mean and deviation of each data set and readout."""
    cells: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for line in lines:
        key = line["data"], line["metric"], line["epochs"], line["readout"]
        cells[key].append(line["test"])
    rows = [
        "| data | metric | epochs up to | readout | folds | test |",
        "|" + "---|" * 6,
    ]
    for key, values in cells.items():
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        figure = f"{statistics.mean(values):.4f} ± {spread:.4f}"
        rows.append(f"| {' | '.join(map(str, key))} | {len(values)} | {figure} |")
    return "\n".join(rows)


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("data", help="a TU set or ogbg-mol*")
    parser.add_argument("--root", type=Path, default=Path("data"))
    parser.add_argument("--splits", type=Path, help="folds as JSON")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument(
        "--readouts", nargs="+", choices=BUILDERS, default=list(BUILDERS)
    )
    parser.add_argument("--folds", nargs="+", type=int, help="from 0; default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--dropout", type=float, default=0.5)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--patience", type=int, default=50)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print the table and stop")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """Train what is missing, fold by fold, and print the table."""
    given = parse(words)
    torch.set_num_threads(given.threads)
    results = given.out / RESULTS
    if given.show:
        print(table(read_results(results)))
        return 0
    is_ogb = given.data.startswith("ogbg")
    options: dict[str, Any] = {} if is_ogb else {"use_node_attr": True}
    dataset = load_dataset(
        given.data, given.root, split_file=given.splits, download=False, **options
    )
    given.out.mkdir(parents=True, exist_ok=True)
    number = len(dataset.splits) if len(dataset.splits) > 1 else 3
    for fold in range(number) if given.folds is None else given.folds:
        split = dataset.splits[fold % len(dataset.splits)]
        parts = {part: split[part] for part in ("train", "val", "test")}
        for readout in given.readouts:
            if any(same_run(li, given, readout, fold) for li in read_results(results)):
                continue
            torch.manual_seed(1000 * given.seed + fold)
            found = train_fold(dataset, readout, parts, given)
            line = {
                "data": given.data, "readout": readout, "fold": fold,
                "seed": given.seed, "metric": dataset.metric, **found,
                **{name: getattr(given, name) for name in SETTINGS},
                **record.surroundings(),
            }  # fmt: skip
            record.append(results, line)
            shown = {k: line[k] for k in ("data", "readout", "fold", "val", "test")}
            print(json.dumps({**shown, "seconds": line["seconds"]}), flush=True)
    print(table(read_results(results)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
