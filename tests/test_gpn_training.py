"""The training protocol of graph parsing: a stopped run goes on as if it had not."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch_geometric.data import Data

from benchmarks.gpn_models import Settings, build_graph_model
from benchmarks.gpn_training import Fold, finished, rate_at
from pyg_pool.train import GraphStore

SETTINGS = Settings(1, "share", 1, 8, 0.3, 1e-2, 4, warmup=2)


def ring(size: int) -> Data:
    nodes = torch.arange(size)
    edges = torch.stack([nodes, (nodes + 1) % size])
    x = torch.rand(size, 3, generator=torch.Generator().manual_seed(size))
    both = torch.cat([edges, edges.flip(0)], 1)
    return Data(x=x, edge_index=both, y=torch.tensor([size % 2]))


def fold(path: Path) -> Fold:
    store = GraphStore.from_graphs([ring(size) for size in range(3, 19)])
    order = torch.arange(16)
    parts = {"train": order[:10], "val": order[10:13], "test": order[13:]}
    torch.manual_seed(0)
    model = build_graph_model("gpn", 3, 2, SETTINGS)
    options = argparse.Namespace(epochs=4, patience=9, save_every=1e9, log_every=99)
    return Fold(store, parts, model, SETTINGS, options, path)


def test_a_stopped_run_goes_on_bit_by_bit(tmp_path: Path) -> None:
    whole = fold(tmp_path / "whole.pt")
    whole.run()
    first = fold(tmp_path / "parts.pt")
    first._epoch()
    first._epoch()
    first._save()
    second = fold(tmp_path / "parts.pt")
    assert second.state["epoch"] == 2
    second.run()
    assert second.state["losses"] == whole.state["losses"]
    assert second.state["best_epoch"] == whole.state["best_epoch"]
    for one, other in zip(
        whole.model.parameters(), second.model.parameters(), strict=True
    ):
        assert torch.equal(one, other)
    assert not list(tmp_path.glob("*.part"))


def test_warm_up_then_cosine() -> None:
    rates = [rate_at(epoch, 10, 2) for epoch in range(10)]
    assert rates[:3] == [0.5, 1.0, 1.0]
    assert rates[2:] == sorted(rates[2:], reverse=True)
    assert rate_at(7, 10, 0) == 1.0


def test_nothing_is_finished_at_first(tmp_path: Path) -> None:
    assert finished(tmp_path / "none.jsonl") == set()
