"""A readout trained on the kept activations of a frozen model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCN, GIN

from pyg_pool import HistographAggregation
from pyg_pool.models import HistoryGNN
from pyg_pool.readout import collect_history, history

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def graphs(number: int = 7) -> list[Data]:
    return [
        Data(x=torch.randn(3 + i % 3, 4), edge_index=EDGES, y=torch.tensor([i % 2]))
        for i in range(number)
    ]


def test_head_from_the_cache_equals_the_frozen_model() -> None:
    data = graphs()
    backbone = GIN(4, 8, 3, norm="batch_norm", dropout=0.5)
    Batch.from_data_list(data)
    backbone(data[0].x, data[0].edge_index)  # moves the running statistics
    kept = collect_history(backbone, None, data, batch_size=3)
    assert kept.widths == [4, 8, 8, 8]
    readout = HistographAggregation(kept.widths, 8)
    head = torch.nn.Linear(8, 2)
    optimiser = torch.optim.Adam([*readout.parameters(), *head.parameters()], 0.01)
    for batch in kept.batches(3, shuffle=True):
        optimiser.zero_grad()
        out = head(readout(batch.x, batch.index, dim_size=batch.dim_size))
        torch.nn.functional.cross_entropy(out, batch.y).backward()
        optimiser.step()
    model = HistoryGNN(backbone, readout, head, is_frozen=True).train()
    whole = Batch.from_data_list(data)
    wanted = model(whole.x, whole.edge_index, batch=whole.batch, batch_size=7)
    batch = kept.batch(range(7))
    found = head(readout(batch.x, batch.index, dim_size=7))
    assert_close(found, wanted, atol=1e-6, rtol=1e-6)
    assert batch.y is not None
    assert batch.y.tolist() == [0, 1, 0, 1, 0, 1, 0]
    wanted.sum().backward()
    assert all(p.grad is None for p in backbone.parameters())


def test_model_is_left_as_it_was() -> None:
    backbone = GCN(4, 8, 2, norm="batch_norm", dropout=0.5).train()
    before = {n: v.clone() for n, v in backbone.state_dict().items()}
    collect_history(backbone, None, graphs())
    assert backbone.training
    for name, value in backbone.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_files_are_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, backbone = graphs(), GCN(4, 8, 2)
    first = collect_history(backbone, None, data, cache=tmp_path / "kept")
    monkeypatch.setattr(history, "call_model", None)  # a second run would fail
    again = collect_history(backbone, None, data, cache=tmp_path / "kept")
    assert torch.equal(again.x, first.x)
    assert list(again.layers) == ["input", "dropout", "convs.1"]
    with torch.no_grad():
        backbone.convs[0].bias += 1
    with pytest.raises(TypeError):
        collect_history(backbone, None, data, cache=tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_subset_of_layers_in_half_precision() -> None:
    kept = collect_history(GCN(4, 8, 3), ["convs.1"], graphs(), dtype=torch.bfloat16)
    assert kept.x.dtype == torch.bfloat16
    assert kept.widths == [8]


def test_forms_of_data() -> None:
    data, backbone = graphs(), GCN(4, 8, 2)
    whole = collect_history(backbone, None, data)
    batch: Any = Batch.from_data_list(data)
    assert_close(collect_history(backbone, None, batch).x, whole.x)
    assert_close(collect_history(backbone, None, data[0]).x, whole.x[:3])
    unlabelled = [Data(x=d.x, edge_index=d.edge_index) for d in data]
    assert collect_history(backbone, None, unlabelled).y is None
    with pytest.raises(ValueError, match="collect_history got no graph"):
        collect_history(backbone, None, [])


def test_own_call() -> None:
    kept = collect_history(
        torch.nn.Linear(4, 3),
        ["input"],
        graphs(),
        call=lambda model, batch: model(batch.x),
    )
    assert kept.x.shape[1] == 4
