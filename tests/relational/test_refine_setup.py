"""Graphs side by side, and the copies of each policy."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData

from pyg_pool.relational.refine_options import Setup
from pyg_pool.relational.refine_setup import copies_of, gather_graphs

PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def setup(policy: str) -> Setup:
    return Setup(
        1, 1, False, "distinct", True, "tuple", None, "root", None, policy, False
    )


def test_graphs_are_put_side_by_side() -> None:
    graphs = [Data(num_nodes=2), Data(edge_index=PATH, num_nodes=3)]
    tints = [torch.tensor([[5.0], [7.0]]), torch.tensor([[7.0], [7.0], [5.0]])]
    colored = gather_graphs(graphs, tints, None)
    assert colored.sizes == [2, 3]
    assert colored.edge_index.tolist() == (PATH + 2).tolist()
    assert colored.batch.tolist() == [0, 0, 1, 1, 1]
    assert colored.node.tolist() == [0, 1, 1, 1, 0]
    part = colored.part(1, 2)
    assert part.edge_index.tolist() == PATH.tolist()
    assert part.node.tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("policy", "nodes", "edges"),
    [
        ("mark", [0, 1, 2] * 3, [0, 1, 2, 3] * 3),
        ("delete_node", [1, 2, 0, 2, 0, 1], [2, 3, 0, 1]),
        ("delete_edge", [0, 1, 2] * 2, [2, 3, 0, 1]),
    ],
)
def test_copies(policy: str, nodes: list[int], edges: list[int]) -> None:
    colored = gather_graphs([Data(edge_index=PATH, num_nodes=3)], None, None)
    copies, tuples = copies_of(colored, setup(policy))
    assert copies.pair_node.tolist() == nodes
    assert copies.edge_id.tolist() == edges
    assert len(tuples) == len(copies.pair_ptr) - 1


def test_graphs_without_edges_stand_on_the_device_of_the_others() -> None:
    there = Data(edge_index=PATH.to("meta"), num_nodes=3)
    with pytest.raises(ValueError, match=r"\['cpu', 'meta'\], expected one device"):
        gather_graphs([there, Data(edge_index=PATH, num_nodes=3)], None, None)
    colored = gather_graphs([Data(num_nodes=2), there], None, None)
    for name in ("edge_index", "node", "batch"):
        assert getattr(colored, name).device.type == "meta", name


@pytest.mark.parametrize(
    ("tints", "kind", "message"),
    [
        (3, TypeError, "node_colors of type int, expected a list of tensors"),
        ([["a", "b", "c"]] * 2, TypeError, "type list that are no real numbers"),
        ([torch.zeros(3).cfloat()] * 2, TypeError, "number the colours"),
        ([torch.zeros(3), torch.zeros(3).long()], ValueError, "whole numbers for all"),
        ([torch.zeros(3)], ValueError, r"rows \[3\] .*, expected \[3, 3\]"),
    ],
)
def test_colours_that_cannot_be_compared(
    tints: Any, kind: type[Exception], message: str
) -> None:
    path = Data(edge_index=PATH, num_nodes=3)
    with pytest.raises(kind, match=message):
        gather_graphs([path, path], tints, None)


def test_colours_of_odd_shapes_and_types() -> None:
    path, none = Data(edge_index=PATH, num_nodes=3), Data(num_nodes=0)
    # Rows without entries are equal; graphs without nodes have no width.
    bare = [torch.zeros(3, 0), torch.zeros(3, 0)]
    assert gather_graphs([path, path], bare, None).node.tolist() == [0] * 6
    empty = [torch.zeros(0, 9), torch.zeros(0, 2).long()]
    assert gather_graphs([none, none], empty, None).node.tolist() == []
    mixed = [torch.zeros(0, 9), torch.tensor([3, 2**60 + 1, 2**60])]
    assert gather_graphs([none, path], mixed, None).node.tolist() == [0, 2, 1]
    signed = [torch.tensor([True, False, True]), torch.tensor([1, 0, -1])]
    assert gather_graphs([path, path], signed, None).node.tolist() == [2, 1, 2, 2, 1, 0]


def test_batches_and_heterogeneous_graphs_are_no_single_graphs() -> None:
    path = Data(edge_index=PATH, num_nodes=3)
    for other in (Batch.from_data_list([path, path]), HeteroData()):
        with pytest.raises(TypeError, match=r"a batch with batch\.to_data_list"):
            gather_graphs([path, other], None, None)
