"""Attention inside groups beside torch's own attention under a mask."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.nn.functional import scaled_dot_product_attention
from torch.testing import assert_close

from pyg_pool.kernels import use_backend
from pyg_pool.kernels.group_attention import (
    AttentionGroups,
    group_attention,
    self_attention,
)

QUERY = torch.tensor([2, 0, 0, 2, 0, 1, 2])
KEY = torch.tensor([0, 2, 2, 0, 2])


def rows(*sizes: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    return [torch.randn(n, 6, dtype=dtype).requires_grad_() for n in sizes]


def groups(query: Tensor, key: Tensor, size: int, heads: int = 2) -> AttentionGroups:
    factor = torch.rand(size, dtype=torch.float64) + 0.5
    return AttentionGroups(query, key, size, factor, heads, chunk_size=4)


def masked(q: Tensor, k: Tensor, v: Tensor, given: AttentionGroups) -> Tensor:
    def heads(x: Tensor) -> Tensor:
        return x.view(len(x), given.heads, -1).transpose(0, 1)

    q = q * given.factor[given.query].to(q.dtype).unsqueeze(-1)
    mask = given.query[:, None] == given.key
    out = scaled_dot_product_attention(heads(q), heads(k), heads(v), mask, scale=1.0)
    out = out.transpose(0, 1).reshape(len(q), -1)
    return torch.where(mask.any(1, keepdim=True), out, 0.0)


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_like_masked_attention(heads: int, backend: str) -> None:
    q, k, v = rows(7, 5, 5)
    given = groups(QUERY, KEY, 4, heads)
    out = group_attention(q, k, v, given)
    wanted = masked(q, k, v, given)
    assert_close(out, wanted)
    assert (out[5] == 0).all(), "the group has no key"
    cotangent = torch.randn_like(out)
    found = torch.autograd.grad(out, (q, k, v), cotangent)
    for grad, reference in zip(
        found, torch.autograd.grad(wanted, (q, k, v), cotangent), strict=True
    ):
        assert_close(grad, reference)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_many_sizes(dtype: torch.dtype, backend: str) -> None:
    sizes = torch.tensor([33, 1, 0, 70, 5, 32, 2])
    index = torch.repeat_interleave(torch.arange(7), sizes)
    index = index[torch.randperm(len(index))]
    q, k, v = rows(*[len(index)] * 3, dtype=dtype)
    given = groups(index, index, 7)
    given = replace(given, factor=given.factor.to(dtype))
    out = group_attention(q, k, v, given)
    wanted = masked(q, k, v, given)
    assert_close(out, wanted, atol=1e-5, rtol=1e-4)
    found = torch.autograd.grad(out.square().sum(), (q, k, v))
    reference = torch.autograd.grad(wanted.square().sum(), (q, k, v))
    for grad, other in zip(found, reference, strict=True):
        assert_close(grad, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("is_sorted", [True, False])
def test_one_matrix_of_queries_keys_and_values(is_sorted: bool, backend: str) -> None:
    index = torch.randint(4, (40,))
    index = index.sort().values if is_sorted else index
    qkv = torch.randn(40, 18).requires_grad_()
    given = AttentionGroups(index, index, 5, torch.rand(5) + 0.5, 2)
    out = self_attention(qkv, given)
    cotangent = torch.randn_like(out)
    wanted = group_attention(*qkv.split(6, 1), given)
    assert_close(out, wanted)
    (found,) = torch.autograd.grad(out, qkv, cotangent, create_graph=True)
    (reference,) = torch.autograd.grad(wanted, qkv, cotangent, create_graph=True)
    assert_close(found, reference, atol=1e-5, rtol=1e-5)
    (second,) = torch.autograd.grad(found.square().sum(), qkv)
    (other,) = torch.autograd.grad(reference.square().sum(), qkv)
    assert_close(second, other, atol=1e-4, rtol=1e-4)


def test_derivatives(backend: str) -> None:
    q, k, v = rows(4, 5, 5)
    given = groups(QUERY[:4], KEY, 3)
    assert gradcheck(lambda *x: group_attention(*x, given), (q, k, v))
    assert gradgradcheck(lambda *x: group_attention(*x, given), (q, k, v))


def test_rows_of_other_groups_stay_out(backend: str) -> None:
    q, k, v = rows(7, 5, 5)
    given = groups(QUERY, KEY, 3)
    clean = group_attention(q, k, v, given)
    with torch.no_grad():
        for x in (q, k, v):
            x[0] = torch.nan  # group 2 of the queries, group 0 of the keys
    out = group_attention(q, k, v, given)
    others = [3, 6]
    assert torch.equal(out[others], clean[others])
    assert out[[0, 1, 2, 4]].isnan().all()


def test_large_products(backend: str) -> None:
    q, k, v = (1e15 * x.detach() for x in rows(7, 7, 7, dtype=torch.float32))
    factor = torch.full((3,), 1e18)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    out = group_attention(*leaves, AttentionGroups(QUERY, QUERY, 3, factor, 2))
    assert out.isfinite().all()
    out.sum().backward()
    assert all(x.grad is not None and x.grad.isfinite().all() for x in leaves)


def test_dropout_keeps_the_mean_and_its_draw() -> None:
    index = torch.zeros(200, dtype=torch.long)
    q, k = torch.zeros(2, 200, 4)
    v = torch.ones(200, 4).requires_grad_()
    given = AttentionGroups(index, index, 1, torch.ones(1), 2, dropout=0.3)
    given = replace(given, seed=torch.tensor([7]))
    out = group_attention(q, k, v, given)
    assert out.std() > 0.01
    assert_close(out.mean(), torch.tensor(1.0), atol=0.02, rtol=0.0)
    assert torch.equal(group_attention(q, k, v, given), out)
    out.sum().backward()
    assert v.grad is not None
    # All weights are alike, so the sum over values is that of the kept weights.
    assert_close(v.grad.sum(), out.sum())


def test_compiled_like_eager() -> None:
    compiled = torch.compile(
        group_attention, fullgraph=True, dynamic=True, backend="aot_eager"
    )
    q, k, v = rows(7, 5, 5)
    given = groups(QUERY, KEY, 4)
    wanted = group_attention(q, k, v, given)
    found = compiled(q, k, v, given)
    assert_close(found, wanted)
    for grad, other in zip(
        torch.autograd.grad(found.sum(), (q, k, v)),
        torch.autograd.grad(wanted.sum(), (q, k, v)),
        strict=True,
    ):
        assert_close(grad, other)


@pytest.mark.skipif(
    torch.__version__ < (2, 10), reason="unique fails in torch.func before torch 2.10"
)
def test_function_transforms() -> None:
    q, k, v = (x.detach() for x in rows(7, 5, 5))
    given = groups(QUERY, KEY, 4)
    grad = torch.func.grad(lambda x: group_attention(x, k, v, given).sum())(q)
    leaf = q.clone().requires_grad_()
    group_attention(leaf, k, v, given).sum().backward()
    assert_close(grad, leaf.grad)


def test_torch_s_kernel_and_the_padded_form_agree() -> None:
    index = torch.randint(4, (150,)).sort().values
    q, k, v = rows(150, 150, 150, dtype=torch.float32)
    given = AttentionGroups(index, index, 4, torch.full((4,), 0.4), 3)
    found = []
    for name in ("native", "auto"):
        with use_backend(name):  # type: ignore[arg-type]
            found.append(group_attention(q, k, v, given).detach())
    assert_close(found[0], found[1], atol=2e-6, rtol=1e-5)
