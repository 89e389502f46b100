"""Small data sets for the tests of training."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

from pyg_pool.train import GraphDataset, GraphStore, Split


def ring_or_path(size: int, *, is_ring: bool) -> Data:
    """A ring or a path, with noisy features and its kind as class."""
    forward = torch.stack([torch.arange(size), torch.arange(1, size + 1)])
    forward = forward % size if is_ring else forward[:, :-1]
    edge_index = torch.cat([forward, forward.flip(0)], dim=1)
    generator = torch.Generator().manual_seed(size)
    x = torch.rand(size, 3, generator=generator)
    x[:, 0] += torch.bincount(edge_index[0], minlength=size)
    return Data(x=x, edge_index=edge_index, y=torch.tensor([int(is_ring)]))


def make_dataset(num_graphs: int = 40, task: str = "multiclass") -> GraphDataset:
    """Rings and paths of 4 to 9 nodes in two interleaved classes."""
    graphs = GraphStore.from_graphs(
        ring_or_path(4 + k % 6, is_ring=k % 2 == 0) for k in range(num_graphs)
    )
    if task != "multiclass":
        graphs = with_targets(graphs, graphs.y.float().unsqueeze(1))
    order = torch.arange(num_graphs)
    metric = {"multiclass": "accuracy", "binary": "rocauc", "regression": "rmse"}[task]
    return GraphDataset(
        "rings",
        graphs,
        task=task,
        num_outputs=2 if task == "multiclass" else 1,
        metric=metric,
        splits=(Split(order[order % 4 < 2], order[order % 4 == 2], order[3::4]),)
        if task == "regression"
        else (Split(order[: num_graphs // 2], order[-20:-10], order[-10:]),),
        feature_kind="float",
        class_names=("path", "ring") if task == "multiclass" else (),
    )


def with_targets(graphs: GraphStore, y: torch.Tensor) -> GraphStore:
    """The same graphs with other targets."""
    return GraphStore(
        graphs.x,
        graphs.edge_index,
        y=y,
        node_ptr=graphs.node_ptr,
        edge_ptr=graphs.edge_ptr,
    )


@pytest.fixture
def rings() -> GraphDataset:
    """Forty small graphs of two classes."""
    return make_dataset()
