from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.nn import GCNConv

from pyg_pool.core.graph_level import GraphLevel
from pyg_pool.models.gpn_blocks import ConvBlock, NormMLP

EDGES = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
LEVEL = GraphLevel(EDGES, None, torch.tensor([0, 0, 0, 1, 1]), 2, 5)


def test_places_of_the_layers() -> None:
    names = [type(m).__name__ for m in NormMLP(3, 8, 2, 2, 0.1).mlp]
    assert names == ["Linear", "LayerNorm", "ReLUDropout", "Identity", "Linear"]
    names = [type(m).__name__ for m in NormMLP(3, 8, 2, 2, 0.1, act_final=True).mlp]
    assert names[-4:] == ["Linear", "LayerNorm", "ReLUDropout", "Identity"]
    assert len(NormMLP(3, 8, 2, 1, 0.1, act_final=True).mlp) == 1
    x = torch.randn(4, 3)
    assert NormMLP(3, 8, 8, 0, 0.1)(x) is x
    names = [type(m).__name__ for m in ConvBlock("gcn", 4, 2, 0.1).gnn]
    assert names == ["GCNConv", "ReLUDropout", "Identity", "GCNConv"]
    assert len(ConvBlock("gcn", 4, 2, 0.1, act_final=True).gnn) == 6


@pytest.mark.parametrize("bias", [True, False])
def test_block_is_convolutions_plus_input(bias: bool, backend: str) -> None:
    block = ConvBlock("gcn", 4, 2, 0.0, options={"bias": bias}).double()
    x = torch.randn(5, 4).double()
    first, last = block.gnn[0], block.gnn[-1]
    wanted = block.norm(x + last(first(x, EDGES).relu(), EDGES))
    assert_close(block(x, LEVEL, True), wanted)


@pytest.mark.parametrize("options", [{"improved": True}, {"add_self_loops": False}])
def test_other_normalisations_are_pygs(options: dict[str, bool]) -> None:
    block = ConvBlock("gcn", 4, 1, 0.0, options=options).double()
    x = torch.randn(5, 4).double()
    conv = block.gnn[0]
    assert isinstance(conv, GCNConv)
    weight = torch.ones(6).double()
    assert_close(block(x, LEVEL, True), block.norm(x + conv(x, EDGES, weight)))


def test_weights_are_used_unless_told_not_to() -> None:
    block = ConvBlock("gcn", 4, 1, 0.0).double()
    x, weight = torch.randn(5, 4).double(), torch.tensor([2.0, 2, 3, 3, 4, 4]).double()
    level = GraphLevel(EDGES, weight, LEVEL.batch, 2, 5)
    wanted = block.norm(x + block.gnn[0](x, EDGES, weight))
    assert_close(block(x, level, True), wanted)
    assert_close(block(x, level, False), block(x, LEVEL, True))


def test_gin_ends_in_an_activation_and_has_no_buffer() -> None:
    block = ConvBlock("gin", 4, 1, 0.0)
    assert [type(m).__name__ for m in block.gnn[0].nn][-1] == "ReLU"
    assert not any("eps" in name for name in block.state_dict())
    block = ConvBlock("gin", 4, 1, 0.0, options={"train_eps": True})
    assert "gnn.0.eps" in block.state_dict()
