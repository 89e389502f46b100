"""Norms of segments against powers in double precision, and at the edges."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

from pyg_pool.kernels import segment_pnorm, use_backend
from pyg_pool.kernels.dispatch import runs_numba, watch_backends
from pyg_pool.kernels.pnorm import PARTS

INDEX = torch.tensor([3, 0, 3, 1, 0, 3])
NUMBERS = st.one_of(
    st.floats(-(2.0**100), 2.0**100, width=32),
    st.sampled_from([0.0, -0.0, 1e30, -1e30, 1e-30, 1e-45, 1.0, -1.0]),
)


def exponents(p: list[float], q: list[float]) -> tuple[Tensor, Tensor]:
    return torch.tensor(p)[:, None], torch.tensor(q)[:, None]


def slow(x: Tensor, p: float, q: float, part: str, eps: float) -> Tensor:
    """The formula, group by group."""
    value = {"abs": x.abs(), "pos": x.clamp(min=0), "neg": (-x).clamp(min=0)}[part]
    out = x.new_zeros(5, x.size(1))
    for group in INDEX.unique().tolist():
        rows = value[group == INDEX] + eps
        out[group] = len(rows) ** -q * (rows**p).sum(0) ** (1 / p)
    return out


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(("p", "q"), [(1.0, 0.0), (0.7, 1.2), (-2.5, 0.4), (9.0, -1.0)])
def test_equals_the_formula(p: float, q: float, part: str, backend: str) -> None:
    x = torch.randn(6, 3, dtype=torch.double)
    wanted = slow(x, p, q, part, 0.01)
    rows = exponents([p], [q])
    found = segment_pnorm(x, *rows, INDEX, dim_size=5, eps=0.01, part=part)
    assert_close(found[0], wanted, check_dtype=False)
    single = segment_pnorm(x.float(), *rows, INDEX, dim_size=5, eps=0.01, part=part)
    assert single.dtype == torch.float32
    assert_close(single[0], wanted.float(), rtol=1e-5, atol=1e-6)


def test_twin_is_reached() -> None:
    x = torch.rand(4, 3)
    with use_backend("numba"):
        assert runs_numba("segment_pnorm", x.numel(), x)


@pytest.mark.parametrize("part", PARTS)
def test_derivatives(part: str, backend: str) -> None:
    x = torch.randn(6, 2, dtype=torch.double, requires_grad=True)
    p = torch.tensor([[1.3, 0.6], [-2.0, 3.0]], dtype=torch.double, requires_grad=True)
    q = torch.tensor([[0.3, 1.0], [0.0, -0.5]], dtype=torch.double, requires_grad=True)

    def run(x: Tensor, p: Tensor, q: Tensor) -> Tensor:
        return segment_pnorm(x, p, q, INDEX, dim_size=5, eps=0.1, part=part)

    assert gradcheck(run, (x, p, q))
    assert gradgradcheck(run, (x, p, q))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("part", PARTS)
def test_backends_have_the_gradients_of_float64(part: str, channels: int) -> None:
    x, index = torch.randn(90, 3), torch.randint(9, (90,))
    p, q = torch.randn(2, 2, channels).unbind()
    p = p.sign() * (p.abs() + 0.3)
    weight = torch.randn(2, 11, 3)
    found: list[list[Tensor]] = []
    for name, dtype in (("native", 64), ("native", 32), ("numba", 32)):
        kind = torch.float64 if dtype == 64 else torch.float32
        leaves = [t.to(kind, copy=True).requires_grad_() for t in (x, p, q)]
        with use_backend(name):  # type: ignore[arg-type]
            out = segment_pnorm(*leaves, index, dim_size=11, eps=0.01, part=part)
            (out * weight.to(kind)).sum().backward()
        grads = [t.grad for t in leaves if t.grad is not None]
        assert len(grads) == 3
        found.append([out.detach(), *grads])
    for exact, native, twin in zip(*found, strict=True):
        size = float(exact.abs().max())
        assert_close(native.double(), exact, rtol=2e-4, atol=1e-5 * size)
        assert_close(twin.double(), exact, rtol=2e-4, atol=1e-5 * size)


@settings(max_examples=60)
@given(
    numbers=st.lists(NUMBERS, min_size=1, max_size=9),
    p=st.sampled_from([0.05, 0.3, 1.0, 7.0, 60.0]),
    q=st.sampled_from([-1.0, 0.0, 0.5, 3.0]),
    part=st.sampled_from(PARTS),
    eps=st.sampled_from([1e-7, 0.0]),
    name=st.sampled_from(["native", "numba"]),
)
def test_finite_for_all_finite_numbers(
    numbers: list[float], p: float, q: float, part: str, eps: float, name: str
) -> None:
    x = torch.tensor(numbers).unsqueeze(1).requires_grad_()
    rows = [row.requires_grad_() for row in exponents([p, -p], [q, q])]
    index = torch.arange(len(numbers)) % 3
    with use_backend(name):  # type: ignore[arg-type]
        out = segment_pnorm(x, *rows, index, dim_size=4, eps=eps, part=part)
        # Weights keep sums of gradients over groups within float32.
        (out / out.detach().clamp(min=1.0)).sum().backward()
    assert out.isfinite().all()
    for leaf in (x, *rows):
        assert leaf.grad is not None
        assert leaf.grad.isfinite().all()
    assert (out[:, 3] == 0).all()


@settings(max_examples=60)
@given(
    numbers=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=9),
    p=st.sampled_from([0.1, 1.0, 4.0, 40.0]),
    factor=st.sampled_from([1e-3, 2.0, 1e3]),
)
def test_bounds_and_homogeneity(numbers: list[float], p: float, factor: float) -> None:
    x, n = torch.tensor(numbers, dtype=torch.double).unsqueeze(1), len(numbers)
    upper, lower = segment_pnorm(x, *exponents([p, -p], [0.0, 0.0]), eps=0.0).flatten()
    slack = n ** (1 / p) * (1 + 1e-6)
    assert x.max() * (1 - 1e-6) <= upper <= x.max() * slack
    assert x.min() / slack <= lower <= x.min() * (1 + 1e-6)
    scaled = segment_pnorm(factor * x, *exponents([p, -p], [0.0, 0.0]), eps=0.0)
    assert_close(scaled.flatten(), factor * torch.stack([upper, lower]))


def test_small_exponents_near_the_geometric_mean(backend: str) -> None:
    x = torch.tensor([[1.0], [5.0]], dtype=torch.double)
    p = torch.tensor([[1e-3], [-1e-3]], dtype=torch.double)
    found = segment_pnorm(x, p, 1 / p, eps=0.0).flatten()
    # To first order in p the gap is p / 2 times the variance of the logarithms.
    wanted = math.sqrt(5.0)
    assert found[0].item() == pytest.approx(wanted, rel=1e-3)
    assert found[1].item() == pytest.approx(wanted, rel=1e-3)
    assert found[1] < wanted < found[0]


@pytest.mark.parametrize("p", [1e-6, 0.05, 1.0, -1.0, 50.0, -50.0])
@pytest.mark.parametrize("size", [1.0, 1e4, 1e30, 1e-30])
def test_equal_rows(p: float, size: float, backend: str) -> None:
    x = torch.full((4, 2), size, requires_grad=True)
    rows = [row.requires_grad_() for row in exponents([p], [1 / p])]
    out = segment_pnorm(x, *rows, eps=0.0)
    assert_close(
        out, torch.full_like(out, size), rtol=0.3 if abs(p) < 1 else 1e-5, atol=0.0
    )
    (out.sum() / size).backward()
    assert all(t.grad is not None and t.grad.isfinite().all() for t in (x, *rows))


def test_zeros_without_eps(backend: str) -> None:
    x = torch.tensor([[0.0], [2.0], [0.0]], requires_grad=True)
    p, q = exponents([1.0, -1.0], [0.0, 0.0])
    out = segment_pnorm(x, p, q, torch.tensor([0, 0, 1]), dim_size=2, eps=0.0)
    assert out.flatten().tolist() == [2.0, 0.0, 0.0, 0.0]
    out.sum().backward()
    assert x.grad is not None
    assert x.grad.flatten().tolist() == [0.0, 1.0, 0.0]


def test_result_is_cut_below_infinity(backend: str) -> None:
    x = torch.full((1000, 1), 10.0, requires_grad=True)
    p, q = (row.requires_grad_() for row in exponents([0.05], [0.0]))
    out = segment_pnorm(x, p, q)  # 1000^20 is beyond float32
    assert out.item() == pytest.approx(
        torch.finfo(torch.float32).max / math.e, rel=0.01
    )
    out.sum().backward()
    for leaf in (x, p, q):
        assert leaf.grad is not None
        assert (leaf.grad == 0).all()


def test_ties_share_the_gradient(backend: str) -> None:
    x = torch.tensor([[2.0], [2.0], [1.0]], requires_grad=True)
    segment_pnorm(x, *exponents([60.0], [0.0])).sum().backward()
    assert x.grad is not None
    assert x.grad[0].item() == x.grad[1].item() == pytest.approx(0.5, rel=0.02)


def test_nan_stays_in_its_group(backend: str) -> None:
    x = torch.rand(6, 3)
    p, q = exponents([2.0, -2.0], [0.0, 0.0])
    clean = segment_pnorm(x, p, q, INDEX, dim_size=5)
    for row in (0, 2, 5):
        bad = x.clone()
        bad[row, 1] = torch.nan
        found = segment_pnorm(bad, p, q, INDEX, dim_size=5)
        assert found[:, 3, 1].isnan().all()
        found[:, 3, 1] = clean[:, 3, 1]
        assert torch.equal(found, clean)


def test_offsets_and_no_rows(backend: str) -> None:
    x = torch.rand(5, 2)
    p, q = exponents([2.0], [0.5])
    ptr = torch.tensor([0, 2, 2, 5])
    wanted = segment_pnorm(x, p, q, torch.tensor([0, 0, 2, 2, 2]), dim_size=3)
    assert_close(segment_pnorm(x, p, q, ptr=ptr), wanted)
    empty = segment_pnorm(x[:0], p, q, torch.empty(0, dtype=torch.long), dim_size=2)
    assert empty.tolist() == [[[0.0, 0.0], [0.0, 0.0]]]


def test_wide_rows_and_wide_blocks(backend: str) -> None:
    # More columns than a block holds, and more rows than a block holds.
    for shape in ((3, 5000), (5000, 3)):
        x = torch.rand(shape).requires_grad_()
        p, q = exponents([1.0], [0.0])
        out = segment_pnorm(x, p, q, eps=1e-7)
        assert_close(out[0, 0], x.detach().sum(0), rtol=1e-4, atol=0.0)
        out.sum().backward()
        assert x.grad is not None
        assert_close(x.grad, torch.ones(shape), rtol=1e-5, atol=0.0)


def test_numbers_and_vectors_as_exponents(backend: str) -> None:
    x = torch.randn(6, 2, 3, dtype=torch.double, requires_grad=True)
    for kind in (torch.double, torch.float32):
        rows = x.to(kind)
        found = segment_pnorm(rows, 3, 0.5, INDEX, dim_size=5)
        wanted = slow(rows.reshape(6, 6), 3.0, 0.5, "abs", 0.0).view(5, 2, 3)
        assert_close(found, wanted)
    p = torch.tensor([1.0, 2.0, -3.0], dtype=torch.double, requires_grad=True)
    q = torch.tensor(0.3, dtype=torch.double, requires_grad=True)
    found = segment_pnorm(x, p, q, INDEX, dim_size=5)
    for f in range(3):
        one = slow(x[..., f], p[f].item(), 0.3, "abs", 0.0)
        assert_close(found[..., f], one)

    def run(x: Tensor, p: Tensor, q: Tensor) -> Tensor:
        return segment_pnorm(x, p, q, INDEX, dim_size=5)

    assert gradcheck(run, (x, p, q))
    assert gradgradcheck(run, (x, p, q))
    assert segment_pnorm(torch.tensor([3.0, 4.0]), 2.0, 0.0).tolist() == [5.0]


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x, index = torch.randn(50, 40), torch.randint(7, (50,))
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda n=threads: n)
        monkeypatch.setattr("pyg_pool.kernels.threads.PARALLEL_FROM", 1)
        leaf = x.clone().requires_grad_()
        with use_backend("numba"), watch_backends() as seen:
            out = segment_pnorm(leaf, *exponents([3.0, -2.0], [0.5, 0.0]), index)
            out.square().sum().backward()
        assert seen == {("segment_pnorm", "numba")}
        found.append((out.detach(), leaf.grad))
    assert_close(found[0], found[1], rtol=0, atol=0)


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match=r"p=0.0 of shape .* p not 0"):
        segment_pnorm(torch.rand(2, 3), 0.0, 1.0)
    with (
        pytest.raises(IndexError, match="expected 0 to 1; raise dim_size"),
        use_backend("numba"),
    ):
        segment_pnorm(torch.rand(2, 3), 1.0, 1.0, torch.tensor([0, 2]), dim_size=2)
    p, q = exponents([1.0], [0.0])
    with pytest.raises(ValueError, match=r"p of shape \[1, 2\].*expected \[N, F\]"):
        segment_pnorm(torch.rand(2, 3), p.expand(1, 2), q.expand(1, 2))
    with pytest.raises(ValueError, match=r"part='all', expected one of"):
        segment_pnorm(torch.rand(2, 3), p, q, part="all")
