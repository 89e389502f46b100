"""Training steps on labelled copies beside plain expanded PyG code.

``python -m benchmarks.kl_step --root DATA`` takes 128 molecules of ogbg-molhiv (laid
out under DATA as OGB does), 6 layers of width 64, radius 3. Both sides of a row run
in one process in turn; memory is the rise of the resident peak in another process. The
plain side is GINConv on the copies, written here. For comparison, measured elsewhere on
128 ZINC-like molecules with width 96: PyGHO's NGNN takes 0.80-0.84 CPU-s and 724 MiB
where plain code takes 0.44-0.59 s and 567 MiB.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Linear, Module, ModuleList, ReLU, Sequential
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GINConv, global_add_pool, global_mean_pool
from torch_geometric.utils import from_networkx

from benchmarks import record
from benchmarks.harness import measure_pairs, peak_rise
from pyg_pool.kernels import warm_up
from pyg_pool.models import KLGNN
from pyg_pool.transforms import KLTuples

WIDTH, LAYERS, RADIUS = 64, 6, 3


class PlainGIN(Module):
    """GINConv layers on a graph of copies, one mean per copy, one sum per graph."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        widths = [in_channels] + [WIDTH] * LAYERS
        self.convs = ModuleList(
            GINConv(
                Sequential(
                    Linear(a, WIDTH), BatchNorm1d(WIDTH), ReLU(), Linear(WIDTH, WIDTH)
                )
            )
            for a in widths[:-1]
        )
        self.head = Sequential(Linear(WIDTH, WIDTH), ReLU(), Linear(WIDTH, 1))

    def forward(self, x: Tensor, copies: Any, label: Tensor) -> Tensor:
        """One row per graph."""
        h = torch.cat([x[copies.pair_node], label], dim=1)
        for conv in self.convs:
            h = conv(h, copies.edge_index).relu()
        number = len(copies.tuples)
        h = global_mean_pool(h, copies.pair_tuple, number)
        h = global_add_pool(h, copies.tuples.batch, copies.tuples.batch_size)
        return self.head(h)


def molecules(root: Path) -> list[Data]:
    """Every 321st molecule of the set."""
    from pyg_pool.train import load_dataset

    graphs = load_dataset("ogbg-molhiv", str(root)).graphs
    chosen = graphs[list(range(0, 128 * 321, 321))]
    return [
        Data(x=each.x[:, :1].float(), edge_index=each.edge_index) for each in chosen
    ]


def large_graph() -> list[Data]:
    """A 4-regular graph of 500 nodes."""
    data = from_networkx(nx.random_regular_graph(4, 500, seed=3))
    return [Data(x=torch.ones(500, 1), edge_index=data.edge_index)]


ROWS: dict[str, dict[str, Any]] = {
    "ngnn": {"l": 1, "ego": RADIUS, "tuple_pool": "sum", "node_pool": "mean"},
    "root+neighbour": {
        "l": 2,
        "domain": "star",
        "ego": RADIUS,
        "tuple_pool": "sum",
        "node_pool": "mean",
    },
    "ppgn sparse": {"k": 2, "l": 0, "max_distance": RADIUS},
    "full 500": {"l": 1, "tuple_pool": "sum", "node_pool": "mean"},
}


def steps(row: str, root: Path) -> tuple[Callable[[], None], Callable[[], None]]:
    """A step of ours, and one of the plain code on the same copies."""
    torch.manual_seed(1)
    options = ROWS[row]
    graphs = large_graph() if row == "full 500" else molecules(root)
    ego, labels = options.get("ego", RADIUS), options.get("l", 0)
    if row == "full 500":
        ego = None
    change = KLTuples(
        max(labels, 1),
        domain=options.get("domain", "distinct"),
        ego=ego,
        max_distance=RADIUS if "k" in options else None,
    )
    batch = Batch.from_data_list([change(each) for each in graphs])
    copies = change.copies(batch)
    size = len(graphs)
    ours = KLGNN(1, WIDTH, 1, LAYERS, **options).train()
    index = copies.tuples.index[copies.pair_tuple]
    label = (index == copies.pair_node.view(-1, 1)).float()
    plain = PlainGIN(1 + label.size(1)).train()
    given: dict[str, Any] = {"batch": batch.batch, "batch_size": size}

    def own() -> None:
        if "k" in options:
            pairs = change.pairs(batch)
            rows = ours.network(batch.x, batch.edge_index, pairs=pairs, **given)
            out = ours.head(rows)
        else:
            out = ours(batch.x, batch.edge_index, copies=copies, **given)
        out.square().sum().backward()
        ours.zero_grad(set_to_none=True)

    def peer() -> None:
        plain(batch.x, copies, label).square().sum().backward()
        plain.zero_grad(set_to_none=True)

    return own, peer


def memory_of(row: str, root: Path, side: int, out: Any) -> None:
    """Rise of the peak over a few steps, in a process of its own."""
    torch.set_num_threads(1)
    warm_up()
    step = steps(row, root)[side]
    step()
    out.put(peak_rise(step))


def preparation(root: Path) -> float:
    """Milliseconds of the transform per molecule."""
    graphs, change = molecules(root), KLTuples(1, ego=RADIUS)
    change(graphs[0])
    start = time.perf_counter()
    for each in graphs:
        change(each)
    return 1000 * (time.perf_counter() - start) / len(graphs)


def main() -> None:
    """Print a line of JSON per row, and record it where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--out", type=Path, help="file of lines to add to")
    args = parser.parse_args()

    def tell(line: dict[str, Any]) -> None:
        print(json.dumps(line), flush=True)
        if args.out is not None:
            record.append(args.out, {**line, **record.surroundings()})

    torch.set_num_threads(1)
    warm_up()
    context = multiprocessing.get_context("spawn")
    for row in args.rows:
        own, peer = steps(row, args.root)
        times = measure_pairs(own, peer, pairs=args.pairs)
        rises = []
        for side in range(2):
            queue = context.Queue()
            child = context.Process(
                target=memory_of, args=(row, args.root, side, queue)
            )
            child.start()
            rises.append(queue.get(timeout=1800))
            child.join()
        line = {
            "row": row,
            "ours s": round(statistics.median(times.ours), 4),
            "plain s": round(statistics.median(times.peer), 4),
            "faster": round(statistics.median(times.quotients), 2),
            "ours MiB": round(rises[0] / 2**20),
            "plain MiB": round(rises[1] / 2**20),
        }
        tell({**line, "pairs": args.pairs})
    tell({"row": "preparation", "preparation ms": round(preparation(args.root), 3)})


if __name__ == "__main__":
    main()
