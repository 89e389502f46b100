"""Chunks of copies put together for each node."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import GCNConv

from pyg_pool.relational import RelationalPooling

EDGES = torch.tensor([[0, 1, 1, 2, 3, 2], [1, 0, 2, 1, 2, 3]])


@pytest.mark.parametrize("level", ["graph", "node"])
@pytest.mark.parametrize("pool", ["sum", "mean", "max", "min"])
def test_chunks_equal_all_at_once(pool: str, level: str) -> None:
    base = GCNConv(4, 3).double()
    x = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    grads, outs = [], []
    for chunk in (None, 1, 3):
        model = RelationalPooling(
            base,
            2,
            domain="star",
            ego=1,
            readout="node",
            level=level,
            tuple_pool=pool,
            chunk_size=chunk,
        )
        outs.append(model(x, EDGES))
        weight = torch.arange(1.0, outs[-1].numel() + 1).view_as(outs[-1])
        grads.append(torch.autograd.grad((outs[-1] * weight).sum(), x)[0])
    for out, grad in zip(outs[1:], grads[1:], strict=True):
        torch.testing.assert_close(out, outs[0])
        torch.testing.assert_close(grad, grads[0])


def test_other_pools_cannot_be_put_together() -> None:
    model = RelationalPooling(
        GCNConv(3, 3), 1, readout="node", tuple_pool="median", chunk_size=1
    )
    with pytest.raises(ValueError, match="leave chunk_size out"):
        model(torch.ones(4, 2), EDGES)
