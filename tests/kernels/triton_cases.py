"""Triton twins against the native formulas.

These run in a process of their own: in Triton's interpreter, which must be switched on
before Triton is imported, or on a CUDA device.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.library import opcheck
from torch.testing import assert_close

from pyg_pool.kernels import (
    coalesce,
    connected_components,
    gather_sum_triton,
    layout_triton,
    parse_triton,
    pnorm_triton,
    product_triton,
    segment_attention,
    segment_attention_triton,
    segment_pnorm,
    segment_reduce,
    segment_softmax,
    segment_triton,
    sparse_product,
    topk,
    topk_triton,
    tuple_propagate_triton,
    use_backend,
)
from pyg_pool.kernels.dispatch import is_interpreted, watch_backends
from pyg_pool.kernels.gather_sum import gather_sum
from pyg_pool.kernels.parse import dominant_links, link_components
from pyg_pool.kernels.tuple_propagate import pair_ptr, tuple_propagate

DEVICE = "cpu" if is_interpreted() else "cuda"
SINGLE, BRAIN, HALF = torch.float32, torch.bfloat16, torch.float16
# The interpreter takes long: not every shape in every type.
SHAPES = [
    ((40, 6), SINGLE), ((75, 3), SINGLE), ((9, 130), SINGLE), ((75, 3), BRAIN),
    ((1, 1), HALF),
]  # fmt: skip
LENGTHS = [(1, SINGLE), (75, SINGLE), (40, BRAIN), (40, HALF)]
REDUCES = ("sum", "mean", "max", "min", "logsumexp")
SIZE = 7
PART, LONG = 16, 75  # so that a segment has several parts

Door = Callable[..., Tensor]


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_triton, "PART", PART)
    # The interpreter's own arithmetic on NaN and infinity.
    warnings.filterwarnings("ignore", category=RuntimeWarning)


def groups(n: int) -> Tensor:
    """Unsorted, with an empty segment; a long one where there are many rows."""
    index = torch.randint(SIZE, (n,))
    index[index == 4] = 1
    if n == LONG:
        index[index > 2] = 1
    return index.to(DEVICE)


def both(
    door: Door, primitive: str, kind: torch.dtype, *leaves: Tensor
) -> tuple[list[Tensor], list[Tensor]]:
    """Results and gradients of both backends."""
    found = []
    for name in ("native", "triton"):
        rows = [t.to(DEVICE, kind).clone().requires_grad_() for t in leaves]
        with use_backend(name), watch_backends() as seen:  # type: ignore[arg-type]
            out = door(*rows)
            weight = torch.linspace(-1, 2, out.numel(), device=DEVICE).view_as(out)
            grads = torch.autograd.grad((out * weight.to(out.dtype)).sum(), rows)
        assert (primitive, "triton") in seen or name == "native"
        found.append([out.detach().float(), *(g.float() for g in grads)])
    return found[0], found[1]


def close(found: tuple[list[Tensor], list[Tensor]], kind: torch.dtype) -> None:
    loose = 1e-4 if kind == torch.float32 else 3e-2
    for wanted, got in zip(*found, strict=True):
        assert_close(got, wanted, rtol=loose, atol=loose, equal_nan=True)


@pytest.mark.parametrize(("shape", "kind"), SHAPES)
@pytest.mark.parametrize("reduce", REDUCES)
def test_reductions(reduce: str, shape: tuple[int, int], kind: torch.dtype) -> None:
    index, x = groups(shape[0]), torch.randn(shape).mul(2).round() / 2

    def door(x: Tensor) -> Tensor:
        return segment_reduce(x, index, dim_size=SIZE, reduce=reduce)  # type: ignore[arg-type]

    close(both(door, "segment_reduce", kind, x), kind)


@pytest.mark.parametrize("reduce", REDUCES)
def test_nan_infinity_and_offsets(reduce: str) -> None:
    x = torch.randn(8, 2)
    x[1, 0], x[6, 1], x[7, 1] = math.nan, -math.inf, -math.inf
    ptr = torch.tensor([0, 3, 3, 6, 8], device=DEVICE)
    found = []
    for name in ("native", "triton"):
        with use_backend(name):  # type: ignore[arg-type]
            found.append(segment_reduce(x.to(DEVICE), ptr=ptr, reduce=reduce))  # type: ignore[arg-type]
    assert_close(found[1], found[0], equal_nan=True)


@pytest.mark.parametrize(("n", "kind"), LENGTHS)
def test_softmax(n: int, kind: torch.dtype) -> None:
    index = groups(n)
    score = torch.randn(n, 3)
    score[0] = -math.inf
    close(
        both(
            lambda s: segment_softmax(s, index, dim_size=SIZE), "segment_softmax",
            kind, score,
        ),
        kind,
    )  # fmt: skip


@pytest.mark.parametrize("shapes", [((), (6,)), ((6,), (6,)), ((2,), (2, 5))])
@pytest.mark.parametrize(("n", "kind"), LENGTHS[1:])
def test_attention(
    n: int, shapes: tuple[tuple[int, ...], tuple[int, ...]], kind: torch.dtype
) -> None:
    index = groups(n)
    score, value = (torch.randn(n, *shape) for shape in shapes)
    found = both(
        lambda s, v: segment_attention(s, v, index, dim_size=SIZE),
        "segment_attention", kind, score, value,
    )  # fmt: skip
    close(found, kind)


@pytest.mark.parametrize("part", ["abs", "pos", "neg"])
@pytest.mark.parametrize("eps", [0.0, 0.01])
def test_norms(part: str, eps: float) -> None:
    index, x = groups(40), torch.randn(40, 3)
    p, q = torch.tensor([[2.0], [-1.5]]), torch.tensor([[0.5], [0.0]])
    found = both(
        lambda x, p, q: segment_pnorm(
            x, p, q, index, dim_size=SIZE, eps=eps, part=part
        ),
        "segment_pnorm", torch.float32, x, p, q,
    )  # fmt: skip
    close(found, torch.float32)


@pytest.mark.parametrize("seed", range(4))
def test_links_and_components(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(0, 30, (2, 20 * (seed + 1)), generator=generator).to(DEVICE)
    score = torch.randint(-3, 3, edges[0].shape, generator=generator).float()
    score[3], score[5] = math.nan, -math.inf
    score = score.to(DEVICE)
    found = []
    for name in ("native", "triton"):
        with use_backend(name), watch_backends() as seen:  # type: ignore[arg-type]
            link = dominant_links(edges, score, 32)
            group, count = link_components(link)
            found.append((link, group, connected_components(edges, 32)))
        assert (("parse", "triton") in seen) == (name == "triton")
        assert count == int(group.max()) + 1
    for wanted, got in zip(*found, strict=True):
        assert torch.equal(wanted, got)


@pytest.mark.parametrize("kind", [SINGLE, BRAIN, HALF])
def test_top_rows(kind: torch.dtype) -> None:
    batch = groups(75)
    score = torch.randint(-3, 4, (75,)).div(2).to(DEVICE, kind)  # many ties
    score[3], score[5], score[7], score[9] = math.nan, -math.inf, math.inf, -0.0
    for share in (0.3, 1.0, 2):
        found = []
        for name in ("native", "triton"):
            with use_backend(name), watch_backends() as seen:  # type: ignore[arg-type]
                found.append(topk(score, share, batch=batch, batch_size=SIZE))
            assert (("topk", "triton") in seen) == (name == "triton")
        assert torch.equal(*found)


@pytest.mark.parametrize("shape", [(40,), (40, 3)])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
def test_parallel_edges(reduce: str, shape: tuple[int, ...]) -> None:
    edges = torch.randint(0, 4, (2, 40), device=DEVICE)

    def door(attr: Tensor) -> Tensor:
        merged, out = coalesce(edges, attr, num_nodes=4, reduce=reduce)
        assert merged.size(1) < 40
        assert out is not None
        return out

    close(both(door, "segment_reduce", SINGLE, torch.randn(shape)), SINGLE)


@pytest.mark.parametrize("kind", [SINGLE, BRAIN, HALF])
@pytest.mark.parametrize("own", [False, True])
def test_sums_of_neighbours(own: bool, kind: torch.dtype) -> None:
    edges = torch.randint(0, 9, (2, 70), device=DEVICE)
    edges[1][edges[1] == 4] = 1
    found = both(
        lambda x: gather_sum(x, edges, 9, own=own), "gather_sum", kind,
        torch.randn(9, 5),
    )  # fmt: skip
    close(found, kind)


@pytest.mark.parametrize("kind", [SINGLE, BRAIN, HALF])
@pytest.mark.parametrize("axis", [0, 1])
def test_pairs_of_nodes(axis: int, kind: torch.dtype) -> None:
    ptr = torch.tensor([0, 4, 4, 5, 8], device=DEVICE)
    parts = [torch.randint(0, 4, (2, 9)), torch.randint(5, 8, (2, 7))]
    edges = torch.cat(parts, 1).to(DEVICE)
    rows = torch.randn(int(pair_ptr(ptr)[-1]), 3)
    found = both(
        lambda x: tuple_propagate(x, edges, ptr, axis=axis), "tuple_propagate", kind,
        rows,
    )  # fmt: skip
    close(found, kind)


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("kind", [SINGLE, BRAIN])
def test_products(drop: bool, kind: torch.dtype) -> None:
    one, two = (torch.randint(0, 6, (2, 20), device=DEVICE) for _ in range(2))

    def door(a: Tensor, b: Tensor) -> Tensor:
        index, value = sparse_product(one, a, two, b, (6, 6, 6), drop_diagonal=drop)
        assert value is not None
        assert (index[0] * 6 + index[1]).diff().gt(0).all()
        return value

    found = both(door, "sparse_product", kind, torch.randn(20), torch.randn(20))
    close(found, kind)


def test_nothing_in_the_newer_twins() -> None:
    none, x = torch.empty(2, 0, dtype=torch.long, device=DEVICE), torch.ones(4, 2)
    x, ptr = x.to(DEVICE), torch.tensor([0, 2, 2], device=DEVICE)
    with use_backend("triton"):
        assert not gather_sum(x, none, 3).any()
        assert not tuple_propagate(x, none, ptr).any()
        assert topk(x[:0, 0], 0.5, batch=none[0], batch_size=2).numel() == 0
        index, value = sparse_product(none, x[:0, 0], none, x[:0, 0], (2, 2, 2))
    assert index.shape == (2, 0)
    assert value is not None
    assert value.numel() == 0


def test_newer_operations_keep_torch_s_rules() -> None:
    edges = torch.randint(0, 4, (2, 9), device=DEVICE)
    x = torch.randn(16, 2, device=DEVICE, requires_grad=True)
    ptr = torch.tensor([0, 4], device=DEVICE)
    opcheck(gather_sum_triton.gather_sum, (x, edges, 4, False))
    opcheck(tuple_propagate_triton.propagate, (x, edges, ptr, 0))
    a, b = (torch.randn(4, device=DEVICE, requires_grad=True) for _ in range(2))
    opcheck(product_triton.pair_products, (a, b, edges[0], edges[1]))
    score, batch = torch.randn(9, device=DEVICE), groups(9)
    opcheck(topk_triton.sort_keys, (score, batch))
    key, order = torch.sort(topk_triton.sort_keys(score, batch))
    sizes = torch.bincount(batch, minlength=SIZE)
    opcheck(topk_triton.first_of_each, (order, key, sizes, sizes.clamp(max=1)))


def test_newer_derivatives_in_double() -> None:
    edges, ptr = torch.tensor([[0, 1], [1, 0]], device=DEVICE), torch.tensor([0, 2])
    x = torch.randn(4, 2, dtype=torch.double, device=DEVICE, requires_grad=True)
    value = torch.randn(2, dtype=torch.double, device=DEVICE, requires_grad=True)
    ptr, shape = ptr.to(DEVICE), (2, 2, 2)

    def product(value: Tensor) -> Tensor:
        found = sparse_product(edges, value, edges, value + 1, shape)[1]
        assert found is not None
        return found

    with use_backend("triton"):
        for check in (gradcheck, gradgradcheck):
            assert check(lambda x: gather_sum(x, edges, 3), (x,))
            assert check(lambda x: tuple_propagate(x, edges, ptr), (x,))
            assert check(product, (value,))


def test_derivatives_in_double() -> None:
    index = torch.tensor([3, 0, 3, 1, 3], device=DEVICE)
    x = torch.randn(5, 2, dtype=torch.double, device=DEVICE, requires_grad=True)
    with use_backend("triton"):
        for reduce in REDUCES:

            def run(x: Tensor, reduce: str = reduce) -> Tensor:
                return segment_reduce(x, index, dim_size=4, reduce=reduce)  # type: ignore[arg-type]

            assert gradcheck(run, (x,))
            assert gradgradcheck(run, (x,))
        assert gradcheck(lambda x: segment_softmax(x, index), (x,))
        assert gradgradcheck(lambda x: segment_softmax(x, index), (x,))
        score = torch.randn(5, dtype=torch.double, device=DEVICE, requires_grad=True)
        assert gradcheck(lambda s, x: segment_attention(s, x, index), (score, x))


def test_two_runs_are_equal_to_the_bit() -> None:
    index, x = groups(LONG), torch.randn(LONG, 2, device=DEVICE)
    first, second = (segment_triton.sums(x, index, SIZE) for _ in range(2))
    assert torch.equal(first, second)


def test_operations_keep_torch_s_rules() -> None:
    index, x = groups(9), torch.randn(9, 4, device=DEVICE, requires_grad=True)
    score = torch.randn(9, 2, device=DEVICE, requires_grad=True)
    opcheck(segment_triton.sums, (x, index, SIZE))
    opcheck(segment_triton.extremes, (x, index, SIZE, 1))
    opcheck(segment_triton.softmax, (x, index, SIZE))
    opcheck(segment_triton.logsumexp, (x, index, SIZE))
    opcheck(segment_attention_triton.attention, (score, x, index, SIZE, 2))
    p = torch.tensor([[2.0], [-1.0]], device=DEVICE)
    plain = x.detach()
    opcheck(pnorm_triton.norm_sums, (plain, p, index, SIZE, 0.1, "abs"))
    like = torch.rand(2, SIZE, 4, device=DEVICE)
    opcheck(pnorm_triton.norm_rows, (plain, p, index, like, like, like, 0.1, "abs"))
    edges = torch.randint(0, 9, (2, 12), device=DEVICE)
    weight = torch.randn(12, device=DEVICE)
    opcheck(parse_triton.dominant_links, (edges, weight, 9))
    opcheck(parse_triton.link_roots, (torch.arange(9, device=DEVICE),))
    opcheck(parse_triton.components, (edges, 9))


@pytest.mark.skipif(is_interpreted(), reason="needs memory and a device")
def test_more_than_two_to_the_31_elements() -> None:
    rows = 2**31 // 64 + 1000
    index = torch.arange(rows, device=DEVICE) // 1000
    x = torch.ones(rows, 64, device=DEVICE, dtype=torch.float16)
    size = int(index[-1]) + 1
    with use_backend("triton"):
        out = segment_reduce(x, index, dim_size=size)
    assert (out[:-1] == 1000).all()
