"""The sets of :mod:`benchmarks.expressivity`, and which graphs are for what."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import networkx as nx
import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_pool.relational import from_graph6

LENGTHS = (3, 4, 5, 6)
#: Permuted copies of each strongly regular graph that are tested.
COPIES = 10


@dataclass(frozen=True)
class Fold:
    """Numbers of the graphs to train on, to choose by and to judge on."""

    train: list[int]
    test: list[int]
    outputs: int
    val: list[int] = field(default_factory=list)


Task = Callable[[Path, Path], tuple[list[Data], list[Fold]]]


def read_set(file: Path) -> list[Data]:
    """Read graphs from flat arrays."""
    arrays = np.load(file)
    nodes, edges = arrays["num_nodes"].cumsum(), arrays["num_edges"].cumsum()
    out = []
    for i, size in enumerate(arrays["num_nodes"].tolist()):
        span = slice(int(edges[i]) - int(arrays["num_edges"][i]), int(edges[i]))
        index = torch.from_numpy(arrays["edge_index"][:, span].astype(np.int64))
        data = Data(edge_index=index, num_nodes=size, x=torch.ones(size, 1))
        if "node_label" in arrays:
            label = arrays["node_label"][int(nodes[i]) - size : int(nodes[i])]
            kinds = torch.from_numpy(label.astype(np.int64))
            data.x = torch.nn.functional.one_hot(kinds, 2).float()
        if arrays["y"].ndim == 1:
            data.y = torch.tensor([[int(arrays["y"][i])]])
        out.append(data)
    return out


def permuted(data: Data, generator: torch.Generator) -> Data:
    """The graph with its nodes in another order."""
    order = torch.randperm(int(data.num_nodes or 0), generator=generator)
    place = torch.argsort(order)
    return Data(x=data.x[order], edge_index=place[data.edge_index], y=data.y)


def cycle_counts(data: Data) -> Tensor:
    """Number of cycles of length 3, 4, 5 and 6 as subgraphs."""
    graph = nx.Graph(data.edge_index.t().tolist())
    count = [0] * len(LENGTHS)
    for cycle in nx.simple_cycles(graph, length_bound=max(LENGTHS)):
        count[len(cycle) - 3] += 1
    return torch.tensor([count], dtype=torch.float32)


def exp(root: Path, runs: Path) -> tuple[list[Data], list[Fold]]:
    """Ten folds by pair: graphs 2 i and 2 i + 1 are a pair."""
    graphs = read_set(root / "EXP" / "EXP.npz")
    order = torch.randperm(600, generator=torch.Generator().manual_seed(3))
    folds = []
    for number in range(10):
        test = set(order[number::10].tolist())
        parts: dict[bool, list[int]] = {True: [], False: []}
        for i in range(len(graphs)):
            parts[i // 2 in test].append(i)
        folds.append(Fold(parts[False], parts[True], 2))
    return graphs, folds


def csl(root: Path, runs: Path) -> tuple[list[Data], list[Fold]]:
    """The five published folds; the validation parts are left alone."""
    graphs = read_set(root / "CSL" / "CSL.npz")
    file = next((root / "CSL").glob("splits*.json"))
    folds = json.loads(file.read_text())["folds"]
    return graphs, [Fold(fold["train"], fold["test"], 10) for fold in folds]


def sr25(root: Path, runs: Path) -> tuple[list[Data], list[Fold]]:
    """Train on the fifteen graphs, test on permuted copies of them.

    Raises:
        ValueError: If a graph of the file is not strongly regular.
    """
    lines = (root / "SR25" / "sr251256.g6").read_text().split()
    graphs = [from_graph6(line) for line in lines]
    for number, data in enumerate(graphs):
        table = torch.zeros(25, 25)
        table[data.edge_index[0], data.edge_index[1]] = 1.0
        want = 12 * torch.eye(25) + 5 * table + 6 * (1 - table - torch.eye(25))
        if not torch.equal(table @ table, want):
            raise ValueError(
                f"graph {number} of {root} is not strongly regular (25, 12, 5, 6), "
                f"expected the published fifteen; some copies of the file are damaged."
            )
        data.x, data.y = torch.ones(25, 1), torch.tensor([[number]])
    generator = torch.Generator().manual_seed(11)
    tests = [permuted(data, generator) for data in graphs for _ in range(COPIES)]
    size = len(graphs)
    fold = Fold(list(range(size)), list(range(size, size + len(tests))), size)
    return graphs + tests, [fold]


def counting(root: Path, runs: Path) -> tuple[list[Data], list[Fold]]:
    """The published split; counts over their deviation in the training part.

    Raises:
        ValueError: If the counted triangles are not those of the file.
    """
    file = root / "counting_er" / "counting_er.npz"
    graphs, arrays = read_set(file), np.load(file)
    kept = runs / "cycle_counts.npy"
    if kept.exists():
        counts = torch.from_numpy(np.load(kept))
    else:
        counts = torch.cat([cycle_counts(data) for data in graphs])
        runs.mkdir(parents=True, exist_ok=True)
        np.save(kept, counts.numpy())
    known = torch.from_numpy(arrays["y"][:, 0])
    if not torch.equal(counts[:, 0], known):
        raise ValueError(
            f"{file} has other numbers of triangles than its graphs, expected the "
            f"same; lay the file out again."
        )
    parts = {name: arrays[f"{name}_idx"].tolist() for name in ("train", "val", "test")}
    spread = counts[parts["train"]].std(0)
    for data, row in zip(graphs, counts / spread, strict=True):
        data.y = row.view(1, -1)
    return graphs, [Fold(parts["train"], parts["test"], len(LENGTHS), parts["val"])]


TASKS: dict[str, Task] = {
    "EXP": exp,
    "CSL": csl,
    "SR25": sr25,
    "counting": counting,
}
