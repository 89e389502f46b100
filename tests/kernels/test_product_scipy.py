"""SciPy's product beside the native form, and where it is left alone."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from pyg_pool.kernels import dispatch, product_scipy, sparse_product, use_backend

SHAPE = (40, 30, 40)
STARTED = "numba.np.arrayobj"  # loaded when numba runs its first kernel


def factors(dtype: torch.dtype = torch.double) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Unsorted entries with repeats and empty rows; all values positive."""
    n, m, k = SHAPE
    size = 200
    a = torch.stack([torch.randint(5, n, (size,)), torch.randint(m, (size,))])
    b = torch.stack([torch.randint(m, (size,)), torch.randint(k - 3, (size,))])
    return a, torch.rand(size, dtype=dtype) + 0.5, b, torch.rand(size, dtype=dtype) + 1


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by one with every product that SciPy computes."""
    seen: list[str] = []
    run = product_scipy.multiply

    def spy(*args: object) -> tuple[Tensor, Tensor]:
        seen.append("scipy")
        return run(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(product_scipy, "multiply", spy)
    return seen


@pytest.mark.parametrize("block", [1, 7, 2**18])
@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("dtype", [torch.float, torch.double])
def test_equals_the_native_form(
    block: int,
    drop: bool,
    dtype: torch.dtype,
    calls: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(product_scipy, "BLOCK_ENTRIES", block)
    a, x, b, y = factors(dtype)
    with use_backend("native"):
        wanted = sparse_product(a, x, b, y, SHAPE, drop_diagonal=drop)
    assert not calls
    with use_backend("scipy"):
        got = sparse_product(a, x, b, y, SHAPE, drop_diagonal=drop)
        pattern, nothing = sparse_product(a, None, b, None, SHAPE, drop_diagonal=drop)
    assert len(calls) == 2
    assert got[0].equal(wanted[0])
    assert pattern.equal(wanted[0])
    assert nothing is None
    torch.testing.assert_close(got[1], wanted[1])


def test_gradients_reach_both_factors(calls: list[str]) -> None:
    a, x, b, y = factors()
    grads = []
    for name in ("native", "scipy"):
        leaves = [x.clone().requires_grad_(), y.clone().requires_grad_()]
        with use_backend(name):
            value = sparse_product(a, leaves[0], b, leaves[1], SHAPE)[1]
        assert value is not None
        grads.append(torch.autograd.grad(value.sin().sum(), leaves))
    assert calls == ["scipy"]
    torch.testing.assert_close(grads[0], grads[1])


@pytest.mark.parametrize("odd", [0.0, -1.0, 1e-200, torch.nan])
def test_entries_that_could_be_zero_are_left_to_another_form(
    odd: float, calls: list[str]
) -> None:
    a, x, b, y = factors()
    x[3] = odd
    y[5] = 1e-200
    with use_backend("native"):
        wanted = sparse_product(a, x, b, y, SHAPE)
    with use_backend("scipy"):
        got = sparse_product(a, x, b, y, SHAPE)
    assert not calls
    assert got[0].equal(wanted[0])
    torch.testing.assert_close(got[1], wanted[1], equal_nan=True)


def test_a_limit_is_kept_before_anything_is_allocated(calls: list[str]) -> None:
    a, x, b, y = factors()
    with use_backend("scipy"), pytest.raises(ValueError, match="at most max_edges=10"):
        sparse_product(a, x, b, y, SHAPE, max_entries=10)
    assert not calls


@pytest.mark.parametrize("shape", [(0, 0, 0), (3, 0, 3), (0, 3, 3)])
def test_empty_factors(shape: tuple[int, int, int], calls: list[str]) -> None:
    none, value = torch.empty(2, 0, dtype=torch.long), torch.empty(0)
    with use_backend("scipy"):
        index, out = sparse_product(none, value, none, value, shape)
    assert calls
    assert index.shape == (2, 0)
    assert out is not None
    assert out.numel() == 0


def test_size_decides(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    a, x, b, y = factors()
    sparse_product(a, x, b, y, SHAPE)
    assert not calls
    monkeypatch.setattr(dispatch, "SCIPY_FROM", 400)
    sparse_product(a, x, b, y, SHAPE)
    assert calls == ["scipy"]
    with use_backend("native"):
        sparse_product(a, x, b, y, SHAPE)
    assert calls == ["scipy"]


@pytest.mark.parametrize(("size", "started"), [(2**20, "True"), (1, "False")])
def test_a_large_squared_step_does_not_start_numba(size: int, started: str) -> None:
    script = f"""
import sys, torch
from pyg_pool import GPool
from pyg_pool.kernels import dispatch
dispatch.SCIPY_FROM = {size}
x = torch.randn(3000, 8, requires_grad=True)
edges = torch.randint(3000, (2, 9000))
out = GPool(8, augment="weighted")(x, edges, torch.rand(9000) + 0.5)
(out.x.sum() + out.edge_attr.sum()).backward()
print({STARTED!r} in sys.modules)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == started
