"""The isomorphism layers beside PyG's with the same weights."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.nn import MLP, GINConv, GINEConv

from pyg_pool.core import token_gin
from pyg_pool.core.token_gin import GINELayer, GINLayer

EDGES = torch.tensor([[0, 1, 1, 2, 3, 3], [1, 0, 1, 3, 2, 1]])


@pytest.mark.parametrize("training", [False, True])
def test_gin_is_pygs(training: bool, backend: str) -> None:
    layer, peer = GINLayer(3, 4).double(), GINConv(MLP([3, 4, 4])).double()
    peer.load_state_dict(layer.state_dict())
    x = torch.randn(5, 3, dtype=torch.float64)
    out = layer.train(training)(x, EDGES, torch.ones(6, 1))
    wanted = peer.train(training)(x, EDGES)
    assert_close(out, wanted)
    for rows in (out, wanted):
        rows.square().sum().backward()
    assert_close(layer.nn.lins[0].weight.grad, peer.nn.lins[0].weight.grad)
    for name, buffer in layer.named_buffers():
        assert_close(buffer, peer.get_buffer(name))


@pytest.mark.parametrize("is_constant", [False, True])
def test_gine_is_pygs(
    is_constant: bool, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setattr(token_gin, "CHUNK", 6)  # two edges at once
    layer = GINELayer(3, 4).double().eval()
    peer = GINEConv(MLP([3, 4, 4]), edge_dim=1).double().eval()
    peer.load_state_dict(layer.state_dict())
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    attr = torch.ones(1, 1, dtype=torch.float64).expand(6, 1)
    attr = attr if is_constant else torch.rand(6, 1, dtype=torch.float64)
    out, wanted = layer(x, EDGES, attr), peer(x, EDGES, attr)
    assert_close(out, wanted)
    for mine, theirs in zip(
        torch.autograd.grad(out.square().sum(), [x, layer.lin.weight]),
        torch.autograd.grad(wanted.square().sum(), [x, peer.lin.weight]),
        strict=True,
    ):
        assert_close(mine, theirs)


@pytest.mark.parametrize("kind", [GINLayer, GINELayer])
def test_single_and_no_rows_in_training(kind: type) -> None:
    layer = kind(3, 4).train()
    none = torch.empty(2, 0, dtype=torch.long)
    for size in (0, 1):
        out = layer(torch.randn(size, 3), none, torch.empty(0, 1))
        assert out.shape == (size, 4)
        assert out.isfinite().all()
    assert layer.nn.norms[0].module.num_batches_tracked == 0


def test_half_precision_weights_meet_float32_rows() -> None:
    layer = GINELayer(3, 4).bfloat16().train()
    out = layer(torch.randn(5, 3), EDGES, torch.rand(6, 1))
    assert out.dtype == torch.float32
    assert layer.nn.norms[0].module.num_batches_tracked == 1
    assert layer.nn.norms[0].module.running_mean.abs().max() > 0


def test_reset_forgets_the_statistics() -> None:
    layer = GINELayer(3, 4).train()
    layer(torch.randn(5, 3) + 3, EDGES, torch.rand(6, 1))
    layer.reset_parameters()
    assert layer.nn.norms[0].module.running_mean.abs().max() == 0
