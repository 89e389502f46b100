"""Unpooling: shapes come back, and what vanished gets the learned vector."""

from __future__ import annotations

import pytest
import torch

from pyg_pool import PrimalDualPooling, PrimalDualUnpooling, Selection
from tests.pool.sequential_mesh_pooling import random_graphs


def test_rows_come_back() -> None:
    graphs = random_graphs([9, 5], torch.Generator().manual_seed(4))
    out = PrimalDualPooling(fraction_to_keep=0.5)(**graphs)
    unpool = PrimalDualUnpooling(2).double()
    x, x_dual = unpool(out.x, out.x_dual, out.selection, out.selection_dual)
    assert x.shape == graphs["x"].shape
    assert x_dual.shape == graphs["x_dual"].shape
    gone = out.selection_dual.cluster < 0
    assert bool(gone.any())
    assert torch.equal(x, out.x[out.selection.cluster])
    assert bool((x_dual[gone] == unpool.new_dual_feature).all())
    x_dual.sum().backward()
    assert unpool.new_dual_feature.grad.tolist() == [[float(gone.sum())] * 2]


def test_levels_compose() -> None:
    graphs = random_graphs([12], torch.Generator().manual_seed(4))
    first = PrimalDualPooling(fraction_to_keep=0.7)(**graphs)
    attention = torch.linspace(0, 1, first.edge_index.size(1))
    second = PrimalDualPooling(fraction_to_keep=0.5)(
        first.x, first.x_dual, first.edge_index, first.edge_index_dual,
        first.edge_to_dual, attention,
    )  # fmt: skip
    direct = first.selection.compose(second.selection).cluster
    assert direct.tolist() == second.selection.cluster[first.selection.cluster].tolist()


def test_wrong_shapes() -> None:
    three = Selection.from_clusters(torch.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="x_dual of shape"):
        PrimalDualUnpooling(2)(torch.ones(3, 1), torch.ones(2, 2), three, three)
    with pytest.raises(ValueError, match="expected 2 columns"):
        PrimalDualUnpooling(2)(torch.ones(3, 1), torch.ones(3, 1), three, three)
    assert repr(PrimalDualUnpooling(2)) == "PrimalDualUnpooling(2)"
