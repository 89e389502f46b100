"""The layers beside PyG's convolutions with the same weights."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.nn import GATConv, GCNConv

from pyg_pool.core.token_convs import GATLayer, GCNLayer

# Loops, a double edge, an isolated node.
EDGES = torch.tensor([[0, 1, 1, 2, 3, 3, 3, 2], [1, 0, 1, 3, 2, 3, 1, 3]])


@pytest.mark.parametrize("heads", [1, 2])
def test_gat_is_pygs(heads: int, backend: str) -> None:
    layer = GATLayer(3, 4, heads).double()
    peer = GATConv(3, 4 // heads, heads, edge_dim=1).double()
    peer.load_state_dict(layer.state_dict())
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    attr = torch.rand(8, 1, dtype=torch.float64)
    out, wanted = layer(x, EDGES, attr), peer(x, EDGES, attr)
    assert_close(out, wanted)
    weight = torch.rand_like(out)
    names = [name for name, _ in layer.named_parameters()]
    grads = [
        torch.autograd.grad(
            (rows * weight).sum(), [x, *map(owner.get_parameter, names)]
        )
        for rows, owner in ((out, layer), (wanted, peer))
    ]
    assert_close(*grads)


def test_gcn_is_pygs(backend: str) -> None:
    edges = EDGES[:, :-1]  # PyG keeps one of several loops; none here
    layer, peer = GCNLayer(3, 4).double(), GCNConv(3, 4).double()
    peer.load_state_dict(layer.state_dict())
    x = torch.randn(5, 3, dtype=torch.float64)
    attr = torch.rand(7, 1, dtype=torch.float64) + 0.1
    assert_close(layer(x, edges, attr), peer(x, edges, attr.view(-1)))


def test_weights_that_cancel_give_no_nan() -> None:
    x = torch.randn(2, 3, requires_grad=True)
    edges = torch.tensor([[0, 1], [1, 1]])
    out = GCNLayer(3, 4)(x, edges, torch.tensor([[-1.0], [1.0]]))
    out.sum().backward()
    assert out.isfinite().all()
    assert x.grad.isfinite().all()


def test_equal_rows_of_any_size_leave_the_attention_still() -> None:
    layer = GATLayer(3, 4)
    x = torch.full((3, 3), 1e12).requires_grad_()
    edges = torch.tensor([[0, 1, 2, 0], [1, 0, 0, 2]])
    (layer(x, edges, torch.ones(4, 1)) * torch.randn(4)).sum().backward()
    assert layer.att_src.grad.abs().max() == 0.0


def test_no_row_per_edge_is_held(backend: str) -> None:
    if backend == "native":
        pytest.skip("plain torch holds a row per edge")
    from pyg_pool.testing import Watch

    layer, x = GATLayer(8, 64), torch.randn(200, 8)
    edges = torch.cartesian_prod(torch.arange(200), torch.arange(200)).t().contiguous()
    with Watch() as watch:
        layer(x, edges, torch.ones(40_000, 1))
    assert watch.largest < 40_200 * 64
