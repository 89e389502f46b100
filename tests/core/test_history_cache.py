"""Tables of histories: batches, files, keys."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from pyg_pool.core.history_cache import HistoryCache, cache_file, history_key


def cache() -> HistoryCache:
    x = torch.arange(12.0).view(6, 2)
    sizes = torch.tensor([2, 0, 3, 1])
    return HistoryCache(x, sizes, ["input", "convs.0"], [1, 1], torch.arange(4))


def test_batches_hold_the_chosen_graphs() -> None:
    batch = cache().batch([3, 1, 0])
    assert batch.x.tolist() == [[10, 11], [0, 1], [2, 3]]
    assert batch.index.tolist() == [0, 2, 2]
    assert batch.dim_size == 3
    assert batch.y is not None
    assert batch.y.tolist() == [3, 1, 0]


def test_batches_cover_all_graphs_in_any_order() -> None:
    chance = torch.Generator().manual_seed(1)
    parts = list(cache().batches(3, shuffle=True, generator=chance))
    labels = torch.cat([part.y for part in parts if part.y is not None])
    assert sorted(labels.tolist()) == [0, 1, 2, 3]
    assert labels.tolist() != [0, 1, 2, 3]
    assert sum(part.x.size(0) for part in parts) == 6
    some = list(cache().batches(3, graphs=[2]))
    assert [part.dim_size for part in some] == [1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_file(tmp_path: Path, dtype: torch.dtype) -> None:
    whole = cache()
    whole.x = whole.x.to(dtype)
    whole.save(tmp_path / "a.npz")
    again = HistoryCache.load(tmp_path / "a.npz")
    assert torch.equal(again.x, whole.x)
    assert again.x.dtype == dtype
    assert again.layers == ["input", "convs.0"]
    assert len(again) == 4
    (tmp_path / "a.npz").write_bytes(b"PK")
    with pytest.raises(ValueError, match="not a complete file"):
        HistoryCache.load(tmp_path / "a.npz")


def test_parts_are_checked() -> None:
    with pytest.raises(ValueError, match=r"shape \[6, 2\], 1 graphs of 5 nodes"):
        HistoryCache(torch.zeros(6, 2), torch.tensor([5]), ["input"], [2])


def test_key_changes_with_weights_layers_data_and_type() -> None:
    model = torch.nn.Linear(2, 2)
    graph = Data(x=torch.zeros(2, 2), edge_index=torch.tensor([[0], [1]]))
    keys = [history_key(model, ["input"], [graph], None)]
    assert history_key(model, ["input"], [graph.clone()], None) == keys[0]
    keys.append(history_key(model, ["0"], [graph], None))
    keys.append(history_key(model, ["input"], [graph], torch.bfloat16))
    keys.append(history_key(model, ["input"], [graph, graph], None))
    graph.edge_index = torch.tensor([[1], [0]])
    keys.append(history_key(model, ["input"], [graph], None))
    with torch.no_grad():
        model.weight[0, 0] += 1e-6
    keys.append(history_key(model, ["input"], [graph], None))
    assert len(set(keys)) == 6


def test_folder_is_made(tmp_path: Path) -> None:
    assert cache_file(tmp_path / "a" / "b", "key").parent.is_dir()
