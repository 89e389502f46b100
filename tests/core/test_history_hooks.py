"""Recording of layers by hooks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GAT, GCN, GIN, PNA, GATConv, GCNConv, GraphSAGE

from pyg_pool.core.history_hooks import call_model, default_layers, frozen, recording

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def batch() -> Any:
    graphs = [
        Data(
            x=torch.randn(3, 4),
            edge_index=EDGES,
            edge_attr=torch.rand(4, 2),
            edge_weight=torch.rand(4),
        )
        for _ in range(2)
    ]
    return Batch.from_data_list(graphs)


@pytest.mark.parametrize(
    "model",
    [
        GCN(4, 8, 3),
        GIN(4, 8, 1),
        GraphSAGE(4, 8, 3, out_channels=5, jk="cat", norm="batch_norm"),
        GAT(4, 8, 2, out_channels=6, heads=2),
        PNA(4, 8, 3, aggregators=["mean"], scalers=["identity"], deg=torch.ones(4)),
    ],
    ids=str,
)
def test_basic_models_give_each_layer_once(model: Any) -> None:
    data = batch()
    with frozen(model), recording(model, default_layers(model)) as record:
        out = call_model(model, data)
    history = record.history(data.x)
    assert len(history) == model.num_layers + 1
    assert history[0] is data.x
    if model.jk_mode is None:
        assert torch.equal(history[-1], out)
    if len(history) > 2:  # hidden layers are taken after their activation
        assert (history[1] >= 0).all()


def test_hooks_are_gone_afterwards() -> None:
    model = GCN(4, 8, 2)
    with pytest.raises(RuntimeError), recording(model, ["convs.0"]):
        raise RuntimeError
    assert all(not module._forward_hooks for module in model.modules())


class TakesData(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GATConv(4, 5), GCNConv(5, 6)

    def forward(self, data: Any) -> Tensor:
        x, _ = self.first(data.x, data.edge_index, return_attention_weights=True)
        return self.second(x, data.edge_index).mean(0)


def test_models_that_take_data_and_layers_that_return_more() -> None:
    model, data = TakesData(), batch()
    with recording(model, ["second", "first"]) as record:
        call_model(model, data)
    assert [layer.size(1) for layer in record.history(data.x)] == [6, 5]


class Counts(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self.pooled = torch.nn.Identity()

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor, batch_size: int
    ) -> Any:
        self.size = batch_size
        return self.pooled(self.lin(self.lin(x)).sum(0, keepdim=True))


def test_a_layer_that_runs_twice_is_recorded_twice() -> None:
    model, data = Counts(), batch()
    with recording(model, ["lin"]) as record:
        call_model(model, data)
    assert len(record.history(data.x)) == 2
    assert model.size == 2


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (["conv.0"], r"layer='conv.0', expected one of"),
        (["pooled"], r"shape \[1, 4\] from layer 'pooled', expected \[6, channels\]"),
    ],
)
def test_wrong_layers(layers: list[str], message: str) -> None:
    model, data = Counts(), batch()

    def run() -> None:
        with recording(model, layers) as record:
            call_model(model, data)
        record.history(data.x)

    with pytest.raises(ValueError, match=message):
        run()


def test_layers_that_do_not_run_or_are_no_tensor() -> None:
    model = GCN(4, 8, 2)
    with recording(model, ["convs.0"]) as record:
        pass
    with pytest.raises(ValueError, match=r"no result from layer 'convs\.0'"):
        record.history(torch.zeros(3, 4))
    pair = torch.nn.Identity()
    outer = torch.nn.Sequential(pair)
    with (
        pytest.raises(TypeError, match="got a result of type dict"),
        recording(outer, ["0"]),
    ):
        outer({})
    with pytest.raises(ValueError, match="got a Sequential and no layers"):
        default_layers(outer)


def test_frozen_gives_modes_back() -> None:
    model = GCN(4, 8, 2, norm="batch_norm", dropout=0.5)
    model.norms[0].eval()
    with frozen(model):
        assert not any(module.training for module in model.modules())
        assert not torch.is_grad_enabled()
    assert model.training
    assert not model.norms[0].training
