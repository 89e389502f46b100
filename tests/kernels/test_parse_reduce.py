"""One operation against the two that it stands for."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from pyg_pool.kernels import deepsets as deepsets_file
from pyg_pool.kernels import use_backend
from pyg_pool.kernels.parse_reduce import parse_reduce

HOWS = pytest.mark.parametrize("how", ["sum", "mean", "none"])
DEPTHS = pytest.mark.parametrize("has_layers", [True, False])


def layer(width, dtype):
    made = [torch.randn(width, width) * 0.5, *torch.randn(3, width)]
    return (*(each.to(dtype).requires_grad_() for each in made), 1e-5)


def random_input(dtype, has_layers, size=30, width=5):
    torch.manual_seed(0)
    ends = torch.randint(size, (2, 2 * size))
    x = torch.randn(size, width, dtype=dtype, requires_grad=True)
    score = torch.randn(width, dtype=dtype), torch.randn(1, dtype=dtype)
    score = tuple(each.requires_grad_() for each in score)
    layers = (layer(width, dtype), layer(width, dtype)) if has_layers else None
    leaves = [x, *score, *(p for each in layers or () for p in each[:4])]
    return torch.cat([ends, ends.flip(0)], 1), layers, leaves


def results(edges, layers, leaves, how, uses=("mean", "rows")):
    cluster, mean, count, out = parse_reduce(
        leaves[0], edges, leaves[1], leaves[2], layers, how
    )
    loss = 0.0
    if "mean" in uses:
        loss = loss + (mean * torch.arange(mean.numel())).sum()
    if "rows" in uses:
        loss = loss + (out * torch.arange(out.numel()).view_as(out)).sum()
    grads = torch.autograd.grad(loss, leaves, allow_unused=True)
    return [cluster, mean, count, out, *grads]


def same(found, wanted, dtype):
    close = {"rtol": 2e-4, "atol": 2e-3} if dtype == torch.float32 else {}
    for ours, other in zip(found, wanted, strict=True):
        if ours is None or other is None:
            assert not (torch.zeros(1) if ours is None else ours).any()
            assert not (torch.zeros(1) if other is None else other).any()
        else:
            assert_close(ours, other, **close)


@HOWS
@DEPTHS
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("uses", [("mean", "rows"), ("mean",), ("rows",)])
def test_compiled_equals_native(has_layers, how, dtype, uses) -> None:
    given = random_input(dtype, has_layers)
    found = {}
    for backend in ("native", "numba"):
        with use_backend(backend):
            found[backend] = results(*given, how, uses)
    same(found["numba"], found["native"], dtype)


@pytest.mark.parametrize(("block", "kept"), [(20, 1 << 22), (20, 0), (1 << 18, 0)])
def test_blocks_and_rows_computed_again_change_nothing(
    block: int, kept: int, monkeypatch
) -> None:
    given = random_input(torch.float64, True)
    with use_backend("numba"):
        wanted = results(*given, "sum")
        monkeypatch.setattr(deepsets_file, "BLOCK", block)
        monkeypatch.setattr(deepsets_file, "KEPT", kept)
        same(results(*given, "sum"), wanted, torch.float64)


@HOWS
@DEPTHS
def test_second_derivatives(has_layers, how) -> None:
    edges, _, leaves = random_input(torch.float64, has_layers, 7, 2)

    def run(*parts):
        again = None
        if has_layers:
            again = (*parts[3:7], 1e-5), (*parts[7:], 1e-5)
        return parse_reduce(parts[0], edges, parts[1], parts[2], again, how)[1::2]

    with use_backend("numba"):
        assert torch.autograd.gradcheck(run, leaves)
        assert torch.autograd.gradgradcheck(run, leaves)


@DEPTHS
def test_no_nodes_and_no_edges(has_layers, backend: str) -> None:
    _, layers, leaves = random_input(torch.float32, has_layers)
    none = torch.empty(2, 0, dtype=torch.long)
    out = parse_reduce(leaves[0][:0], none, *leaves[1:3], layers, "sum")[3]
    assert out.shape == (0, 5)
    x = leaves[0].detach().clone().requires_grad_()
    cluster, mean, _, out = parse_reduce(x, none, *leaves[1:3], layers, "sum")
    assert cluster.tolist() == list(range(30))
    assert mean.tolist() == [1.0] * 30
    out.sum().backward()
    assert x.grad.shape == x.shape
