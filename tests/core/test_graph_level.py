from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from pyg_pool.core.graph_level import GraphLevel, undirected

EDGES = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
LEVEL = GraphLevel(EDGES, None, torch.tensor([0, 0, 0, 1, 1]), 2, 5)


def level_of(edges: Tensor, attr: Tensor | None, size: int) -> GraphLevel:
    return GraphLevel(edges, attr, torch.zeros(size).long(), 1, size)


def test_readout_by_graph() -> None:
    x = torch.arange(5.0).view(5, 1)
    assert LEVEL.readout(x).view(-1).tolist() == [3.0, 7.0]
    assert LEVEL.readout(x, "mean").view(-1).tolist() == [1.0, 3.5]


def test_sizes_of_the_graphs() -> None:
    assert LEVEL.sizes.tolist() == [3, 2]
    assert_close(LEVEL.scale(torch.float32)[1], torch.tensor(3.0).rsqrt())


def test_undirected() -> None:
    loops = torch.tensor([[0, 1], [0, 1]])
    given = torch.cat([EDGES.flip(1), loops, EDGES[:, :1]], dim=1)
    level = undirected("Net", level_of(given, None, 5), symmetrise=False)
    assert level.edge_index.tolist() == EDGES.tolist()
    assert level.batch.tolist() == [0] * 5
    weight = torch.tensor([2.0, 4.0])
    one_way = torch.tensor([[0, 2], [1, 1]])
    level = undirected("Net", level_of(one_way, weight, 3), symmetrise=True)
    assert level.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert level.edge_attr.tolist() == [2.0, 2.0, 4.0, 4.0]
    with pytest.raises(ValueError, match="2 edges without their opposite among 2"):
        undirected("Net", level_of(one_way, weight, 3), symmetrise=False)
