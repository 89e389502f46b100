"""``torch.export`` of readouts and of gPool, with open numbers of nodes and graphs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.export import Dim, export
from torch.nn import Linear, Module, ReLU, Sequential
from torch.testing import assert_close

from pyg_pool import GPool
from pyg_pool.testing import readouts

pytestmark = pytest.mark.skipif(
    torch.__version__ < (2, 10), reason="sizes that depend on data need torch 2.10"
)

READOUTS = {spec.label: spec for spec in readouts()}


def path(size: int) -> Tensor:
    ids = torch.arange(size - 1)
    pairs = torch.stack([ids, ids + 1])
    return torch.cat([pairs, pairs.flip(0)], dim=1)


class Read(Module):
    """A readout of as many graphs as a second input has rows, then an MLP."""

    def __init__(self, readout: Module, width: int, *, with_mlp: bool) -> None:
        super().__init__()
        self.readout = readout
        self.head: Module = torch.nn.Identity()
        if with_mlp:
            self.head = Sequential(Linear(width, 8), ReLU(), Linear(8, 3))

    def forward(self, x: Tensor, index: Tensor, graphs: Tensor) -> Tensor:
        return self.head(self.readout(x, index, dim_size=graphs.size(0)))


@pytest.mark.parametrize(
    ("label", "with_mlp"),
    [
        (label, how)
        for label in READOUTS
        for how in (False, True)[: 1 + ("()" in label)]
    ],
)
def test_readout_takes_other_sizes(label: str, with_mlp: bool) -> None:
    readout = READOUTS[label].build(torch.float32)
    width = readout(torch.randn(2, 4), torch.zeros(2).long(), dim_size=1).size(1)
    module = Read(readout, width, with_mlp=with_mlp).eval()

    def inputs(*sizes: int) -> tuple[Tensor, Tensor, Tensor]:
        ids = torch.arange(len(sizes))
        index = ids.repeat_interleave(torch.tensor(sizes))
        return torch.randn(index.numel(), 4), index, ids.float()

    nodes, graphs = Dim("nodes"), Dim("graphs")
    shapes = {"x": {0: nodes}, "index": {0: nodes}, "graphs": {0: graphs}}
    program = export(module, inputs(4, 3, 5), dynamic_shapes=shapes)
    for sizes in ((4, 3, 5), (9, 0, 2, 30, 1), (3, 17)):
        given = inputs(*sizes)
        assert_close(program.module()(*given), module(*given))


class Pool(Module):
    """gPool of one graph."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.pool = GPool(4, **options)

    def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        out = self.pool(x, edge_index)
        return out.x, out.edge_index


@pytest.mark.parametrize(
    ("options", "strict"),
    [
        ({}, False),
        ({}, True),
        ({"ratio": 3}, False),
        ({"min_score": 0.2}, False),
        ({"preset": "pyg", "ratio": 0.9}, False),
    ],
)
def test_gpool_without_batch_takes_other_sizes(options: Any, strict: bool) -> None:
    module = Pool(**options).eval()
    shapes = {"x": {0: Dim("nodes")}, "edge_index": {1: Dim("edges")}}
    given = (torch.randn(9, 4), path(9))
    program = export(module, given, dynamic_shapes=shapes, strict=strict)
    for size in (9, 14, 30, 2):
        other = (torch.randn(size, 4), path(size))
        for found, wanted in zip(program.module()(*other), module(*other), strict=True):
            assert_close(found, wanted)
