"""The networks that ``gpn_training`` and ``gpn_nodes`` compare, of one width each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from torch import Tensor
from torch.nn import LayerNorm, Linear, Module, ModuleList, Sequential
from torch_geometric.nn import EdgePooling, GCNConv, global_add_pool, global_mean_pool

from pyg_pool.core.blocks import activation
from pyg_pool.kernels.relu_dropout import relu_dropout
from pyg_pool.models import GraphParsingNetwork, HierarchicalClassifier

__all__ = ["GRAPH_SETTINGS", "Settings", "build_graph_model"]


@dataclass(frozen=True)
class Settings:
    """Network and optimiser of one data set, from the table of the authors."""

    layers: int
    feature_layers: int | str
    deepsets_layers: int
    hidden: int
    dropout: float
    lr: float
    batch: int
    act_final: bool = False
    warmup: int = 50


GRAPH_SETTINGS = {
    "DD": Settings(2, 0, 1, 128, 0.2, 1e-4, 64),
    "PROTEINS": Settings(3, "share", 1, 128, 0.1, 5e-4, 128, act_final=True),
    "NCI1": Settings(2, "share", 3, 256, 0.4, 5e-4, 256),
    "NCI109": Settings(3, "share", 1, 128, 0.2, 5e-4, 64, warmup=0),
    "FRANKENSTEIN": Settings(3, "share", 1, 128, 0.2, 1e-3, 128, warmup=0),
}


def head(width: int, classes: int, rate: float) -> Module:
    """The classifier that all but the library's own models end with."""
    first = [Linear(width, width), LayerNorm(width), *activation(rate)]
    return Sequential(*first, Linear(width, classes))


class PlainGCN(Module):
    """GCN layers, the sum of the nodes of a graph, a classifier."""

    def __init__(self, features: int, classes: int, given: Settings, depth: int = 3):
        super().__init__()
        self.rate = given.dropout
        widths = [features] + [given.hidden] * depth
        self.convs = ModuleList(GCNConv(a, b) for a, b in pairwise(widths))
        self.norms = ModuleList(LayerNorm(given.hidden) for _ in self.convs)
        self.head = head(given.hidden, classes, given.dropout)

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor, size: int
    ) -> Tensor:
        """Return one row of logits per graph."""
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = norm(conv(x, edge_index))
            x = relu_dropout(x, self.rate, training=self.training)
        return self.head(global_add_pool(x, batch, size))


class EdgePoolNet(Module):
    """GCN and PyG's EdgePooling in turn; the means of all levels are added."""

    def __init__(self, features: int, classes: int, given: Settings, depth: int = 3):
        super().__init__()
        self.rate = given.dropout
        widths = [features] + [given.hidden] * depth
        self.convs = ModuleList(GCNConv(a, b) for a, b in pairwise(widths))
        self.norms = ModuleList(LayerNorm(given.hidden) for _ in self.convs)
        self.pools = ModuleList(EdgePooling(given.hidden) for _ in self.convs)
        self.head = head(given.hidden, classes, given.dropout)

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor, size: int
    ) -> Tensor:
        """Return one row of logits per graph."""
        total: Any = 0
        parts = zip(self.convs, self.norms, self.pools, strict=True)
        for conv, norm, pool in parts:
            x = norm(conv(x, edge_index))
            x = relu_dropout(x, self.rate, training=self.training)
            x, edge_index, batch, _ = pool(x, edge_index, batch)
            total = total + global_mean_pool(x, batch, size)
        return self.head(total)


class Ours(Module):
    """A model of the library behind the call of the others."""

    def __init__(self, model: Module):
        super().__init__()
        self.model = model

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor, size: int
    ) -> Tensor:
        """Return one row of logits per graph."""
        return self.model(x, edge_index, batch=batch, batch_size=size)


def _gpn(features: int, classes: int, given: Settings) -> Module:
    return Ours(
        GraphParsingNetwork(
            features,
            given.hidden,
            classes,
            num_layers=given.layers,
            feature_layers=given.feature_layers,
            deepsets_layers=given.deepsets_layers,
            act_final=given.act_final,
            dropout=given.dropout,
        )
    )


def _gpool(features: int, classes: int, given: Settings) -> Module:
    width, rate = given.hidden, given.dropout
    model = HierarchicalClassifier(features, width, classes, 3, 0.8, dropout=rate)
    return Ours(model)


BUILDERS = {
    "gpn": _gpn,
    "gpool": _gpool,
    "gcn": PlainGCN,
    "edge_pooling": EdgePoolNet,
}


def build_graph_model(
    name: str, features: int, classes: int, given: Settings
) -> Module:
    """Return an untrained network ``(x, edge_index, batch, size) -> logits``."""
    return partial(BUILDERS[name], features, classes, given)()
