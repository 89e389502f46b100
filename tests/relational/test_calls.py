"""Which arguments a base network gets, and what chunks do not allow."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Dropout, Identity, Module
from torch_geometric.nn import GATConv, GCNConv

from pyg_pool.errors import PygPoolWarning
from pyg_pool.relational import ContextGIN
from pyg_pool.relational.calls import call_base, check_chunks

EDGES = torch.tensor([[0, 1], [1, 0]])


class Spy(Module):
    """Shows how many graphs it was told of."""

    def forward(self, x: Tensor, edge_index: Tensor, batch_size: int) -> Tensor:
        """A row per node."""
        return x + batch_size


def test_modules_get_what_they_name() -> None:
    x, batch = torch.ones(2, 3), torch.zeros(2, dtype=torch.long)
    for base, attr in (
        (GCNConv(3, 2), torch.ones(2)),
        (GATConv(3, 2, edge_dim=4), torch.ones(2, 4)),
        (GCNConv(3, 2), None),
    ):
        assert call_base(base, x, EDGES, attr, batch, 1).shape == (2, 2)
    assert call_base(Spy(), x, EDGES, None, batch, 5).eq(6).all()
    heavy = call_base(GCNConv(3, 2), x, EDGES, torch.tensor([9.0, 1.0]), batch, 1)
    assert not torch.equal(heavy[0], heavy[1])


@pytest.mark.parametrize("layer", [BatchNorm1d(2), Dropout(0.5)])
def test_chunks_warn_of_some_layers_in_training(layer: Module) -> None:
    with pytest.warns(PygPoolWarning, match="take a layer norm"):
        check_chunks(layer, 3, training=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_chunks(layer, 3, training=False)
        check_chunks(Identity(), 3, training=True)


def test_copies_that_read_each_other_cannot_be_cut_up() -> None:
    with pytest.raises(ValueError, match="leave chunk_size out"):
        check_chunks(ContextGIN(2, 2, 1, ("node",)), 3, training=False)
