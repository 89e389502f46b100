"""Hierarchies that go through PyG's batches, loaders and caches."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.loader import DataLoader

from pyg_pool import GPool, Hierarchy, Selection
from pyg_pool.core import HierarchyData, Level, connect


def graph(n: int) -> tuple[Data, Hierarchy]:
    """A ring pooled by pairs, then by score, with everything a level can hold."""
    one = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
    edges, x, attr = (
        torch.cat([one, one.flip(0)], 1),
        torch.randn(n, 2),
        torch.rand(2 * n, 3),
    )
    data = Data(x=x, edge_index=edges, edge_attr=attr, y=torch.tensor([n]))
    first = Selection.from_clusters(torch.arange(n) // 2, weight=torch.rand(n))
    out = connect(first, edges, attr)
    middle = Level(
        first.num_clusters, out.edge_index, out.edge_attr, x=torch.rand(
            first.num_clusters, 4
        ),
    )  # fmt: skip
    second = GPool(4, ratio=0.5)(middle.x, middle.edge_index, middle.edge_attr)
    selection = second.selection.detach()
    last = Level(
        selection.num_clusters, second.edge_index, second.edge_attr,
        x=second.x.detach(), score=second.score.detach(),
    )  # fmt: skip
    levels = [Level(n, edges, attr, x=x), middle, last]
    return data, Hierarchy(levels, [first, selection])


GRAPHS = [graph(n) for n in (5, 1, 8, 3)]
ATTACHED = [h.attach(data) for data, h in GRAPHS]


def joined(hierarchies: list[Hierarchy]) -> Hierarchy:
    """The hierarchy of the batch, put together by hand."""
    depth = hierarchies[0].num_levels
    starts = [[0] * depth]
    for h in hierarchies:
        starts.append(
            [s + level.num_nodes for s, level in zip(starts[-1], h.levels, strict=True)]
        )
    levels = []
    for i in range(depth):
        parts = [h.levels[i] for h in hierarchies]

        def cat(name: str, parts: list[Level] = parts) -> Tensor | None:
            tensors = [getattr(p, name) for p in parts]
            return None if tensors[0] is None else torch.cat(tensors)

        levels.append(
            Level(
                starts[-1][i],
                torch.cat(
                    [p.edge_index + s[i] for p, s in zip(parts, starts, strict=False)],
                    dim=1,
                ),
                cat("edge_attr"),
                torch.arange(len(parts)).repeat_interleave(
                    torch.tensor([p.num_nodes for p in parts])
                ),
                len(parts),
                cat("x"),
                cat("score"),
            )
        )
    selections = []
    for i in range(depth - 1):
        pieces = [h.selections[i] for h in hierarchies]
        shifted = list(zip(pieces, starts, strict=False))
        weight = torch.cat([p.weight for p in pieces])
        selections.append(
            Selection(
                torch.cat([p.node_index + s[i] for p, s in shifted]),
                starts[-1][i],
                torch.cat([p.cluster_index + s[i + 1] for p, s in shifted]),
                starts[-1][i + 1],
                weight,
            )
        )
    return Hierarchy(levels, selections)


def same(got: Hierarchy, wanted: Hierarchy) -> None:
    assert got.selections == wanted.selections
    for a, b in zip(got.levels, wanted.levels, strict=True):
        for name, value in vars(b).items():
            other = getattr(a, name)
            if isinstance(value, Tensor):
                torch.testing.assert_close(other, value, rtol=0, atol=0, msg=name)
            else:
                assert other == value, name


def test_one_graph_comes_back() -> None:
    for (data, h), attached in zip(GRAPHS, ATTACHED, strict=True):
        assert type(attached) is HierarchyData
        assert attached.num_nodes == data.num_nodes
        assert attached.y is data.y
        same(attached.hierarchy(), joined([h]))
        assert "h1_x" not in data, "the data itself is left alone"


def test_batch_of_hierarchies() -> None:
    batch = Batch.from_data_list(ATTACHED)
    wanted = joined([h for _, h in GRAPHS])
    same(batch.hierarchy(), wanted)
    kinds = [s.kind for s in batch.hierarchy().selections]
    assert kinds == ["hard", "one_to_one"]
    x = torch.randn(wanted.levels[2].num_nodes, 3)
    lifted = batch.hierarchy().lift(x, 2)
    parts, start = [], 0
    for _, h in GRAPHS:
        size = h.levels[2].num_nodes
        parts.append(h.lift(x[start : start + size], 2))
        start += size
    torch.testing.assert_close(lifted, torch.cat(parts))
    for i in range(3):
        edges, graphs = wanted.levels[i].edge_index, wanted.levels[i].batch
        assert graphs is not None
        assert graphs[edges[0]].equal(graphs[edges[1]])


def test_batch_is_taken_apart_again() -> None:
    batch = Batch.from_data_list(ATTACHED)
    for attached, (_, h) in zip(batch.to_data_list(), GRAPHS, strict=True):
        same(attached.hierarchy(), joined([h]))
    same(batch[2].hierarchy(), joined([GRAPHS[2][1]]))


@pytest.mark.parametrize("workers", [0, 2])
def test_loaders(workers: int) -> None:
    loader = DataLoader(ATTACHED, batch_size=2, num_workers=workers)
    parts = [joined([h for _, h in GRAPHS[i : i + 2]]) for i in (0, 2)]
    for batch, wanted in zip(loader, parts, strict=True):
        same(batch.hierarchy(), wanted)


def test_disk_caches(tmp_path: Path) -> None:
    torch.save(ATTACHED[0], tmp_path / "data.pt")
    again = torch.load(tmp_path / "data.pt", weights_only=False)
    same(again.hierarchy(), joined([GRAPHS[0][1]]))
    same(pickle.loads(pickle.dumps(ATTACHED[1])).hierarchy(), joined([GRAPHS[1][1]]))
    data, slices = InMemoryDataset.collate(ATTACHED)
    dataset = InMemoryDataset(None)
    dataset.data, dataset.slices = data, slices
    same(dataset[2].hierarchy(), joined([GRAPHS[2][1]]))


def test_batch_moves() -> None:
    there = Batch.from_data_list(ATTACHED).to("meta")
    assert there.h1_edge_index.device.type == "meta"


def test_missing_edges_are_those_of_level_0() -> None:
    data, h = GRAPHS[0]
    bare = h.attach(Data(x=data.x))
    same(bare.hierarchy(), joined([h]))


def test_other_keys_behave_as_in_pyg() -> None:
    pairs = []
    for attached in ATTACHED[:2]:
        attached = attached.clone()
        attached.anchor_index = torch.tensor([0])
        attached.h_mean = torch.tensor([1.0])
        attached.hint = torch.tensor([2])
        pairs.append(attached)
    batch = Batch.from_data_list(pairs)
    assert batch.anchor_index.tolist() == [0, 5]
    assert batch.h_mean.tolist() == [1.0, 1.0]
    assert batch.hint.tolist() == [2, 2]


def test_wrong_graph_is_explained() -> None:
    with pytest.raises(ValueError, match="got data of 1 nodes and a hierarchy of 1"):
        GRAPHS[0][1].attach(GRAPHS[1][0])
    batch = Batch.from_data_list(ATTACHED)
    with pytest.raises(ValueError, match="a hierarchy of 4 graphs"):
        batch.hierarchy().attach(Data(x=batch.x))


def test_different_depths_are_explained() -> None:
    data, h = GRAPHS[0]
    flat = Hierarchy(h.levels[:2], h.selections[:1]).attach(data)
    batch = Batch.from_data_list([flat, ATTACHED[1]])
    with pytest.raises(ValueError, match=r"graphs with \[2, 3\] levels"):
        batch.hierarchy()
