"""How much of a graph's features survives one pooling: point coordinates, rebuilt.

Two GCN layers, one pooling, features brought back to the nodes, two GCN layers and a
linear map; nothing of the finer level goes around the pooling. The loss is the mean
squared error of the coordinates, scaled to variance 1. Each pooling has the same
budget of steps and, where its size is free, a third of the nodes. ``mse`` is measured
at the end without dropout, ``mse_training`` is the median of the last 20 steps.

Graph parsing finds its own size. Where features change smoothly along a graph so do
the scores, chains of best edges get long, and few clusters are left; dropping edges
breaks them.

    python -m benchmarks.reconstruction --out RUNS      # tgp's rows where it is there

One JSON line for each graph, pooling and seed in ``reconstruction.jsonl``; those that
are there are passed over.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Linear, Module
from torch.nn.functional import mse_loss
from torch_geometric.nn import EdgePooling, GCNConv
from torch_geometric.utils import grid as grid_of

from benchmarks import record
from benchmarks.gpn_nodes import known
from pyg_pool import GPool, GraphParsingPooling

WIDTH = 32
Pooled = tuple[Tensor, Callable[[Tensor], Tensor], Any]


def ring(size: int = 200) -> tuple[Tensor, Tensor]:
    """Points on a circle, joined to the next."""
    nodes = torch.arange(size)
    angle = nodes * (2 * torch.pi / size)
    ends = torch.stack([nodes, (nodes + 1) % size])
    return torch.stack([angle.cos(), angle.sin()], 1), torch.cat(
        [ends, ends.flip(0)], 1
    )


def grid(side: int = 16) -> tuple[Tensor, Tensor]:
    """Points of a square grid, joined to their four neighbours."""
    edges, points = grid_of(side, side)
    near = (points[edges[0]] - points[edges[1]]).abs().sum(1) == 1
    return points.float(), edges[:, near]


def tree(depth: int = 7) -> tuple[Tensor, Tensor]:
    """A binary tree drawn in layers."""
    size = 2**depth - 1
    child = torch.arange(1, size)
    level = torch.log2(torch.arange(1, size + 1)).floor()
    place = (torch.arange(1, size + 1) - 2**level + 0.5) / 2**level
    edges = torch.stack([child, (child - 1) // 2])
    return torch.stack([place * depth, level], 1), torch.cat([edges, edges.flip(0)], 1)


def cloud(size: int = 256) -> tuple[Tensor, Tensor]:
    """Random points of the square, joined where they are near."""
    points = torch.rand(size, 2, generator=torch.Generator().manual_seed(0))
    near = torch.cdist(points, points) < 0.11
    return points, near.fill_diagonal_(False).nonzero().t()


GRAPHS = {"ring": ring, "grid": grid, "tree": tree, "cloud": cloud}


class Own(Module):
    """A pooling of this library."""

    def __init__(self, pool: Module, lift: str = "transpose") -> None:
        super().__init__()
        self.pool, self.how = pool, lift

    def forward(self, x: Tensor, edge_index: Tensor) -> Pooled:
        """Return pooled rows, the way back, and an auxiliary loss."""
        out = self.pool(x, edge_index)
        return out.x, lambda rows: out.lift(rows, self.how), out.loss


class MeanReadout(Module):
    """One row for the whole graph."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Pooled:
        """Return the mean, which every node gets back."""
        mean = x.mean(0, keepdim=True)
        return mean, lambda rows: rows.expand(x.size(0), -1), x.new_zeros(())


class PyGEdgePooling(Module):
    """PyG's contraction of edges."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = EdgePooling(WIDTH)

    def forward(self, x: Tensor, edge_index: Tensor) -> Pooled:
        """Return pooled rows and PyG's way back."""
        batch = edge_index.new_zeros(x.size(0))
        rows, _, _, info = self.pool(x, edge_index, batch)
        return rows, lambda rows: self.pool.unpool(rows, info)[0], x.new_zeros(())


class Tgp(Module):
    """A pooling of tgp that can lift."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__()
        from tgp import poolers

        self.pool = getattr(poolers, name)(in_channels=WIDTH, **options)

    def forward(self, x: Tensor, edge_index: Tensor) -> Pooled:
        """Return pooled rows, tgp's way back, and its losses."""
        batch = edge_index.new_zeros(x.size(0))
        out = self.pool(x=x, adj=edge_index, batch=batch)

        def back(rows: Tensor) -> Tensor:
            lifted = self.pool(
                x=rows, so=out.so, lifting=True, batch=batch, batch_pooled=out.batch
            )
            return lifted.view(-1, WIDTH)[: x.size(0)]

        losses = (out.loss or {}).values()
        return out.x, back, sum(losses, x.new_zeros(()))


def makers(size: int, *, peers: bool) -> dict[str, Callable[[], Module]]:
    """Return the poolings by name, for a graph of some size."""
    third = max(size // 3, 1)
    found: dict[str, Callable[[], Module]] = {
        "GraphParsingPooling": lambda: Own(GraphParsingPooling(WIDTH)),
        "  multiplier mean": lambda: Own(GraphParsingPooling(WIDTH, multiplier="mean")),
        "  mean, drops half": lambda: Own(
            GraphParsingPooling(WIDTH, multiplier="mean", dropout_parsing=0.5)
        ),
        "GPool": lambda: Own(GPool(WIDTH, ratio=1 / 3)),
        "mean readout": MeanReadout,
        "PyG EdgePooling": PyGEdgePooling,
    }
    if peers:
        found |= {
            "tgp TopkPooling": lambda: Tgp("TopkPooling", ratio=1 / 3),
            "tgp SAGPooling": lambda: Tgp("SAGPooling", ratio=1 / 3),
            "tgp EdgeContractionPooling": lambda: Tgp("EdgeContractionPooling"),
            "tgp KMISPooling": lambda: Tgp("KMISPooling"),
            "tgp MinCutPooling": lambda: Tgp("MinCutPooling", k=third),
            "tgp DiffPool": lambda: Tgp("DiffPool", k=third),
        }
    return found


class Autoencoder(Module):
    """Layers around a pooling."""

    def __init__(self, pool: Module) -> None:
        super().__init__()
        self.pool = pool
        self.down = torch.nn.ModuleList([GCNConv(2, WIDTH), GCNConv(WIDTH, WIDTH)])
        self.up = torch.nn.ModuleList([GCNConv(WIDTH, WIDTH) for _ in range(2)])
        self.out = Linear(WIDTH, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor, int]:
        """Return coordinates, auxiliary loss and the number of pooled rows."""
        for conv in self.down:
            x = conv(x, edge_index).relu()
        rows, back, loss = self.pool(x, edge_index)
        x = back(rows)
        for conv in self.up:
            x = conv(x, edge_index).relu()
        return self.out(x), loss, rows.size(-2)


def train(
    make: Callable[[], Module], graph: tuple[Tensor, Tensor], seed: int, steps: int
) -> dict[str, Any]:
    """Return the error at the end and how many nodes were left."""
    torch.manual_seed(seed)
    points, edges = graph
    points = (points - points.mean(0)) / points.std()
    model = Autoencoder(make())
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    start, errors = time.perf_counter(), []
    for _ in range(steps):
        found, loss, left = model(points, edges)
        error = mse_loss(found, points)
        optimizer.zero_grad()
        (error + loss).backward()
        optimizer.step()
        errors.append(float(error.detach()))
    seconds, last = time.perf_counter() - start, sorted(errors[-20:])
    with torch.no_grad():
        found, _, left_at_end = model.eval()(points, edges)
    return {
        "mse_training": last[len(last) // 2], "mse": float(mse_loss(found, points)),
        "nodes_left_training": left, "nodes_left": left_at_end,
        "nodes": points.size(0), "seconds": seconds,
    }  # fmt: skip


def main(words: list[str] | None = None) -> int:
    """Train every pooling on every graph and print a table."""
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--out", type=Path, help="folder of reconstruction.jsonl")
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--pools", nargs="+", help="names to run; default: all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(words)
    torch.set_num_threads(options.threads)
    path = None if options.out is None else options.out / "reconstruction.jsonl"
    peers = importlib.util.find_spec("tgp") is not None
    for name in options.graphs:
        graph = GRAPHS[name]()
        for pool, make in makers(graph[0].size(0), peers=peers).items():
            if options.pools and pool not in options.pools:
                continue
            runs = []
            for seed in range(options.seeds):
                key = {"graph": name, "pool": pool, "seed": seed}
                key["steps"] = options.steps
                done = None if path is None else known(path, key)
                if done is None:
                    done = {**key, **train(make, graph, seed, options.steps)}
                    if path is not None:
                        record.append(path, {**done, **record.surroundings()})
                runs.append(done)
            words = [f"{name:6s}", f"{pool:28s}"]
            for key in ("mse", "mse_training"):
                errors = torch.tensor([run[key] for run in runs])
                spread = f"{errors.std(correction=0):.4f}"
                words.append(f"{key} {errors.mean():.4f} ± {spread}")
            words.append(f"{runs[0]['nodes_left']} of {runs[0]['nodes']}")
            print(*words, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
