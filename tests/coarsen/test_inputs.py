"""Kinds of graphs and target sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from scipy.sparse import csr_matrix
from torch_geometric.data import Data

from pyg_pool.coarsen.inputs import as_graph, target_sizes

PAIR = torch.tensor([[0, 1], [1, 0]])


def test_weights_of_data() -> None:
    for name in ("edge_weight", "edge_attr"):
        data = Data(edge_index=PAIR, num_nodes=3, **{name: torch.tensor([2.0, 2.0])})
        assert as_graph(data).weight.tolist() == [2, 2]
    features = Data(edge_index=PAIR, num_nodes=3, edge_attr=torch.ones(2, 4) * 7)
    assert as_graph(features).weight.size == 0
    assert as_graph(Data(num_nodes=3)).num_nodes == 3


def test_half_precision_weights_become_single() -> None:
    weight = torch.tensor([0.1, 0.1], dtype=torch.float16)
    assert as_graph(PAIR, weight).weight.dtype.itemsize == 4


def test_path_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0 1\n1 2\n")
    assert as_graph(tmp_path / "a.txt").num_edges == 2


def test_options_that_a_graph_holds_already(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0 1\n1 2\n")
    matrix = csr_matrix((2, 2))
    for kind in (tmp_path / "a.txt", matrix, as_graph(matrix)):
        with pytest.raises(ValueError, match="got size beside"):
            as_graph(kind, size=7)
        with pytest.raises(ValueError, match="got edge_weight beside"):
            as_graph(kind, torch.ones(2))
    assert as_graph(Data(edge_index=PAIR, num_nodes=2), size=7).num_nodes == 7


def test_sizes() -> None:
    assert target_sizes(10, 0.25, None, 2) == [3, 1]
    assert target_sizes(10, None, [7, 3], 1) == [7, 3]
    assert target_sizes(0, 0.5, None, 1) == [0]
    for ratio in (0.0, -0.5, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="a number above 0"):
            target_sizes(10, ratio, None, 1)
    with pytest.raises(ValueError, match="levels=3"):
        target_sizes(10, None, [7, 3], 3)
