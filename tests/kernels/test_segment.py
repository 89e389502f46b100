"""Segment reductions against loops over rows."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric import Index

from pyg_pool.kernels import segment_reduce, segment_softmax
from pyg_pool.kernels.segment import REDUCES

few = settings(derandomize=True, max_examples=60, deadline=None)
VALUES = [-2.0, -1.0, 0.0, 0.5, 1.0, 3.0]
SPECIAL = [*VALUES, math.nan, math.inf, -math.inf]


def slow(x: Tensor, index: list[int], size: int, reduce: str) -> Tensor:
    """One column of one segment at a time."""
    flat = x.double().reshape(x.size(0), math.prod(x.shape[1:]))
    out = torch.full((size, flat.size(1)), 1.0 if reduce == "prod" else 0.0).double()
    for segment in range(size):
        members = [i for i in range(x.size(0)) if index[i] == segment]
        for column in range(flat.size(1)):
            values = [float(flat[i, column]) for i in members]
            if values:
                out[segment, column] = SLOW[reduce](values)
    return out.view(size, *x.shape[1:])


def extreme(values: list[float], pick: Callable[[list[float]], float]) -> float:
    return math.nan if any(math.isnan(v) for v in values) else pick(values)


def logsumexp(values: list[float]) -> float:
    if any(math.isnan(v) for v in values):
        return math.nan
    top = max(values)
    if math.isinf(top):
        return top
    return top + math.log(sum(math.exp(v - top) for v in values))


SLOW: dict[str, Callable[[list[float]], float]] = {
    "sum": sum,
    "mean": lambda v: sum(v) / len(v),
    "max": lambda v: extreme(v, max),
    "min": lambda v: extreme(v, min),
    "prod": math.prod,
    "logsumexp": logsumexp,
}


@st.composite
def rows(draw: st.DrawFn, values: list[float]) -> tuple[Tensor, list[int], int]:
    """Rows of any rank and layout, unsorted segments, some of them empty."""
    shape = draw(st.sampled_from([(), (1,), (3,), (0,), (2, 2)]))
    n, size = draw(st.integers(0, 7)), draw(st.integers(1, 4))
    count = n * math.prod(shape)
    entries = draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))
    index = draw(st.lists(st.integers(0, size - 1), min_size=n, max_size=n))
    x = torch.tensor(entries, dtype=torch.double).view(n, *shape)
    layout = draw(st.sampled_from(["plain", "strided", "expanded"]))
    if layout == "strided":
        x = torch.stack([x, x + 1], dim=-1)[..., 0]
    elif layout == "expanded" and n > 0:
        x = x[:1].expand_as(x)
    return x, index, size


@few
@given(rows(SPECIAL), st.sampled_from(REDUCES))
def test_reductions_equal_a_loop(
    case: tuple[Tensor, list[int], int], reduce: str
) -> None:
    x, index, size = case
    out = segment_reduce(x, torch.tensor(index).long(), dim_size=size, reduce=reduce)
    torch.testing.assert_close(out, slow(x, index, size, reduce), equal_nan=True)
    graded = segment_reduce(
        x.clone().requires_grad_(),
        torch.tensor(index).long(),
        dim_size=size,
        reduce=reduce,
    )
    torch.testing.assert_close(graded.detach(), out, equal_nan=True)


@few
@given(rows([*VALUES, -math.inf]))
def test_softmax_equals_a_loop(case: tuple[Tensor, list[int], int]) -> None:
    x, index, size = case
    out = segment_softmax(x, torch.tensor(index).long(), dim_size=size)
    assert out.shape == x.shape
    width = math.prod(x.shape[1:])
    flat, got = x.reshape(x.size(0), width), out.reshape(x.size(0), width)
    for i in range(x.size(0)):
        members = [j for j in range(x.size(0)) if index[j] == index[i]]
        for column in range(flat.size(1)):
            total = sum(math.exp(float(flat[j, column])) for j in members)
            wanted = math.exp(float(flat[i, column])) / total if total > 0 else 0.0
            assert float(got[i, column]) == pytest.approx(wanted)


@pytest.mark.parametrize("reduce", REDUCES)
def test_gradients(reduce: str) -> None:
    index = torch.tensor([3, 0, 3, 1, 3])  # unsorted, segment 2 is empty
    x = torch.randn(5, 2, dtype=torch.double, requires_grad=True)

    def run(x: Tensor) -> Tensor:
        return segment_reduce(x, index, dim_size=4, reduce=reduce)

    assert torch.autograd.gradcheck(run, (x,))
    assert torch.autograd.gradgradcheck(run, (x,))


def test_softmax_gradients() -> None:
    index = torch.tensor([3, 0, 3, 1, 3])
    x = torch.randn(5, 2, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: segment_softmax(x, index), (x,))
    assert torch.autograd.gradgradcheck(lambda x: segment_softmax(x, index), (x,))


@pytest.mark.parametrize("reduce", REDUCES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_accumulated_in_float32(reduce: str, dtype: torch.dtype) -> None:
    x = torch.randn(40, 3).to(dtype)
    index = torch.randint(0, 5, (40,))
    out = segment_reduce(x, index, dim_size=5, reduce=reduce)
    assert out.dtype == dtype
    wanted = segment_reduce(x.double(), index, dim_size=5, reduce=reduce)
    torch.testing.assert_close(out, wanted.to(dtype))


def test_long_half_sum_does_not_stall() -> None:
    out = segment_reduce(torch.ones(4096, dtype=torch.bfloat16))
    assert out.tolist() == [4096.0]  # a bfloat16 running sum stops at 256
    mean = segment_reduce(torch.full((70000,), 2.0).half(), reduce="mean")
    assert mean.tolist() == [2.0]  # the sum itself is beyond float16


@pytest.mark.parametrize("reduce", ["max", "min"])
def test_ties_send_the_gradient_to_the_lowest_row(reduce: str) -> None:
    x = torch.tensor([[5.0], [1.0], [1.0], [5.0], [5.0], [1.0]], requires_grad=True)
    segment_reduce(x, torch.tensor([1, 0, 1, 1, 0, 0]), reduce=reduce).sum().backward()
    lowest = {"max": [0, 4], "min": [1, 2]}[reduce]
    assert x.grad is not None
    assert x.grad.view(-1).nonzero().view(-1).tolist() == lowest


def test_nan_takes_the_gradient_of_its_segment_only() -> None:
    x = torch.tensor([1.0, math.nan, 2.0, 3.0], requires_grad=True)
    out = segment_reduce(x, torch.tensor([0, 0, 1, 1]), reduce="max")
    assert out.isnan().tolist() == [True, False]
    out.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 1.0, 0.0, 1.0]


def test_nan_stays_in_its_segment() -> None:
    x = torch.tensor([math.nan, 1.0, 2.0, 0.0])
    index = torch.tensor([0, 1, 1, 0])
    for reduce in REDUCES:
        out = segment_reduce(x, index, reduce=reduce)
        assert out.isnan().tolist() == [True, False], reduce
    assert segment_softmax(x, index).isnan().tolist() == [True, False, False, True]


def test_scores_of_minus_infinity_give_no_weight_and_no_gradient() -> None:
    x = torch.tensor([-math.inf, -math.inf, 0.0, -math.inf], requires_grad=True)
    out = segment_softmax(x, torch.tensor([0, 0, 1, 1]))
    assert out.tolist() == [0.0, 0.0, 1.0, 0.0]
    out[:2].sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0] * 4


def test_softmax_of_huge_scores_is_finite() -> None:
    out = segment_softmax(torch.tensor([1e4, 1e4, -1e4]), torch.tensor([0, 0, 1]))
    assert out.tolist() == [0.5, 0.5, 1.0]


@pytest.mark.parametrize("reduce", REDUCES)
def test_offsets_equal_an_index(reduce: str) -> None:
    x = torch.randn(6, 2)
    ptr = torch.tensor([0, 2, 2, 6])
    index = torch.tensor([0, 0, 2, 2, 2, 2])
    out = segment_reduce(x, ptr=ptr, reduce=reduce)
    torch.testing.assert_close(
        out, segment_reduce(x, index, dim_size=3, reduce=reduce), rtol=0, atol=0
    )
    torch.testing.assert_close(
        segment_softmax(x, ptr=ptr, dim_size=3), segment_softmax(x, index)
    )


def test_without_segments_all_rows_form_one() -> None:
    x = torch.tensor([[1.0], [2.0]])
    assert segment_reduce(x).tolist() == [[3.0]]
    assert segment_reduce(x[:0]).tolist() == [[0.0]]
    assert segment_reduce(x, dim_size=2, reduce="prod").tolist() == [[2.0], [1.0]]


def test_largest_index_sets_the_number_of_segments() -> None:
    assert segment_reduce(torch.ones(2), torch.tensor([2, 0])).tolist() == [1, 0, 1]
    assert segment_reduce(torch.ones(0), torch.ones(0).long()).shape == (0,)


def test_other_index_types_are_taken() -> None:
    x = torch.tensor([1.0, 2.0, 4.0])
    for index in (
        torch.tensor([1, 0, 1], dtype=torch.int32),
        Index([1, 0, 1]),
        torch.tensor([[1, 0], [0, 0], [1, 0]])[:, 0],
    ):
        for reduce in REDUCES:
            assert segment_reduce(x, index, dim_size=2, reduce=reduce).shape == (2,)
        assert segment_reduce(x, index).tolist() == [2.0, 5.0]


def test_integers_stay_integers() -> None:
    x = torch.tensor([2**40 + 1, 5, 3])
    out = segment_reduce(x, torch.tensor([0, 1, 1]), reduce="min")
    assert out.tolist() == [2**40 + 1, 3]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: segment_reduce(torch.ones(2), reduce="maxx"),  # type: ignore[arg-type]
            "got reduce='maxx', expected one of .* did you mean 'max'",
        ),
        (lambda: segment_reduce(torch.tensor(1.0)), "got a scalar, expected one row"),
        (
            lambda: segment_reduce(torch.ones(3), torch.tensor([0, 1])),
            r"index of shape \[2\] for 3 rows, expected \[3\]",
        ),
        (
            lambda: segment_softmax(torch.ones(3), torch.tensor([[0, 1, 1]])),
            r"segment_softmax got index of shape \[1, 3\]",
        ),
        (
            lambda: segment_reduce(torch.ones(3), ptr=torch.tensor([0, 3]), dim_size=2),
            "dim_size=2 and ptr with 2 offsets, expected 3",
        ),
        (
            lambda: segment_reduce(torch.ones(3), ptr=torch.tensor([0, 2])),
            "ptr from 0 to 2 for 3 rows, expected ascending offsets from 0 to 3",
        ),
        (
            lambda: segment_reduce(torch.ones(3), ptr=torch.tensor([0, 4, 3])),
            "expected ascending offsets",
        ),
        (
            lambda: segment_softmax(torch.ones(3), ptr=torch.ones(0).long()),
            r"ptr of shape \[0\]",
        ),
    ],
)
def test_wrong_input_is_explained(call: Callable[[], Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("reduce", [*REDUCES, "softmax"])
def test_compiled_equals_eager(reduce: str) -> None:
    def run(x: Tensor, index: Tensor) -> Tensor:
        if reduce == "softmax":
            return segment_softmax(x, index, dim_size=5)
        return segment_reduce(x, index, dim_size=5, reduce=reduce)

    fast = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (6, 9):
        x = torch.randn(n, 2, requires_grad=True)
        index = torch.randint(0, 4, (n,))
        weight = torch.randn_like(run(x, index))
        results = []
        for function in (run, fast):
            out = function(x, index)
            (grad,) = torch.autograd.grad((out * weight).sum(), x)
            results.append((out.detach(), grad))
        torch.testing.assert_close(results[0], results[1])
