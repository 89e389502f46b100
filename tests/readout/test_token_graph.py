"""The public token graph: defaults, options, messages."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.readout import token_graph

X = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.0, 3.0]])


def test_one_sequence_or_several() -> None:
    assert token_graph(X).tolist() == [[0, 2, 1, 3, 0, 2, 1, 3],
                                       [0, 0, 1, 1, 2, 2, 3, 3]]  # fmt: skip
    split = token_graph(X, torch.tensor([1, 1, 0, 0]), dim_size=5)
    assert split.tolist() == [[0, 1, 2, 3], [0, 1, 2, 3]]


def test_options_reach_the_graph() -> None:
    assert token_graph(X, self_loops=False).size(1) == 4
    assert token_graph(X, window=1).size(1) == 4
    assert token_graph(X, tau=-2.0).size(1) == 16
    assert token_graph(X, tau=-2.0, max_neighbors=1).size(1) == 8
    assert torch.equal(token_graph(X, chunk_size=1), token_graph(X))


def test_graph_is_both_ways_and_sorted_by_target() -> None:
    edges = token_graph(torch.randn(60, 3), torch.randint(4, (60,)), 0.2)
    key = edges[1] * 60 + edges[0]
    assert (key.diff() > 0).all()
    back = edges[0] * 60 + edges[1]
    assert torch.equal(back.sort().values, key)


def test_half_precision_is_compared_in_float32() -> None:
    x = torch.randn(30, 64).half()
    assert torch.equal(token_graph(x, tau=0.1), token_graph(x.float(), tau=0.1))


def test_messages() -> None:
    with pytest.raises(TypeError, match="expected a floating point tensor"):
        token_graph(X.long())
    with pytest.raises(ValueError, match="give one segment per row"):
        token_graph(X, torch.zeros(3).long())
