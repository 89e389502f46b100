from __future__ import annotations

import dataclasses

import pytest
import torch

from pyg_pool import GPool
from pyg_pool.testing import sample
from pyg_pool.testing.dense import compare_views, dense_adjacency, dense_view


def test_adjacency_counts_and_sums() -> None:
    edges = torch.tensor([[0, 0, 1], [1, 1, 1]])
    found = dense_adjacency(edges, torch.tensor([2.0, 3.0, 7.0]), 2)
    assert found[..., 0].tolist() == [[0.0, 2.0], [0.0, 1.0]]
    assert found[..., 1].tolist() == [[0.0, 5.0], [0.0, 7.0]]


def test_views_with_other_cluster_numbers_are_equal() -> None:
    given = sample("weighted")
    view = dense_view(GPool(4).double()(given.x, given.edge_index, given.edge_attr))
    order = torch.tensor([2, 0, 1])
    other = dataclasses.replace(
        view,
        membership=view.membership[:, order],
        weighted=view.weighted[:, order],
        rows=view.rows[order],
        batch=view.batch[order],
        edges=view.edges[order][:, order],
    )
    compare_views(other, view, "renumbered")


@pytest.mark.parametrize(
    ("field", "fault"),
    [
        ("weighted", "members"),
        ("rows", "features"),
        ("batch", "batch"),
        ("edges", "edges"),
    ],
)
def test_each_difference_is_found(field: str, fault: str) -> None:
    given = sample("weighted")
    view = dense_view(GPool(4).double()(given.x, given.edge_index, given.edge_attr))
    changed = {field: getattr(view, field) + 1}
    with pytest.raises(AssertionError, match=fault):
        compare_views(dataclasses.replace(view, **changed), view, "changed")
    smaller = dense_view(GPool(4, ratio=1).double()(given.x, given.edge_index))
    with pytest.raises(AssertionError, match="1 clusters, expected 3"):
        compare_views(smaller, view, "smaller")
