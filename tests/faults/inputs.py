"""What the fault tests share: small graphs, and everything they are run on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn.aggr import Aggregation

from pyg_pool.models import GraphUNet, HierarchicalClassifier
from pyg_pool.models.layers import Readout
from pyg_pool.testing import PoolingSpec, ReadoutSpec, poolings, readouts


class LevelReadout(Aggregation):
    """The readout of the models in the form of an aggregation."""

    def __init__(self, word: str, in_channels: int = 4) -> None:
        super().__init__()
        self.word = word
        self.readout = Readout("LevelReadout", (word,), in_channels)

    def forward(self, x, index=None, ptr=None, dim_size=None, dim=-2) -> Tensor:
        if dim_size is None:
            dim_size = int(index.max()) + 1 if index.numel() > 0 else 0
        return torch.cat(self.readout(x, index, dim_size), dim=-1)


def _wrapped(word: str) -> ReadoutSpec:
    return ReadoutSpec(lambda channels: LevelReadout(word, channels), f"level-{word}")


POOLINGS: list[PoolingSpec] = poolings()
READOUTS: list[ReadoutSpec] = [
    *readouts(),
    *(_wrapped(word) for word in ("sum", "mean", "max", "min")),
]
MODELS: dict[str, Callable[[int], Module]] = {
    "hierarchical": lambda channels: HierarchicalClassifier(channels, 8, 3),
    "unet": lambda channels: GraphUNet(channels, 8, 3, depth=2, task="graph"),
    "unet-authors": lambda channels: GraphUNet(
        channels, 8, 3, depth=2, preset="authors", task="graph"
    ),
}

every_pooling = pytest.mark.parametrize(
    "spec", [pytest.param(spec, id=spec.label) for spec in POOLINGS]
)
every_readout = pytest.mark.parametrize(
    "spec", [pytest.param(spec, id=spec.label) for spec in READOUTS]
)
every_model = pytest.mark.parametrize("model_name", list(MODELS))


def build_model(name: str, in_channels: int = 4, dtype=torch.float64) -> Module:
    """A model in evaluation mode, the same one for every call."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return MODELS[name](in_channels).to(dtype).eval()


def pools_pattern_only(operator: Module) -> bool:
    """Whether the weights of pooled edges say no more than that they exist."""
    words = [getattr(operator, name, "") for name in ("augment", "edge_reduce")]
    return "binary" in words


def undirected(*pairs: tuple[int, int]) -> Tensor:
    """Edges in both directions; loops once."""
    columns = [*pairs, *((b, a) for a, b in pairs if a != b)]
    return torch.tensor(columns, dtype=torch.long).view(-1, 2).t().contiguous()


def path(size: int) -> Tensor:
    """The path 0-1-...-(size - 1) in both directions."""
    return undirected(*((i, i + 1) for i in range(size - 1)))


def no_edges() -> Tensor:
    return torch.empty(2, 0, dtype=torch.long)
