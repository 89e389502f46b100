"""The compiled attention inside groups against torch's operations."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from pyg_pool.kernels import use_backend
from pyg_pool.kernels.dispatch import watch_backends
from pyg_pool.kernels.group_attention import (
    AttentionGroups,
    group_attention,
    self_attention,
)
from pyg_pool.kernels.group_attention_twin import twin_plan


def owners(sizes: list[int], is_sorted: bool) -> Tensor:
    index = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return index if is_sorted else index[torch.randperm(index.numel())]


def grouped(query: Tensor, key: Tensor, size: int, heads: int) -> AttentionGroups:
    return AttentionGroups(query, key, size, torch.rand(size), heads)


def results(backend: str, parts: list[Tensor], groups: AttentionGroups) -> list[Tensor]:
    """The result and the gradients of the parts."""
    given = [part.clone().requires_grad_() for part in parts]
    run = self_attention if len(given) == 1 else group_attention
    with use_backend(backend), watch_backends() as seen:  # type: ignore[arg-type]
        out = run(*given, groups)
    assert (("attend", "numba") in seen) == (backend == "numba")
    torch.manual_seed(3)
    return [out.detach(), *torch.autograd.grad(out, given, torch.randn(out.shape))]


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize(("width", "heads"), [(64, 4), (24, 2), (5, 1), (40, 2)])
def test_like_torch(width: int, heads: int, is_sorted: bool) -> None:
    index = owners([7, 1, 0, 33, 2, 16, 49], is_sorted)
    groups = grouped(index, index, 7, heads)
    parts = [torch.randn(index.numel(), 3 * width)]
    found, wanted = (results(name, parts, groups) for name in ("numba", "native"))
    assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_queries_and_keys_may_differ() -> None:
    query, key = owners([5, 2, 3, 0], False), owners([1, 20, 0, 4], False)
    groups = grouped(query, key, 4, 2)
    parts = [torch.randn(index.numel(), 8) for index in (query, key, key)]
    found, wanted = (results(name, parts, groups) for name in ("numba", "native"))
    assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    assert found[0][query == 2].abs().max() == 0  # there is no key


def test_not_a_number_stays_in_its_group() -> None:
    index = owners([3, 4], True)
    x = torch.randn(7, 12)
    x[1, 5] = torch.nan
    out, slope = results("numba", [x], grouped(index, index, 2, 1))
    assert out[:3].isnan().all()
    assert out[3:].isfinite().all()
    assert slope[3:].isfinite().all()


def test_large_products_do_not_overflow() -> None:
    index = owners([4], True)
    x = 1e4 * torch.randn(4, 12)
    for part in results("numba", [x], grouped(index, index, 1, 1)):
        assert part.isfinite().all()


def test_second_derivatives() -> None:
    index = owners([3, 2], True)
    x, groups = torch.randn(5, 12), grouped(index, index, 2, 2)
    found = []
    for backend in ("numba", "native"):
        given = x.clone().requires_grad_()
        with use_backend(backend):  # type: ignore[arg-type]
            total = self_attention(given, groups).square().sum()
            first = torch.autograd.grad(total, given, create_graph=True)[0]
            found.append(torch.autograd.grad(first.square().sum(), given)[0])
    assert_close(*found, rtol=1e-4, atol=1e-5)


def test_large_groups_are_left_to_torch() -> None:
    x, factor = torch.rand(1000, 3), torch.ones(1)
    index = torch.zeros(1000, dtype=torch.long)
    with use_backend("numba"):
        assert twin_plan(x, AttentionGroups(index, index, 1, factor)) is None
        few = AttentionGroups(index[:9], index, 1, factor)
        assert twin_plan(x, few) is not None
        assert twin_plan(x, AttentionGroups(index[:9], index, 1, 2 * factor)) is None
