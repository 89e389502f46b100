"""The base networks of copies against PyG's own layers."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import GINConv, GINEConv

from pyg_pool.relational import CopyGIN, ResidualConv

EDGES = torch.tensor([[0, 1, 1, 2, 3, 3], [1, 0, 2, 1, 2, 3]])


@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
@pytest.mark.parametrize("edge_channels", [0, 3])
def test_equals_pyg(norm: str, edge_channels: int, backend: str) -> None:
    net = CopyGIN(2, 5, 2, edge_channels=edge_channels, norm=norm).double()
    x = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    attr = torch.randn(6, 3, dtype=torch.float64) if edge_channels else None
    want = x
    for layer, mlp in enumerate(net.mlps):
        if attr is None:
            conv = GINConv(torch.nn.Identity())
            want = mlp(conv(want, EDGES)).relu()
        else:
            gine = GINEConv(torch.nn.Linear(want.size(1), 1))
            gine.nn, gine.lin = torch.nn.Identity(), None
            want = mlp(gine(want, EDGES, net.edges[layer](attr))).relu()
    got = net(x, EDGES, attr)
    torch.testing.assert_close(got, want)
    grad = torch.autograd.grad(got.square().sum(), x)[0]
    torch.testing.assert_close(grad, torch.autograd.grad(want.square().sum(), x)[0])


def test_weights_are_drawn_anew() -> None:
    for net in (CopyGIN(2, 4, 2, edge_channels=3), ResidualConv(4)):
        before = [p.clone() for p in net.parameters()]
        net.reset_parameters()
        after = list(net.parameters())
        assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_scales_of_one_are_no_scales() -> None:
    conv, x = ResidualConv(4), torch.randn(4, 4)
    ones = torch.ones(6, 4)
    torch.testing.assert_close(conv(x, EDGES, ones), conv(x, EDGES))
    assert not torch.allclose(conv(x, EDGES, 2 * ones), conv(x, EDGES))


def test_unknown_norm_is_refused() -> None:
    with pytest.raises(ValueError, match="did you mean 'batch'"):
        CopyGIN(2, 4, 2, norm="bath")


def test_batch_statistics_move_alike_on_every_backend(backend: str) -> None:
    torch.manual_seed(3)
    net = CopyGIN(2, 5, 3).double()
    x = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    want, total = x, CopyGIN(2, 5, 3).double()
    total.load_state_dict(net.state_dict())
    for mlp in total.mlps:
        want = mlp(GINConv(torch.nn.Identity())(want, EDGES)).relu()
    torch.testing.assert_close(net(x, EDGES), want)
    for one, two in zip(net.buffers(), total.buffers(), strict=True):
        torch.testing.assert_close(one, two)
    torch.testing.assert_close(net.eval()(x, EDGES), net.eval()(x.detach(), EDGES))
