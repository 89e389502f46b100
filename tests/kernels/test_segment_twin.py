"""The compiled CPU twin of the segment doors against the native one in float64."""

from __future__ import annotations

import math
import multiprocessing

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

from pyg_pool.kernels import (
    segment_extreme,
    segment_reduce,
    segment_softmax,
    use_backend,
)
from pyg_pool.kernels import segment_twin as room
from pyg_pool.kernels.dispatch import watch_backends

few = settings(derandomize=True, max_examples=80, deadline=None)
DOORS = ("sum", "mean", "max", "min", "logsumexp", "softmax")
VALUES = [-2.0, -1.0, 0.0, 0.5, 1.0, 1.0, 3.0, 1e4, -1e30, math.nan, -math.inf]


def call(door: str, x: Tensor, index: Tensor | None, size: int) -> Tensor:
    if door == "softmax":
        return segment_softmax(x, index, dim_size=size)
    return segment_reduce(x, index, dim_size=size, reduce=door)  # type: ignore[arg-type]


@st.composite
def rows(draw: st.DrawFn) -> tuple[Tensor, Tensor, int]:
    """Rows of any rank and layout, ties, NaN, unsorted and empty segments."""
    shape = draw(st.sampled_from([(), (1,), (3,), (0,), (2, 17), (33,)]))
    n, size = draw(st.integers(0, 9)), draw(st.integers(1, 4))
    seed = draw(st.integers(0, 999))
    generator = torch.Generator().manual_seed(seed)
    picked = torch.randint(len(VALUES), (n, *shape), generator=generator)
    x = torch.tensor(VALUES)[picked]
    layout = draw(st.sampled_from(["plain", "strided", "expanded", "transposed"]))
    if layout == "strided":
        x = torch.stack([x, x + 1], dim=-1)[..., 0]
    elif layout == "expanded" and n > 0:
        x = x[:1].expand_as(x)
    elif layout == "transposed":
        x = x.transpose(0, -1).contiguous().transpose(0, -1)
    return x, torch.randint(size, (n,), generator=generator), size


@few
@given(rows(), st.sampled_from(DOORS), st.sampled_from([32, 64, 16]))
def test_equals_native(case: tuple[Tensor, Tensor, int], door: str, bits: int) -> None:
    x, index, size = case
    kind = {16: torch.bfloat16, 32: torch.float32, 64: torch.float64}[bits]
    x = x.to(kind)
    with use_backend("native"):
        wanted = call(door, x.double(), index, size).to(kind)
    with use_backend("numba"), watch_backends() as seen:
        found = call(door, x, index, size)
    exact = bits == 64 and door in ("logsumexp", "softmax")
    name = "segment_softmax" if door == "softmax" else "segment_reduce"
    assert seen == (set() if exact else {(name, "numba")})
    assert_close(found, wanted, equal_nan=True)


@few
@given(rows(), st.sampled_from(DOORS))
def test_has_the_native_gradients(case: tuple[Tensor, Tensor, int], door: str) -> None:
    x, index, size = case
    x = x.nan_to_num(nan=0.25, neginf=-3.0).clamp(-50, 50)
    results = []
    for name, kind in (("native", torch.float64), ("numba", torch.float32)):
        leaf = x.to(kind, copy=True).requires_grad_()
        with use_backend(name):  # type: ignore[arg-type]
            out = call(door, leaf, index, size)
            (out * torch.linspace(-1, 2, out.numel()).view_as(out)).sum().backward()
        assert leaf.grad is not None
        results.append(leaf.grad.float())
    assert_close(results[1], results[0])


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("width", [64, 67, 150])
def test_wide_rows_in_long_and_short_runs(door: str, width: int) -> None:
    # Some of 200 rows lie together, most do not: both loops over channels are met.
    index = torch.cat([torch.zeros(90), torch.arange(110) % 4]).long()
    x = torch.randint(-3, 4, (200, width)).float()
    results = []
    for name, kind in (("native", torch.float64), ("numba", torch.float32)):
        leaf = x.to(kind).requires_grad_()
        with use_backend(name):  # type: ignore[arg-type]
            out = call(door, leaf, index, 5)
            weight = torch.arange(out.numel()).view_as(out) % 7
            (grad,) = torch.autograd.grad((out * weight).sum(), leaf)
        results.append([out.float(), grad.float()])
    assert_close(results[1], results[0], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("door", DOORS)
def test_derivatives(door: str) -> None:
    index = torch.tensor([3, 0, 3, 1, 3])
    x = torch.randn(5, 2, dtype=torch.double, requires_grad=True)
    with use_backend("numba"):
        assert gradcheck(lambda x: call(door, x, index, 4), (x,))
        assert gradgradcheck(lambda x: call(door, x, index, 4), (x,))


@pytest.mark.parametrize("door", DOORS)
def test_second_derivatives_in_single_precision(door: str) -> None:
    index, x = torch.tensor([3, 0, 3, 1, 3]), torch.randn(5, 2)
    found = []
    for name in ("native", "numba"):
        leaf = x.clone().requires_grad_()
        with use_backend(name):  # type: ignore[arg-type]
            out = call(door, leaf, index, 4)
            (grad,) = torch.autograd.grad(out.square().sum(), leaf, create_graph=True)
            found.append(torch.autograd.grad(grad.square().sum(), leaf)[0])
    assert_close(found[1], found[0])


@pytest.mark.parametrize("reduce", ["max", "min"])
@pytest.mark.parametrize("name", ["native", "numba"])
def test_lowest_row_holds_the_extreme(name: str, reduce: str) -> None:
    x = torch.tensor([[5.0], [1.0], [1.0], [5.0], [5.0], [1.0], [math.nan]])
    index = torch.tensor([1, 0, 1, 1, 0, 0, 3])
    with use_backend(name):  # type: ignore[arg-type]
        best, row = segment_extreme(x, index, dim_size=4, reduce=reduce)  # type: ignore[arg-type]
    lowest = {"max": [4, 0, 7, 6], "min": [1, 2, 7, 6]}[reduce]
    assert row.view(-1).tolist() == lowest
    assert row.dtype == torch.int64
    assert best[2].item() == 0.0
    assert best[3].isnan().all()
    assert best[0].item() == x[lowest[0]].item()


@pytest.mark.parametrize("door", DOORS)
def test_threads_change_nothing(door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, index = torch.randn(50, 40), torch.randint(7, (50,))
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda n=threads: n)
        monkeypatch.setattr("pyg_pool.kernels.threads.PARALLEL_FROM", 1)
        leaf = x.clone().requires_grad_()
        with use_backend("numba"):
            out = call(door, leaf, index, 7)
            out.square().sum().backward()
        found.append((out.detach(), leaf.grad))
    assert_close(found[0], found[1], rtol=0, atol=0)


def in_worker(queue: multiprocessing.SimpleQueue[list[float]]) -> None:
    with use_backend("numba"):
        queue.put(segment_reduce(torch.ones(9, 64), dim_size=1)[0].tolist())


def test_works_in_a_forked_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr("pyg_pool.kernels.threads.PARALLEL_FROM", 1)
    with use_backend("numba"):
        segment_reduce(torch.ones(9, 64), dim_size=1)  # starts the pool here
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.SimpleQueue[list[float]] = context.SimpleQueue()
    worker = context.Process(target=in_worker, args=(queue,))
    worker.start()
    worker.join(60)
    assert worker.exitcode == 0
    assert queue.get() == [9.0] * 64


@pytest.mark.parametrize("door", DOORS)
def test_rows_outside_all_segments_are_explained(door: str) -> None:
    x = torch.ones(3, 2)
    for index in (torch.tensor([0, 2, 1]), torch.tensor([0, -1, 1])):
        with (
            use_backend("numba"),
            pytest.raises(IndexError, match="expected 0 to 1; raise dim_size"),
        ):
            call(door, x, index, 2)


def test_few_picked_rows_leave_the_rest_untouched() -> None:
    like = torch.ones(1, 64)
    out = room.fresh_pages(1 << 16, like)
    assert out is not None
    assert out.shape == (1 << 16, 64)
    assert out.dtype == like.dtype
    assert not out.any()
    assert room.fresh_pages(4, like) is None


def test_huge_segment_is_summed_well() -> None:
    x = torch.rand(300_000, 2)
    with use_backend("numba"):
        for reduce in ("sum", "mean", "logsumexp"):
            found = segment_reduce(x, reduce=reduce)  # type: ignore[arg-type]
            wanted = segment_reduce(x.double(), reduce=reduce).float()  # type: ignore[arg-type]
            assert_close(found, wanted, rtol=1e-4, atol=1e-4)
