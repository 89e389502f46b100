"""Hierarchies attached to many small graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.loader import DataLoader
from torch_geometric.utils import erdos_renyi_graph

from pyg_pool.core.hierarchy_data import HierarchyData
from pyg_pool.models import GraphUNet, HierarchicalClassifier
from pyg_pool.transforms import Coarsen


def graphs(count: int = 6) -> list[Data]:
    sizes = [12, 1, 0, 7, 90, 20][:count]
    out = []
    for size in sizes:
        edges = erdos_renyi_graph(size, 0.2) if size > 1 else torch.empty(2, 0).long()
        out.append(Data(x=torch.randn(size, 4), edge_index=edges, y=torch.tensor([0])))
    return out


def test_sizes_are_those_of_the_ratio() -> None:
    for data in Coarsen(ratio=0.4, levels=2).all(graphs()):
        sizes = [level.num_nodes for level in data.hierarchy().levels]
        first = -(-2 * sizes[0] // 5)
        assert sizes[1:] == [first, -(-2 * first // 5)]


def test_number_of_clusters() -> None:
    found = Coarsen(num_clusters=3, levels=2).all(graphs())
    sizes = [data.hierarchy().levels[-1].num_nodes for data in found]
    assert sizes == [3, 1, 0, 3, 3, 3]


def test_graphs_do_not_depend_on_each_other() -> None:
    many = graphs()
    transform = Coarsen(ratio=0.5, levels=2)
    for alone, data in zip(map(transform, many), transform.all(many), strict=True):
        one, other = alone.hierarchy(), data.hierarchy()
        assert one.selections == other.selections


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads_do_not_change_the_result(threads: int) -> None:
    many = graphs() * 20
    once = Coarsen(ratio=0.5, num_threads=1).all(many)
    again = Coarsen(ratio=0.5, num_threads=threads).all(many)
    for a, b in zip(once, again, strict=True):
        assert a.hierarchy().selections == b.hierarchy().selections


def test_loader_drives_the_networks() -> None:
    many = [data for data in graphs() if data.num_nodes > 1]
    loader = DataLoader(Coarsen(ratio=0.5, levels=2).all(many), batch_size=4)
    batch = next(iter(loader))
    hierarchy = batch.hierarchy()
    assert isinstance(batch, Batch)
    unet = GraphUNet(4, 8, 3, depth=2, pool="precomputed")
    assert unet(batch.x, batch.edge_index, hierarchy=hierarchy).shape == (129, 3)
    model = HierarchicalClassifier(4, 8, 2, 2, pool="precomputed")
    out = model(batch.x, batch.edge_index, batch=batch.batch, hierarchy=hierarchy)
    assert out.shape == (4, 2)


@pytest.mark.parametrize("edge", ["sum", "mean", "none", "auto"])
def test_what_coarse_edges_carry(edge: str) -> None:
    ring = torch.stack([torch.arange(6), (torch.arange(6) + 1) % 6])
    edges = torch.cat([ring, ring.flip(0)], 1)
    data = Data(edge_index=edges, num_nodes=6, edge_attr=torch.rand(12, 2))
    level = Coarsen(ratio=0.5, edge=edge)(data).hierarchy().levels[1]
    if edge == "none":
        assert level.edge_attr is None
    elif edge == "sum":
        assert level.edge_attr.tolist() == [1.0] * 6
    else:
        assert level.edge_attr.shape == (6, 2)


def test_integers_have_no_mean() -> None:
    data = Data(
        edge_index=torch.tensor([[0, 1], [1, 0]]),
        num_nodes=2,
        edge_attr=torch.ones(2, dtype=torch.long),
    )
    with pytest.raises(ValueError, match="edge='mean'"):
        Coarsen(ratio=0.5, edge="mean")(data)


def test_repr_can_be_read_back() -> None:
    for made in (Coarsen(0.25, levels=2), Coarsen(num_clusters=3, edge="sum")):
        again = eval(repr(made), {"Coarsen": Coarsen})
        assert vars(again) == vars(made)


class Rings(InMemoryDataset):
    """Two rings, made in memory."""

    processed_file_names = "rings.pt"

    def __init__(self, root: str, transform: Coarsen) -> None:
        super().__init__(root, pre_transform=transform, log=False)
        self.load(self.processed_paths[0], HierarchyData)

    def process(self) -> None:
        """Store the rings."""
        assert isinstance(self.pre_transform, Coarsen)
        self.save(self.pre_transform.all(graphs()[3:5]), self.processed_paths[0])


def test_levels_are_cached_with_a_data_set(tmp_path: Path) -> None:
    made = Rings(str(tmp_path), Coarsen(0.5, levels=2))
    with mock.patch.object(Rings, "process", side_effect=AssertionError):
        again = Rings(str(tmp_path), Coarsen(0.5, levels=2))
    for one, other in zip(made, again, strict=True):
        assert one.hierarchy().selections == other.hierarchy().selections
        assert one.hierarchy().num_levels == 3
    with pytest.warns(UserWarning, match="pre_transform"):
        Rings(str(tmp_path), Coarsen(0.25, levels=2))


def test_one_target_is_needed() -> None:
    with pytest.raises(ValueError, match="exactly one"):
        Coarsen()


@pytest.mark.parametrize(
    "options",
    [{"kernel": "rv"}, {"ratio": -0.5}, {"num_threads": 0}, {"edge": "all"}],
)
def test_options_are_checked_when_made(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Coarsen(**{"ratio": 0.5, **options})
    with pytest.raises(ValueError, match="above 0"):
        Coarsen(num_clusters=0)
