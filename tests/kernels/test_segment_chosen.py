"""Backends that run only when chosen: torch-scatter and torch-sparse."""

from __future__ import annotations

import importlib.util
import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from pyg_pool.kernels import (
    coalesce,
    segment_reduce,
    segment_softmax,
    use_backend,
)
from pyg_pool.kernels.dispatch import chosen, watch_backends

REDUCES = ("sum", "mean", "max", "min", "logsumexp")
KINDS = [torch.float64, torch.float32, torch.bfloat16]


def results(name: str, reduce: str, x: Tensor, index: Tensor) -> list[Tensor]:
    leaf = x.clone().requires_grad_()
    with use_backend(name), watch_backends() as seen:  # type: ignore[arg-type]
        if reduce == "softmax":
            out = segment_softmax(leaf, index, dim_size=6)
        else:
            out = segment_reduce(leaf, index, dim_size=6, reduce=reduce)  # type: ignore[arg-type]
        weight = torch.linspace(-1, 2, out.numel()).view_as(out).to(out.dtype)
        (out * weight).sum().backward()
    assert {backend for _, backend in seen} == {name} or name == "native"
    assert leaf.grad is not None
    return [out.detach(), leaf.grad]


@pytest.mark.scatter
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(40,), (40, 3), (40, 2, 2), (1, 1)])
@pytest.mark.parametrize("reduce", [*REDUCES, "softmax"])
def test_torch_scatter_equals_native(
    reduce: str, shape: tuple[int, ...], kind: torch.dtype
) -> None:
    x = torch.randn(shape).to(kind)
    index = torch.randint(5, shape[:1])  # unsorted, the last segment is empty
    index[index == 3] = 1
    wanted = results("native", reduce, x, index)
    assert_close(results("torch_scatter", reduce, x, index), wanted)


@pytest.mark.scatter
@pytest.mark.parametrize("reduce", ["max", "min"])
def test_torch_scatter_has_extremes_in_some_row(reduce: str) -> None:
    x = torch.tensor([1.0, 1.0, 0.0, 0.0, 1.0], requires_grad=True)
    with use_backend("torch_scatter"):
        out = segment_reduce(x, torch.tensor([0, 0, 0, 0, 2]), reduce=reduce)  # type: ignore[arg-type]
        out.sum().backward()
    assert out.tolist() == [1.0 if reduce == "max" else 0.0, 0.0, 1.0]
    assert x.grad is not None
    assert x.grad.sum().item() == 2.0


@pytest.mark.scatter
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("width", [None, 3])
def test_torch_sparse_equals_native(reduce: str, width: int | None) -> None:
    edges = torch.randint(6, (2, 50))
    value = torch.randn(50) if width is None else torch.randn(50, width)
    wanted = coalesce(edges, value, 6, reduce)
    with use_backend("torch_sparse"), watch_backends() as seen:
        found = coalesce(edges, value, 6, reduce)
    assert ("coalesce", "torch_sparse") in seen
    assert torch.equal(found[0], wanted[0])
    assert found[1] is not None
    assert wanted[1] is not None
    assert_close(found[1], wanted[1])


@pytest.mark.parametrize("name", ["torch_scatter", "torch_sparse", "triton"])
def test_missing_packages_are_explained(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, name, None)
    extra = "triton" if name == "triton" else "scatter"
    with (
        pytest.raises(ImportError, match=rf"pip install 'pyg_pool\[{extra}\]'"),
        use_backend(name),  # type: ignore[arg-type]
    ):
        pass


def test_what_a_backend_lacks_is_native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYG_POOL_BACKEND", "torch_scatter")
    assert chosen("topk", torch.ones(1)) is None
    assert chosen("segment_reduce", torch.ones(1, device="meta")) is None
    assert segment_reduce(torch.tensor([2.0, 3.0]), reduce="prod").tolist() == [6.0]


@pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed"
)
def test_triton_leaves_the_cpu_to_native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    x = torch.tensor([1.0, math.nan])
    with use_backend("triton"), watch_backends() as seen:
        assert segment_reduce(x, reduce="max").isnan().all()
    assert seen == {("segment_reduce", "native")}
