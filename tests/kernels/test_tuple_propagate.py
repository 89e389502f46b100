"""Messages between pairs of nodes against dense products, on every backend."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

from pyg_pool.kernels import tuple_propagate as module
from pyg_pool.kernels import use_backend
from pyg_pool.kernels.dispatch import watch_backends
from pyg_pool.kernels.tuple_propagate import pair_ptr, tuple_propagate

SIZES = (3, 1, 0, 5, 2)


def graphs(sizes: tuple[int, ...] = SIZES) -> tuple[Tensor, Tensor]:
    """Directed edges with loops and repeats, in no order, and the offsets."""
    parts, start = [torch.empty(2, 0, dtype=torch.long)], [0]
    for size in sizes:
        if size > 0:
            parts.append(torch.randint(size, (2, 2 * size)) + start[-1])
        start.append(start[-1] + size)
    edges = torch.cat(parts, 1)
    return edges[:, torch.randperm(edges.size(1))], torch.tensor(start)


def dense(x: Tensor, edges: Tensor, ptr: Tensor, axis: int) -> Tensor:
    out, rows = [], pair_ptr(ptr).tolist()
    for g, (a, b) in enumerate(zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)):
        n = b - a
        matrix = torch.zeros(n, n, dtype=x.dtype)
        for s, t in edges.t().tolist():
            if a <= s < b:
                matrix[t - a, s - a] += 1
        part = x[rows[g] : rows[g + 1]].view(n, n, x.size(1))
        word = "vw,uwf->uvf" if axis else "uw,wvf->uvf"
        out.append(torch.einsum(word, matrix, part).reshape(n * n, x.size(1)))
    return torch.cat(out)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_equals_the_dense_product(axis: int, dtype: torch.dtype, backend: str) -> None:
    edges, ptr = graphs()
    x = torch.randn(int(pair_ptr(ptr)[-1]), 3, dtype=torch.float64)
    with watch_backends() as seen:
        found = tuple_propagate(x.to(dtype), edges, ptr, axis=axis)
    if dtype != torch.bfloat16:
        name = "numba" if backend == "numba" else "native"
        assert seen == {("tuple_propagate", name)}
    assert found.dtype == dtype
    loose = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 5e-2}[dtype]
    wanted = dense(x, edges, ptr, axis)
    assert_close(found.double(), wanted, rtol=loose, atol=loose)


@pytest.mark.parametrize("axis", [0, 1])
def test_blocks_and_threads_change_nothing(
    axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges, ptr = graphs((20, 0, 30))
    x = torch.randn(1300, 2, dtype=torch.float64)
    with use_backend("native"):
        wanted = tuple_propagate(x, edges, ptr, axis=axis)
        monkeypatch.setattr(module, "CHUNK", 64)
        assert_close(tuple_propagate(x, edges, ptr, axis=axis), wanted)
    monkeypatch.setattr("pyg_pool.kernels.threads.PARALLEL_FROM", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    with use_backend("numba"):
        assert_close(tuple_propagate(x, edges, ptr, axis=axis), wanted)


@pytest.mark.parametrize("axis", [0, 1])
def test_gradients(axis: int, backend: str) -> None:
    edges, ptr = graphs((3, 0, 2))
    x = torch.randn(13, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: tuple_propagate(x, edges, ptr, axis=axis), (x,))
    assert gradgradcheck(lambda x: tuple_propagate(x, edges, ptr, axis=axis), (x,))


def test_nothing_to_do(backend: str) -> None:
    edges, ptr = torch.empty(2, 0, dtype=torch.long), torch.tensor([0, 2, 2])
    assert not tuple_propagate(torch.ones(4, 3), edges, ptr).any()
    assert tuple_propagate(torch.ones(4, 0), edges, ptr).shape == (4, 0)
    assert tuple_propagate(torch.ones(0, 3), edges, ptr[:1]).shape == (0, 3)


@pytest.mark.parametrize(
    ("rows", "ends", "match"),
    [(12, 1, "got 12 rows"), (13, 4, "expected a row per pair"), (13, 7, "node 7")],
)
def test_what_does_not_fit_is_refused(rows: int, ends: int, match: str) -> None:
    ptr, edges = torch.tensor([0, 3, 5]), torch.tensor([[0], [ends]])
    with pytest.raises(ValueError, match=match):
        tuple_propagate(torch.ones(rows, 1), edges, ptr)
    with pytest.raises(ValueError, match="axis=2"):
        tuple_propagate(torch.ones(13, 1), edges, ptr, axis=2)
