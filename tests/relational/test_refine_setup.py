"""Graphs side by side, and the copies of each policy."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

from pyg_pool.relational.refine_setup import Setup, copies_of, gather_graphs

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
