"""The readout of histories in one step against its single steps."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from pyg_pool import HistographAggregation
from pyg_pool.core.history_pooled import pooled_history
from pyg_pool.kernels import use_backend

# More rows than a block holds, an empty group first, last and between.
SIZES = [0, 30, 1, 300, 200, 0, 17, 5, 0]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"pool": "sum", "heads": 2},
    {"layer_attention": "softmax", "positional": "learned"},
    {"layer_attention": "mean", "shared_projection": True},
    {"layer_attention": "signed_abs", "max_weight": 0.6},
]


def index_of(sizes: list[int]) -> Tensor:
    return torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))


def results(
    readout: HistographAggregation, x: Tensor, backend: str
) -> dict[str, Tensor]:
    """The result and all gradients."""
    x, index = x.clone().requires_grad_(), index_of(SIZES)
    readout.zero_grad()
    with use_backend(backend):  # type: ignore[arg-type]
        out = readout(x, index, dim_size=len(SIZES))
    torch.manual_seed(7)
    out.backward(torch.randn(out.shape))
    assert x.grad is not None
    found = {n: p.grad for n, p in readout.named_parameters() if p.grad is not None}
    return {"out": out.detach(), "x": x.grad, **found}


@pytest.mark.parametrize("options", OPTIONS)
def test_like_single_steps(options: dict[str, Any]) -> None:
    torch.manual_seed(2)
    readout = HistographAggregation(12, 32, 3, **options)
    with torch.no_grad():
        for parameter in readout.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    x = torch.randn(sum(SIZES), 36)
    found, wanted = (results(readout, x, name) for name in ("auto", "native"))
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        bound = 2e-5 * float(value.abs().max()) + 1e-6
        assert_close(found[name], value, rtol=1e-3, atol=bound, msg=name)
    for empty in (0, 5, 8):
        assert found["out"][empty].abs().max() == 0


def pooled(readout: HistographAggregation, x: Tensor, index: Tensor) -> Tensor | None:
    wide = dict(readout.named_parameters())
    return pooled_history(x, index, 9, readout.form, wide, 0.0)


def test_it_is_reached() -> None:
    readout, index = HistographAggregation(12, 32, 3), index_of(SIZES)
    x = torch.randn(sum(SIZES), 36)
    assert pooled(readout, x, index) is not None
    assert pooled(readout, x, index.flip(0)) is None
    assert pooled(readout, 1e9 * x, index) is None
    assert pooled(HistographAggregation(12, 24, 3), x, index) is None
    assert pooled(HistographAggregation(12, 32, 3, norm=None), x, index) is None


def test_not_a_number_stays_in_its_graph() -> None:
    readout, x = HistographAggregation(12, 32, 3), torch.randn(sum(SIZES), 36)
    x[30, 4] = torch.nan
    out = pooled(readout, x, index_of(SIZES))
    assert out is None or out.isnan().any(1).nonzero().flatten().tolist() == [2]


def test_second_derivatives_and_two_backward_passes() -> None:
    readout, index = HistographAggregation(12, 32, 3), index_of(SIZES)
    given = torch.randn(sum(SIZES), 36).requires_grad_()
    found = []
    for backend in ("auto", "native"):
        with use_backend(backend):  # type: ignore[arg-type]
            total = readout(given, index, dim_size=9).square().sum()
            first = torch.autograd.grad(total, given, create_graph=True)[0]
            second = torch.autograd.grad(first.square().sum(), given, retain_graph=True)
            again = torch.autograd.grad(total, given, retain_graph=True)[0]
        assert_close(again, first.detach(), rtol=1e-3, atol=1e-5)
        found.append(second[0])
    bound = 1e-4 * float(found[1].abs().max())
    assert_close(found[0], found[1], rtol=1e-2, atol=bound)


@pytest.mark.parametrize("size", [0.0, 1e-38, 1.0, 2.0**20])
@pytest.mark.parametrize("attention", ["signed", "signed_abs", "softmax"])
def test_all_is_finite(attention: Any, size: float) -> None:
    readout = HistographAggregation(12, 32, 3, layer_attention=attention)
    for x in (torch.full((553, 36), size), size * torch.randn(553, 36).sign()):
        x.requires_grad_()
        out = readout(x, index_of(SIZES), dim_size=9)
        out.sum().backward()
        assert out.isfinite().all()
        assert x.grad is not None
        assert x.grad.isfinite().all()


def test_mates_do_not_matter() -> None:
    readout, x = HistographAggregation(12, 32, 3), torch.randn(553, 36)
    out = readout(x, index_of(SIZES), dim_size=9)
    with use_backend("numba"):
        for graph in (1, 3, 6):
            alone = readout(x[index_of(SIZES) == graph], dim_size=1)[0]
            assert_close(alone, out[graph], rtol=0, atol=1e-6)
