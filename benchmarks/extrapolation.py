"""GNP and every fixed pooling where the test lies outside of the training range.

The same network is trained once per pooling, all else being equal::

    python -m benchmarks.extrapolation --size small
    python -m benchmarks.extrapolation --task shortest_path --pooling gnp-gnp min-min

A pooling is a word for the neighbours and one for the readout. Every finished run is
one JSON line in ``extrapolation.jsonl``; a run that was stopped goes on from its last
epoch when the same command is given again, also for more ``--epochs``. ``--table``
shows what is there: the test error after the last epoch, and that of the epoch with the
lowest validation error, which is drawn like the training samples and says little about
tests beyond them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Linear, Module, ModuleList, ReLU, Sequential
from torch.nn.functional import linear, mse_loss
from torch_geometric.nn.aggr import Aggregation
from torch_geometric.nn.resolver import aggregation_resolver

from benchmarks import record
from benchmarks.extrapolation_tasks import (
    FAMILIES,
    TASKS,
    Batch,
    Sample,
    Task,
    collate,
    samples_of,
)
from pyg_pool import GNPAggregation
from pyg_pool.readout import parameter_groups

FIXED = ("sum", "mean", "max", "min")
CLIP = 10.0
WEIGHT_DECAY = 1e-5
EXPONENT_LR = 0.05
FILE = "extrapolation.jsonl"
FOLDER = Path("runs/extrapolation")


def pooling_of(word: str, width: int) -> Aggregation:
    """A pooling by its word: a fixed one, ``gnp`` or ``gnp_mix``."""
    if word == "gnp":
        return GNPAggregation(width, mode="proj")
    if word == "gnp_mix":
        return GNPAggregation(width)
    return aggregation_resolver(word)


def layers(*widths: int) -> Sequential:
    """Linear layers with a ReLU behind each."""
    parts: list[Module] = []
    for a, b in pairwise(widths):
        parts += [Linear(a, b), ReLU()]
    return Sequential(*parts)


class Message(Module):
    """An MLP of both ends and the edge; its first layer is applied to the nodes.

    Args:
        width: Width of the nodes.
        edge_width: Width of the edges.
        hidden: Width of all layers.
        depth: Number of layers.
    """

    def __init__(self, width: int, edge_width: int, hidden: int, depth: int) -> None:
        super().__init__()
        self.width = width
        self.first = Linear(2 * width + edge_width, hidden)
        self.rest = layers(*[hidden] * depth)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """One row per edge."""
        widths = [self.width, self.width, self.first.weight.size(1) - 2 * self.width]
        own, other, edge = self.first.weight.split(widths, 1)
        source, target = edge_index
        rows = linear(x, other)[source] + linear(x, own, self.first.bias)[target]
        return self.rest((rows + linear(edge_attr, edge)).relu())


class Network(Module):
    """Rounds of message passing, then a readout or an MLP at each node."""

    def __init__(self, task: Task, sample: Sample, pooling: str) -> None:
        super().__init__()
        neighbours, readout = pooling.split("-")
        self.per_node = task.per_node
        hidden, width = task.hidden, sample.x.size(1)
        depth = 4 if task.per_node else 2  # layers of the relation MLP
        edge_width = sample.edge_attr.size(1)
        self.messages, self.poolings = ModuleList(), ModuleList()
        for i in range(task.rounds):
            before = width if i == 0 else hidden
            self.messages.append(Message(before, edge_width, hidden, depth))
            self.poolings.append(pooling_of(neighbours, hidden))
        if task.per_node:
            self.nodes = layers(width + hidden, hidden)
        elif task.rounds == 0:
            self.nodes = layers(width, hidden, hidden)
        else:
            self.nodes = layers(hidden, hidden) if task.node_layers else Sequential()
        self.readout = None if task.per_node else pooling_of(readout, hidden)
        self.last = Linear(hidden, sample.y.size(1))

    def forward(self, batch: Batch) -> Tensor:
        """The predictions."""
        x = batch.x
        for message, pooling in zip(self.messages, self.poolings, strict=True):
            rows = message(x, batch.edge_index, batch.edge_attr)
            x = pooling(rows, batch.edge_index[1], dim_size=batch.x.size(0))
        if self.readout is None:
            return self.last(self.nodes(torch.cat([batch.x, x], 1)))
        x = self.readout(self.nodes(x), batch.index, dim_size=batch.size)
        return self.last(x)


@torch.no_grad()
def errors(model: Module, samples: Sequence[Sample], size: int) -> tuple[float, float]:
    """Mean squared error, and mean error in per cent of the length of the target."""
    model.eval()
    squares, shares = [], []
    for start in range(0, len(samples), size):
        batch = collate(samples[start : start + size])
        gap = model(batch) - batch.y
        squares.append(gap.square().flatten())
        shares.append(gap.norm(dim=1) / batch.y.norm(dim=1))
    square, share = torch.cat(squares).mean(), torch.cat(shares).mean()
    return float(square), 100 * float(share)


def run(
    task: Task, parts: dict[str, list[Sample]], pooling: str, seed: int, file: Path
) -> dict[str, Any]:
    """Trains a network, going on from ``file`` where it exists."""
    torch.manual_seed(1 + seed)
    model = Network(task, parts["train"][0], pooling)
    groups = parameter_groups(model, EXPONENT_LR)
    groups = [group for group in groups if group["params"]]
    optimiser = torch.optim.Adam(groups, lr=task.lr, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, task.half_after, 0.5)
    state: dict[str, Any] = {"epoch": 0, "seconds": 0.0, "best": None, "curve": []}
    things = {"model": model, "optimiser": optimiser, "schedule": schedule}
    if file.exists():
        saved = torch.load(file, weights_only=True)
        if saved["state"]["epoch"] <= task.epochs:
            state = saved["state"]
            for name, thing in things.items():
                thing.load_state_dict(saved[name])
    while state["epoch"] < task.epochs:
        begin = time.perf_counter()
        loss = _epoch(model, optimiser, task, parts["train"], (seed, state["epoch"]))
        schedule.step()
        state["epoch"] += 1
        _note(model, task, parts, state, loss)
        state["seconds"] += time.perf_counter() - begin
        whole = {name: thing.state_dict() for name, thing in things.items()}
        file.parent.mkdir(parents=True, exist_ok=True)
        torch.save({**whole, "state": state}, file.with_suffix(".new"))
        file.with_suffix(".new").replace(file)
        print(
            f"{file.stem} epoch {state['epoch']}: loss {loss:.4g}, best "
            f"{ {k: round(v, 3) for k, v in state['best'].items()} }",
            flush=True,
        )
    exponents = [
        {"p": m.p.tolist(), "q": m.q.tolist()}
        for m in model.modules()
        if isinstance(m, GNPAggregation)
    ]
    last = {f"{t}_mape": errors(model, parts[t], task.batch)[1] for t in task.tests}
    return {**state, "last": last, "exponents_at_end": exponents}


def _epoch(
    model: Module,
    optimiser: Any,
    task: Task,
    samples: Sequence[Sample],
    key: tuple[int, int],
) -> float:
    """One pass over the training samples, in an order that the key decides."""
    model.train()
    chance = torch.Generator().manual_seed(1000 * key[0] + key[1])
    order = torch.randperm(len(samples), generator=chance)
    total = 0.0
    for ids in order.split(task.batch):
        batch = collate([samples[int(i)] for i in ids])
        optimiser.zero_grad()
        loss = mse_loss(model(batch), batch.y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        total += float(loss.detach()) * len(ids)
    return total / len(samples)


def _note(
    model: Module,
    task: Task,
    parts: dict[str, list[Sample]],
    state: dict[str, Any],
    loss: float,
) -> None:
    """Tests the epochs that are the best so far on the validation samples."""
    square, _ = errors(model, parts["validation"], task.batch)
    state["curve"].append([loss, square])
    if state["best"] is None or square < state["best"]["validation_mse"]:
        state["best"] = {"epoch": state["epoch"], "validation_mse": square}
        for name in task.tests:
            state["best"][f"{name}_mape"] = errors(model, parts[name], task.batch)[1]


def poolings_of(task: Task) -> list[str]:
    """GNP, and every single fixed choice."""
    if task.per_node:
        return ["gnp-none", *(f"{word}-none" for word in FIXED)]
    if task.rounds == 0:
        return ["none-gnp", *(f"none-{word}" for word in FIXED)]
    return ["gnp-gnp", *(f"{a}-{b}" for a in FIXED for b in FIXED)]


def finished(file: Path) -> dict[str, dict[str, Any]]:
    """Finished runs by their key."""
    if not file.exists():
        return {}
    lines = (json.loads(line) for line in file.read_text().splitlines())
    return {line["key"]: line for line in lines}


def ordered(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Runs by task and size, those with the least test error first."""

    def place(line: dict[str, Any]) -> tuple[str, str, float]:
        return line["task"], line["size"], line["last"]["test_mape"]

    return sorted(lines, key=place)


def table(lines: Sequence[dict[str, Any]]) -> str:
    """Test errors after the last epoch and the chosen one, best first per task."""
    rows = ["task, size, pooling, family, seed, epochs: MAPE in % of the tests"]
    for line in ordered(lines):
        names = ("task", "size", "pooling", "family", "seed", "epoch")
        found = [
            f"{key} {value:.2f} (chosen {line['best'][key]:.2f})"
            for key, value in line["last"].items()
        ]
        rows.append(" ".join(str(line[n]) for n in names) + ": " + ", ".join(found))
    return "\n".join(rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what is asked for and not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", nargs="+", choices=TASKS, default=["max_degree"])
    parser.add_argument("--size", choices=("small", "full"), default="small")
    parser.add_argument("--pooling", nargs="+", help="default: GNP and all fixed ones")
    parser.add_argument("--family", nargs="+", choices=FAMILIES, default=["general"])
    parser.add_argument("--seed", nargs="+", type=int, default=[0])
    parser.add_argument("--epochs", type=int, help="default: that of the task")
    parser.add_argument("--samples", nargs=3, type=int, help="train, validation, test")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=record.RESULTS / "extrapolation")
    parser.add_argument("--runs", type=Path, default=FOLDER, help="unfinished runs")
    parser.add_argument("--table", action="store_true", help="show results only")
    options = parser.parse_args(argv)
    results = options.out / FILE
    if options.table:
        print(table(list(finished(results).values())))
        return 0
    torch.set_num_threads(options.threads)
    for name in options.task:
        task = TASKS[name]
        if options.size == "small":
            task = dataclasses.replace(task, **task.small)
        changes = {"epochs": options.epochs, "sizes": options.samples}
        given = {k: v for k, v in changes.items() if v is not None}
        task = dataclasses.replace(task, **given)
        for family in options.family:
            for seed in options.seed:
                _all_poolings(name, task, family, seed, options, results)
    return 0


def _all_poolings(
    name: str, task: Task, family: str, seed: int, options: Any, results: Path
) -> None:
    """One run per pooling on the same samples."""
    parts: dict[str, list[Sample]] = {}
    for pooling in options.pooling or poolings_of(task):
        words = (name, options.size, family, pooling, *task.sizes, seed)
        file = options.runs / f"{'_'.join(map(str, words))}.pt"
        key = f"{file.stem}_{task.epochs}"
        if key in finished(results):
            continue
        names = ("train", "validation", *task.tests)
        sizes = (*task.sizes, *task.sizes[2:] * (len(task.tests) - 1))
        for part, count in zip(names, sizes, strict=True):
            if part not in parts:
                parts[part] = samples_of(task, part, count, family, seed)
        found = run(task, parts, pooling, seed, file)
        line = {
            "key": key, "task": name, "size": options.size, "family": family,
            "pooling": pooling, "samples": list(task.sizes), "seed": seed, **found,
        }  # fmt: skip
        record.append(results, {**record.surroundings(), **line})


if __name__ == "__main__":
    raise SystemExit(main())
