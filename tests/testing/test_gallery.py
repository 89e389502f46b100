from __future__ import annotations

import pytest
import torch

from pyg_pool.testing import gallery, random_batch, sample

REQUIRED = {
    "no_nodes",
    "one_node",
    "no_edges",
    "isolated_nodes",
    "self_loops",
    "duplicate_edges",
    "path",
    "star",
    "cycle",
    "interleaved",
    "empty_graphs",
    "weighted",
    "weight_column",
    "attributes",
}


def test_gallery_has_every_awkward_graph_once() -> None:
    names = [each.name for each in gallery()]
    assert set(names) >= REQUIRED
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", [each.name for each in gallery()])
def test_samples_are_well_formed(name: str) -> None:
    found = sample(name, in_channels=3)
    assert found.x.shape == (found.num_nodes, 3)
    assert found.x.dtype == torch.float64
    assert found.edge_index.shape == (2, found.num_edges)
    assert found.edge_index.dtype == torch.long
    if found.num_edges > 0:
        assert int(found.edge_index.max()) < found.num_nodes
        row, col = found.edge_index
        assert torch.equal(found.batch[row], found.batch[col])
    if found.num_nodes > 0:
        assert int(found.batch.max()) < found.batch_size
        assert len(found.x.unique()) == found.x.numel()
    if found.edge_attr is not None:
        assert found.edge_attr.size(0) == found.num_edges


def test_samples_are_what_their_names_say() -> None:
    assert sample("no_nodes").num_nodes == 0
    assert sample("only_empty_graphs").batch_size == 3
    assert sample("one_node").num_nodes == 1
    assert sample("no_edges").num_edges == 0
    loops = sample("self_loops").edge_index
    assert (loops[0] == loops[1]).sum() == 2
    doubled = sample("duplicate_edges").edge_index
    assert torch.unique(doubled, dim=1).size(1) < doubled.size(1)
    mixed = sample("interleaved").batch
    assert (mixed[1:] < mixed[:-1]).any()
    counts = torch.bincount(sample("empty_graphs").batch, minlength=6)
    assert counts.tolist() == [0, 3, 0, 2, 0, 0]
    isolated = sample("isolated_nodes")
    assert set(range(6)) - set(isolated.edge_index.flatten().tolist()) == {3, 4, 5}
    assert sample("weighted").edge_attr.dim() == 1
    assert sample("weight_column").edge_attr.size(1) == 1
    assert sample("attributes").edge_attr.size(1) == 3
    assert sample("attributes").has_attributes
    assert not sample("weight_column").has_attributes


def test_unknown_name_is_refused() -> None:
    with pytest.raises(KeyError, match="expected one of"):
        sample("pentagram")


def test_permuted_sample_is_the_same_graph() -> None:
    given = random_batch([5, 4])
    order = torch.randperm(9)
    edge_order = torch.randperm(given.num_edges)
    moved = given.permuted(order, edge_order)
    assert torch.equal(moved.x, given.x[order])
    for e in range(given.num_edges):
        old = given.edge_index[:, edge_order[e]]
        assert torch.equal(order[moved.edge_index[:, e]], old)
        assert moved.edge_attr[e] == given.edge_attr[edge_order[e]]


def test_single_graph_of_a_batch() -> None:
    alone, nodes = sample("interleaved").single(1)
    assert nodes.tolist() == [0, 2, 5]
    assert alone.edge_index.tolist() == [[0, 1, 1, 2], [1, 2, 0, 1]]
    assert alone.batch_size == 1


def test_random_batch_has_the_sizes_asked_for() -> None:
    drawn = random_batch([3, 0, 1, 6], edge_channels=2)
    assert torch.bincount(drawn.batch, minlength=4).tolist() == [3, 0, 1, 6]
    assert drawn.batch_size == 4
    assert drawn.edge_attr.shape == (drawn.num_edges, 2)
    again = random_batch([3, 0, 1, 6], edge_channels=2)
    assert torch.equal(drawn.x, again.x)
    assert torch.equal(drawn.edge_index, again.edge_index)
