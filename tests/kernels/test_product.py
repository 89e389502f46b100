"""Sparse products against loops over all pairs, on every backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyg_pool.kernels import product, product_pairs, sparse_product

few = settings(
    derandomize=True,
    max_examples=60,
    deadline=None,
    # The backend stays in force over all examples of a test.
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
Entries = list[tuple[int, int, float]]


@st.composite
def factors(draw: st.DrawFn) -> tuple[Entries, Entries, tuple[int, int, int]]:
    """Unsorted entries with repeats, empty rows and columns."""
    shape = tuple(draw(st.integers(1, 4)) for _ in range(3))
    value = st.sampled_from([-1.0, 0.0, 0.5, 2.0])

    def entries(rows: int, cols: int) -> Entries:
        row, col = st.integers(0, rows - 1), st.integers(0, cols - 1)
        return draw(st.lists(st.tuples(row, col, value), max_size=8))

    n, m, k = shape
    return entries(n, m), entries(m, k), (n, m, k)


def slow(a: Entries, b: Entries, drop: bool) -> dict[tuple[int, int], float]:
    out: dict[tuple[int, int], float] = {}
    for i, v, x in a:
        for w, j, y in b:
            if v == w and not (drop and i == j):
                out[i, j] = out.get((i, j), 0.0) + x * y
    return out


def unpack(entries: Entries) -> tuple[Tensor, Tensor]:
    index = torch.tensor([e[:2] for e in entries], dtype=torch.long).view(-1, 2).t()
    return index, torch.tensor([e[2] for e in entries], dtype=torch.double)


@few
@given(factors(), st.booleans())
def test_equals_a_loop(
    backend: str, case: tuple[Entries, Entries, tuple[int, int, int]], drop: bool
) -> None:
    a, b, shape = case
    wanted = slow(a, b, drop)
    (index_a, value_a), (index_b, value_b) = unpack(a), unpack(b)
    index, value = sparse_product(
        index_a, value_a, index_b, value_b, shape, drop_diagonal=drop
    )
    assert [tuple(e) for e in index.t().tolist()] == sorted(wanted)
    assert value is not None
    torch.testing.assert_close(
        value, torch.tensor([wanted[e] for e in sorted(wanted)]).double()
    )
    pattern, nothing = sparse_product(
        index_a, None, index_b, None, shape, drop_diagonal=drop
    )
    assert pattern.equal(index)
    assert nothing is None


def random_factors(
    shape: tuple[int, int, int], size: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    n, m, k = shape
    a = torch.stack([torch.randint(n, (size,)), torch.randint(m, (size,))])
    b = torch.stack([torch.randint(m, (size,)), torch.randint(k, (size,))])
    x, y = (torch.randn(size, dtype=torch.double).requires_grad_() for _ in range(2))
    return a, x, b, y


@pytest.mark.parametrize("drop", [False, True])
def test_gradients(backend: str, drop: bool) -> None:
    shape = (4, 5, 3)
    a, _, b, _ = random_factors(shape, 9)

    def run(x: Tensor, y: Tensor) -> Tensor:
        out = sparse_product(a, x, b, y, shape, drop_diagonal=drop)[1]
        assert out is not None
        return out

    values = torch.randn(2, 9, dtype=torch.double).unbind()
    leaves = [v.requires_grad_() for v in values]
    assert torch.autograd.gradcheck(run, leaves)
    assert torch.autograd.gradgradcheck(run, leaves)


def test_gradient_of_one_factor_and_expanded_gradient(backend: str) -> None:
    a, _, b, _ = random_factors((3, 3, 3), 6)
    ones, weight = torch.ones(6), torch.rand(6, requires_grad=True)
    out = sparse_product(a, weight, b, ones, (3, 3, 3))[1]
    assert out is not None
    out.sum().backward()
    degree = torch.bincount(b[0], minlength=3).float()
    torch.testing.assert_close(weight.grad, degree[a[1]])


def test_infinite_gradient_stays_where_it_belongs(backend: str) -> None:
    # Rows of the result: entry (0, 0) has an infinite gradient, entry (0, 1) not.
    a = torch.tensor([[0, 0], [0, 1]])
    b = torch.tensor([[0, 1], [0, 1]])
    weight = torch.ones(2, requires_grad=True)
    out = sparse_product(a, weight, b, torch.ones(2), (1, 2, 2))[1]
    assert out is not None
    out.backward(torch.tensor([torch.inf, 2.0]))
    assert weight.grad is not None
    assert weight.grad.tolist() == [torch.inf, 2.0]


@pytest.mark.parametrize("shape", [(0, 0, 0), (3, 0, 3), (3, 3, 0), (0, 3, 3)])
def test_empty_factors(backend: str, shape: tuple[int, int, int]) -> None:
    none = torch.empty(2, 0, dtype=torch.long)
    value = torch.empty(0, requires_grad=True)
    index, out = sparse_product(none, value, none, value, shape)
    assert index.shape == (2, 0)
    assert out is not None
    out.sum().backward()
    assert value.grad is not None


@pytest.mark.parametrize("layout", ["strided", "flipped", "expanded"])
def test_layouts(backend: str, layout: str) -> None:
    a, x, b, y = random_factors((4, 4, 4), 8)
    wanted = sparse_product(a, x, b, y, (4, 4, 4))
    if layout == "strided":
        a, b = a.t().contiguous().t(), torch.stack([b, b], dim=-1)[..., 0]
        x = torch.stack([x, y], dim=-1)[:, 0]
    elif layout == "flipped":
        index, value = sparse_product(b.flip(0), y, a.flip(0), x, (4, 4, 4))
        order = torch.argsort(index[1], stable=True)  # rows of the transposed result
        assert index.flip(0)[:, order].equal(wanted[0])
        assert value is not None
        torch.testing.assert_close(value[order], wanted[1])
        return
    else:
        ones = torch.ones(1, dtype=torch.double).expand(8)
        wanted = sparse_product(a, ones.clone(), b, ones.clone(), (4, 4, 4))
        x = y = ones
    got = sparse_product(a, x, b, y, (4, 4, 4))
    assert got[0].equal(wanted[0])
    torch.testing.assert_close(got[1], wanted[1])


@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16])
def test_half_types_are_accumulated_in_float32(
    backend: str, dtype: torch.dtype
) -> None:
    size = 4096
    row = torch.stack([torch.zeros(size).long(), torch.arange(size)])
    ones = torch.ones(size, dtype=dtype, requires_grad=True)
    _, value = sparse_product(row, ones, row.flip(0), ones, (1, size, 1))
    assert value is not None
    assert value.dtype == dtype
    assert value.tolist() == [size]
    value.sum().backward()
    assert ones.grad is not None
    assert ones.grad.dtype == dtype
    assert ones.grad.unique().tolist() == [2.0]


def test_types_are_promoted(backend: str) -> None:
    one = torch.zeros(2, 1, dtype=torch.long)
    half, double = torch.ones(1).half(), torch.ones(1).double()
    value = sparse_product(one, half, one, double, (1, 1, 1))[1]
    assert value is not None
    assert value.dtype == torch.double


def test_zeros_that_cancel_stay(backend: str) -> None:
    a, b = torch.tensor([[0, 0], [0, 1]]), torch.tensor([[0, 1], [0, 0]])
    index, value = sparse_product(
        a, torch.tensor([1.0, -1.0]), b, torch.ones(2), (1, 2, 1)
    )
    assert index.tolist() == [[0], [0]]
    assert value is not None
    assert value.tolist() == [0.0]


def test_nan_reaches_its_own_entries_only(backend: str) -> None:
    a = torch.tensor([[0, 1], [0, 1]])
    value = torch.tensor([torch.nan, 2.0])
    out = sparse_product(a, value, a, torch.ones(2), (2, 2, 2))[1]
    assert out is not None
    assert out.isnan().tolist() == [True, False]


def test_limit_on_entries(backend: str) -> None:
    star = torch.stack([torch.arange(1, 6), torch.zeros(5).long()])
    call = (star, None, star.flip(0), None, (6, 6, 6))
    assert sparse_product(*call, max_entries=25)[0].size(1) == 25
    assert sparse_product(*call, max_entries=20, drop_diagonal=True)[0].size(1) == 20
    size = "25" if backend == "numba" else "more than 24"
    with pytest.raises(ValueError, match=f"has {size} entries, expected at most"):
        sparse_product(*call, max_entries=24)


def test_small_blocks_give_the_same(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, x, b, y = random_factors((20, 15, 20), 150)
    whole = sparse_product(a, x, b, y, (20, 15, 20))
    assert whole[1] is not None
    grads = torch.autograd.grad(whole[1].sin().sum(), (x, y))
    monkeypatch.setattr(product_pairs, "BLOCK_PAIRS", 3)
    parts = sparse_product(a, x, b, y, (20, 15, 20))
    assert parts[1] is not None
    again = torch.autograd.grad(parts[1].sin().sum(), (x, y))
    assert parts[0].equal(whole[0])
    torch.testing.assert_close(parts[1], whole[1])
    torch.testing.assert_close(again, grads)


def test_backend_that_is_asked_for_runs(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def watch(name: str) -> None:
        run = getattr(product, name)

        def spy(*args: Any) -> Any:
            ran.append(name)
            return run(*args)

        monkeypatch.setattr(product, name, spy)

    for room in ("native", "numba"):
        watch(f"_{room}_forward")
        watch(f"_{room}_backward")
    a, x, b, y = random_factors((3, 3, 3), 5)
    out = sparse_product(a, x, b, y, (3, 3, 3))[1]
    assert out is not None
    out.sum().backward()
    sparse_product(a, None, b, None, (3, 3, 3))
    name = backend if backend == "numba" else "native"  # others know no product
    assert ran == [f"_{name}_forward", f"_{name}_backward", f"_{name}_forward"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda i, v: sparse_product(i, v, i, None, (2, 2, 2)),
            "got value_a=a tensor and value_b=None, expected values of both",
        ),
        (
            lambda i, v: sparse_product(i, v, i, v, (2, 1, 2)),
            "index_a with rows 0 to 1 and columns 0 to 1, expected ids below 2 and 1",
        ),
        (
            lambda i, v: sparse_product(i, v, i - 1, v, (2, 2, 2)),
            "index_b with rows -1 to 0",
        ),
        (
            lambda i, v: sparse_product(i[0], v, i, v, (2, 2, 2)),
            r"index_a of shape \[2\]",
        ),
        (
            lambda i, v: sparse_product(i, v, i, v.view(2, 1), (2, 2, 2)),
            r"index_b .* with values of shape \[2, 1\]",
        ),
        (
            lambda i, v: sparse_product(i.int(), v, i, v, (2, 2, 2)),
            r"index_a .* dtype torch\.int32",
        ),
    ],
)
def test_wrong_input_is_explained(
    backend: str, call: Callable[[Tensor, Tensor], object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(torch.tensor([[0, 1], [1, 0]]), torch.ones(2))


@pytest.mark.parametrize("drop", [False, True])
def test_compiled_equals_eager(drop: bool) -> None:
    def run(a: Tensor, x: Tensor, b: Tensor, y: Tensor) -> tuple[Tensor, Tensor | None]:
        return sparse_product(a, x, b, y, (5, 4, 5), drop_diagonal=drop)

    fast = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    for size in (7, 12):
        a, x, b, y = random_factors((5, 4, 5), size)
        results = []
        for function in (run, fast):
            index, value = function(a, x, b, y)
            assert value is not None
            grads = torch.autograd.grad(value.sin().sum(), (x, y))
            results.append((index, value.detach(), *grads))
        torch.testing.assert_close(results[0], results[1])
