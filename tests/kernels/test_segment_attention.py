"""The softmax-weighted sum against a loop, in every backend."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

from pyg_pool.kernels import segment_attention, use_backend
from pyg_pool.kernels.dispatch import watch_backends

NAMES = ("native", "numba")
# Shapes of scores and values after the rows.
SHAPES = [
    ((), ()), ((), (5,)), ((1,), (5,)), ((5,), (5,)), ((3,), (3, 4)),
    ((3, 1), (3, 4)), ((3, 4), (3, 4)), ((), (0,)), ((1,), (1,)),
]  # fmt: skip


def slow(scores: Tensor, values: Tensor, index: list[int], size: int) -> Tensor:
    out = values.new_zeros(size, *values.shape[1:])
    full = scores
    while full.dim() > values.dim():
        full = full.squeeze(-1)
    full = full.view(*full.shape, *[1] * (values.dim() - full.dim()))
    full = full.expand_as(values)
    for group in range(size):
        rows = [i for i, b in enumerate(index) if b == group]
        if rows:
            weight = full[rows].softmax(0).nan_to_num()
            out[group] = (weight * values[rows]).sum(0)
    return out


@settings(derandomize=True, max_examples=80, deadline=None)
@given(
    st.sampled_from(SHAPES), st.integers(0, 9), st.integers(0, 99),
    st.sampled_from(NAMES), st.sampled_from([16, 32, 64]),
)  # fmt: skip
def test_equals_a_loop(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], n: int, seed: int, name: str,
    bits: int,
) -> None:  # fmt: skip
    kind = {16: torch.bfloat16, 32: torch.float32, 64: torch.float64}[bits]
    generator = torch.Generator().manual_seed(seed)
    scores = (3 * torch.randn(n, *shapes[0], generator=generator)).to(kind)
    scores[torch.rand(scores.shape, generator=generator) < 0.2] = -math.inf
    values = torch.randn(n, *shapes[1], generator=generator).to(kind)
    index = torch.randint(4, (n,), generator=generator)
    wanted = slow(scores.double(), values.double(), index.tolist(), 5)
    with use_backend(name), watch_backends() as seen:  # type: ignore[arg-type]
        found = segment_attention(scores, values, index, dim_size=5)
    if bits != 64 and 0 not in values.shape[1:]:
        assert seen == {("segment_attention", name)}
    assert found.dtype == kind
    loose = {} if bits > 16 else {"rtol": 2e-2, "atol": 1e-2}
    assert_close(found, wanted.to(kind), **loose)


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_derivatives(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], name: str
) -> None:
    index = torch.tensor([3, 0, 3, 1, 3])
    leaves = [
        torch.randn(5, *shape, dtype=torch.double, requires_grad=True)
        for shape in shapes
    ]
    with use_backend(name):  # type: ignore[arg-type]
        assert gradcheck(lambda s, v: segment_attention(s, v, index), leaves)
        assert gradgradcheck(lambda s, v: segment_attention(s, v, index), leaves)


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("same", [False, True])
def test_twin_has_the_native_gradients(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], same: bool
) -> None:
    index = torch.randint(4, (30,))
    scores, values = (torch.randn(30, *shape) for shape in shapes)
    scores[3:5] = -math.inf if not same else 1.0
    found = []
    for name, kind in (("native", torch.float64), ("numba", torch.float32)):
        leaves = [t.to(kind, copy=True).requires_grad_() for t in (scores, values)]
        if same:
            leaves = [leaves[1], leaves[1]]
        with use_backend(name), watch_backends() as seen:  # type: ignore[arg-type]
            out = segment_attention(*leaves, index, dim_size=5)
            once = torch.autograd.grad(out.square().sum(), leaves[1], create_graph=True)
            again = torch.autograd.grad(once[0].square().sum(), leaves)
            out = segment_attention(*leaves, index, dim_size=5)
            plain = torch.autograd.grad(out.square().sum(), leaves)
        found.append([t.float() for t in (*once, *again, *plain)])
    assert (("segment_attention", "numba") in seen) == (0 not in values.shape[1:])
    assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)


# Rows long enough to be taken several lanes at once, with a rest that is not.
LONG = [((), (150,)), ((2,), (2, 75)), ((150,), (150,)), ((64,), (64,)), ((), (64,))]


@pytest.mark.parametrize(
    ("shapes", "same"), [*((s, False) for s in LONG), (LONG[2], True), (LONG[3], True)]
)
@pytest.mark.parametrize("is_sorted", [False, True])
def test_long_rows_have_the_native_gradients(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], same: bool, is_sorted: bool
) -> None:
    index = torch.randint(4, (400,))
    index = index.sort().values if is_sorted else index
    scores, values = (torch.randn(400, *shape) for shape in shapes)
    if not same:
        scores[:90] = -math.inf
        scores[90] = 60.0
    grad = torch.randn(6, *values.shape[1:])
    found = []
    for name, kind in (("native", torch.float64), ("numba", torch.float32)):
        leaves = [t.to(kind, copy=True).requires_grad_() for t in (scores, values)]
        leaves = leaves[1:] if same else leaves
        with use_backend(name), watch_backends() as seen:  # type: ignore[arg-type]
            out = segment_attention(leaves[0], leaves[-1], index, dim_size=6)
            slopes = torch.autograd.grad(out, leaves, grad.to(kind))
        found.append([t.float() for t in (out, *slopes)])
    assert seen == {("segment_attention", "numba")}
    assert_close(found[1], found[0], rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("heads", [1, 64])
def test_nan_in_long_rows_stays_in_its_segment(heads: int) -> None:
    scores, values = torch.randn(200, heads), torch.randn(200, 64)
    index = torch.arange(200) // 70
    scores[3], values[75, 5] = math.nan, math.inf
    scores, values = scores.requires_grad_(), values.requires_grad_()
    with use_backend("numba"):
        out = segment_attention(scores, values, index, dim_size=3)
        slopes = torch.autograd.grad(out[:, :5].sum(), [scores, values])
    assert out[0].isnan().all()
    assert out[1:].isfinite().sum() == 2 * 64 - 1
    assert out[1, 5] == math.inf
    assert slopes[1][:70, :5].isnan().all()
    assert slopes[1][70:].isfinite().all()
    assert slopes[0][140:].isfinite().all()


@pytest.mark.parametrize("name", NAMES)
def test_nan_stays_in_its_segment(name: str) -> None:
    scores = torch.tensor([math.nan, 0.0, 1.0]).requires_grad_()
    values = torch.ones(3, 2, requires_grad=True)
    with use_backend(name):  # type: ignore[arg-type]
        out = segment_attention(scores, values, torch.tensor([0, 0, 2]), dim_size=3)
        out.sum().backward()
    assert out.isnan().any(1).tolist() == [True, False, False]
    assert scores.grad is not None
    assert scores.grad.isnan().tolist() == [True, True, False]


def test_offsets_equal_an_index() -> None:
    scores, values = torch.randn(6), torch.randn(6, 3)
    found = segment_attention(scores, values, ptr=torch.tensor([0, 2, 2, 6]))
    index = torch.tensor([0, 0, 2, 2, 2, 2])
    assert_close(found, segment_attention(scores, values, index))


def test_wrong_shapes_are_explained() -> None:
    for shape in ((4,), (3, 2), (), (3, 5, 1, 2)):
        with pytest.raises(ValueError, match=r"expected scores \[N\], \[N, H\] with"):
            segment_attention(torch.ones(shape), torch.ones(3, 5))


def test_compiles() -> None:
    index = torch.tensor([0, 2, 0, 1])
    scores, values = torch.randn(4, 1), torch.randn(4, 3)
    run = torch.compile(
        lambda s, v: segment_attention(s, v, index, dim_size=3),
        fullgraph=True, dynamic=True, backend="aot_eager",
    )  # fmt: skip
    wanted = segment_attention(scores, values, index, dim_size=3)
    assert_close(run(scores, values), wanted)
