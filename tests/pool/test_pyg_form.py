"""Results in PyG's form."""

from __future__ import annotations

import pytest
import torch

from pyg_pool import GPool, PoolOutput, Selection, as_pyg_tuple

EDGES = torch.tensor([[0, 1, 2], [1, 2, 3]])


def test_has_six_values_in_the_order_of_pyg() -> None:
    x, attr = torch.randn(4, 2), torch.randn(3, 5)
    out = GPool(2, 0.5)(x, EDGES, attr)
    pooled, edge_index, edge_attr, batch, perm, score = as_pyg_tuple(out)
    assert pooled is out.x
    assert edge_index is out.edge_index
    assert edge_attr is out.edge_attr
    assert batch.tolist() == [0, 0]
    assert score is not None
    torch.testing.assert_close(x[perm] * score[:, None], pooled)


def test_perm_is_by_cluster() -> None:
    kept = Selection(torch.tensor([3, 1]), 4, torch.tensor([1, 0]), 2)
    nothing = torch.zeros(2)
    out = PoolOutput(nothing, EDGES[:, :0], None, nothing, kept, None, nothing, 1)
    assert as_pyg_tuple(out).perm.tolist() == [1, 3]


def test_refuses_clusters() -> None:
    pairs = Selection.from_clusters(torch.tensor([0, 0, 1]))
    nothing = torch.zeros(2)
    out = PoolOutput(nothing, EDGES[:, :0], None, nothing, pairs, None, nothing, 1)
    with pytest.raises(ValueError, match=r"expected clusters of one node each"):
        as_pyg_tuple(out)
