"""Taking and putting distinct rows."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyg_pool.kernels import put_rows, take_rows

few = settings(derandomize=True, max_examples=50, deadline=None)
SHAPES = st.sampled_from([(), (1,), (3,), (0,), (2, 2)])


@st.composite
def places(draw: st.DrawFn) -> tuple[int, list[int], tuple[int, ...]]:
    n = draw(st.integers(0, 6))
    order = draw(st.permutations(range(n)))
    return n, order[: draw(st.integers(0, n))], draw(SHAPES)


@few
@given(places())
def test_take_equals_a_loop(case: tuple[int, list[int], tuple[int, ...]]) -> None:
    n, index, shape = case
    x = torch.randn(n, *shape)
    out = take_rows(x, torch.tensor(index).long())
    assert out.shape == (len(index), *shape)
    for k, i in enumerate(index):
        assert out[k].equal(x[i])


@few
@given(places())
def test_put_equals_a_loop(case: tuple[int, list[int], tuple[int, ...]]) -> None:
    n, index, shape = case
    x = torch.randn(len(index), *shape)
    out = put_rows(x, torch.tensor(index).long(), n)
    wanted = torch.zeros(n, *shape)
    for k, i in enumerate(index):
        wanted[i] = x[k]
    assert out.equal(wanted)


@few
@given(places())
def test_put_undoes_take(case: tuple[int, list[int], tuple[int, ...]]) -> None:
    n, index, shape = case
    where = torch.tensor(index).long()
    x = torch.randn(len(index), *shape)
    assert take_rows(put_rows(x, where, n), where).equal(x)


@pytest.mark.parametrize("shape", [(), (2,), (2, 2)])
def test_gradients(shape: tuple[int, ...]) -> None:
    index = torch.tensor([4, 0, 2])
    x = torch.randn(5, *shape, dtype=torch.double, requires_grad=True)
    y = torch.randn(3, *shape, dtype=torch.double, requires_grad=True)
    for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        assert check(lambda x: take_rows(x, index), (x,))
        assert check(lambda y: put_rows(y, index, 5), (y,))
        # Something that has a second derivative.
        assert check(lambda x: take_rows(x * x, index).sin(), (x,))


def test_expanded_and_strided_rows() -> None:
    x = torch.randn(1, 3).expand(4, 3).requires_grad_()
    out = take_rows(x, torch.tensor([3, 1]))
    out.sum().backward()  # the incoming gradient is expanded
    assert x.grad is not None
    assert x.grad.tolist() == [[0.0] * 3, [1.0] * 3, [0.0] * 3, [1.0] * 3]
    strided = torch.randn(3, 4).t()
    index = torch.tensor([[2, 9], [0, 9]])[:, 0]
    assert take_rows(strided, index).equal(strided[index])
    assert put_rows(strided[:2], index, 3)[2].equal(strided[0])


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.long, torch.bool]
)
def test_types_are_kept(dtype: torch.dtype) -> None:
    x = torch.tensor([[1, 0], [0, 1], [1, 1]]).to(dtype)
    index = torch.tensor([2, 0])
    assert take_rows(x, index).equal(x[index])
    out = put_rows(take_rows(x, index), index, 3)
    assert out.dtype == dtype
    assert out.equal(torch.tensor([[1, 0], [0, 0], [1, 1]]).to(dtype))


@pytest.mark.parametrize(
    "run", [take_rows, lambda x, i: put_rows(x[: i.numel()], i, 12)]
)
def test_compiled_equals_eager(run: object) -> None:
    assert callable(run)
    fast = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (6, 9):
        x = torch.randn(n, 2, requires_grad=True)
        index = torch.randperm(n)[: n - 3]
        results: list[tuple[Tensor, Tensor]] = []
        for function in (run, fast):
            out = function(x, index)
            (grad,) = torch.autograd.grad(out.sin().sum(), x)
            results.append((out.detach(), grad))
        torch.testing.assert_close(results[0], results[1])
