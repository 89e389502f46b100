"""Models whose readout sees all layers."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.nn import GAT, GCN, GIN, PNA, GraphSAGE, MeanAggregation

from pyg_pool import HistographAggregation
from pyg_pool.models import HistoryGNN
from pyg_pool.models.history_gnn import history_widths

EDGES = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
BATCH = torch.tensor([0, 0, 0, 1, 1])
BACKBONES: list[Any] = [
    GCN(4, 8, 3, norm="graph_norm"),
    GIN(4, 8, 1),
    GraphSAGE(4, 8, 3, out_channels=5, jk="cat"),
    GAT(4, 8, 2, out_channels=6, heads=2),
    PNA(4, 8, 2, aggregators=["mean"], scalers=["identity"], deg=torch.ones(4)),
]


@pytest.mark.parametrize("backbone", BACKBONES, ids=str)
def test_any_basic_model(backbone: Any) -> None:
    model = HistoryGNN(copy.deepcopy(backbone), 8, torch.nn.Linear(8, 2)).eval()
    x = torch.randn(5, 4)
    layers = model.history(x, EDGES, batch=BATCH, batch_size=2)
    assert [layer.size(1) for layer in layers] == history_widths(backbone)
    out = model(x, EDGES, batch=BATCH, batch_size=3)
    assert out.shape == (3, 2)
    alone = model(x[:3], EDGES[:, :4], batch=BATCH[:3], batch_size=1)
    assert_close(out[:1], alone, atol=1e-6, rtol=1e-5)
    out.sum().backward()
    grads = [p.grad for p in model.readout.parameters()]
    assert all(g is not None for g in grads)


def test_hidden_layers_are_those_of_the_model() -> None:
    backbone = GCN(4, 8, 3)
    model = HistoryGNN(backbone, 8)
    x = torch.randn(5, 4)
    layers = model.history(x, EDGES)
    first = backbone.convs[0](x, EDGES).relu()
    assert_close(layers[1], first)
    assert_close(layers[3], backbone(x, EDGES))


def test_edge_weights_reach_the_backbone() -> None:
    model = HistoryGNN(GCN(4, 8, 2), 8).eval()
    x = torch.randn(5, 4)
    plain = model(x, EDGES, batch=BATCH)
    assert not torch.allclose(model(x, EDGES, torch.rand(6), batch=BATCH), plain)


def test_frozen_backbone_keeps_still() -> None:
    backbone = GCN(4, 8, 2, norm="batch_norm", dropout=0.5)
    model = HistoryGNN(backbone, 8, torch.nn.Linear(8, 2), is_frozen=True).train()
    assert not backbone.training
    assert model.readout.training
    x = torch.randn(5, 4)
    before = copy.deepcopy(backbone.state_dict())
    model(x, EDGES, batch=BATCH).sum().backward()
    assert all(p.grad is None for p in backbone.parameters())
    model.reset_parameters()
    for name, value in backbone.state_dict().items():
        assert torch.equal(value, before[name])


def test_readouts_of_all_kinds() -> None:
    x = torch.randn(5, 4)
    mean = HistoryGNN(GCN(4, 8, 2), MeanAggregation())
    assert mean(x, EDGES, batch=BATCH).shape == (2, 20)
    made = HistoryGNN(GCN(4, 8, 2), lambda widths: HistographAggregation(widths, 12))
    assert made(x, EDGES, batch=BATCH).shape == (2, 12)
    some = HistoryGNN(GCN(4, 8, 3), 8, layers=["convs.0", "convs.2"])
    assert some.readout.form.widths == (8, 8)
    own = HistoryGNN(
        torch.nn.Sequential(torch.nn.Linear(4, 3)), MeanAggregation(), layers=["0"]
    )
    with pytest.raises(TypeError):
        own(x, EDGES)  # a model that takes no edges


def test_reset_draws_anew() -> None:
    model = HistoryGNN(GCN(4, 8, 2), 8, torch.nn.Linear(8, 2))
    before = copy.deepcopy(model.state_dict())
    model.reset_parameters()
    assert not torch.equal(model.readout.w_q, before["readout.w_q"])
    assert not torch.equal(model.backbone.convs[0].lin.weight,
                           before["backbone.convs.0.lin.weight"])  # fmt: skip


def test_wrong_layers() -> None:
    with pytest.raises(ValueError, match=r"layer='convs\.9', expected one of"):
        HistoryGNN(GCN(4, 8, 2), 8, layers=["convs.9"])
    with pytest.raises(ValueError, match=r"got the layers \['act'\]"):
        HistoryGNN(GCN(4, 8, 2), 8, layers=["act"])
    with pytest.raises(ValueError, match="got a Linear and no layers"):
        HistoryGNN(torch.nn.Linear(2, 2), 8)
