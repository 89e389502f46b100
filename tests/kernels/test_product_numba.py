"""The compiled twin beside the native form, at sizes where it is chosen by itself."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor

from pyg_pool.kernels import sparse_product, use_backend
from pyg_pool.kernels.dispatch import NUMBA_FROM, runs_numba

pytest.importorskip("numba")
twin = pytest.importorskip("pyg_pool.kernels.product_numba")


def a_graph(num_nodes: int, num_edges: int) -> tuple[Tensor, Tensor]:
    index = torch.randint(num_nodes, (2, num_edges))
    return index, torch.rand(num_edges, dtype=torch.double, requires_grad=True)


def square(
    index: Tensor, value: Tensor | None, n: int, drop: bool
) -> tuple[Tensor, Tensor | None]:
    return sparse_product(index, value, index, value, (n, n, n), drop_diagonal=drop)


@pytest.mark.parametrize("drop", [False, True])
def test_both_backends_agree(drop: bool) -> None:
    n, num_edges = 300, 3000
    index, value = a_graph(n, num_edges)
    assert 2 * num_edges >= NUMBA_FROM["sparse_product"]
    assert runs_numba("sparse_product", 2 * num_edges, index)
    results = []
    for name in ("auto", "numba", "native"):
        with use_backend(name):  # type: ignore[arg-type]
            entries, product = square(index, value, n, drop)
            assert product is not None
            (grad,) = torch.autograd.grad((product * product).sum(), value)
            pattern = square(index, None, n, drop)[0]
        results.append((entries, product.detach(), grad, pattern))
    assert results[0][1].equal(results[1][1]), "auto is numba here"
    torch.testing.assert_close(results[1], results[2])


def test_float32_is_multiplied_in_float32() -> None:
    index, value = a_graph(50, 400)
    with use_backend("numba"):
        out = square(index, value.detach().float(), 50, False)[1]
        wanted = square(index, value.detach(), 50, False)[1]
    assert out is not None
    assert wanted is not None
    assert out.dtype == torch.float
    torch.testing.assert_close(out, wanted.float())


def test_compressed_rows_keep_the_order_of_entries() -> None:
    row, col = torch.tensor([2, 0, 2, 2]), torch.tensor([1, 3, 0, 1])
    ptr, out, entry = twin.compress(row.numpy(), col.numpy(), 4)
    assert ptr.tolist() == [0, 1, 1, 4, 4]
    assert out.tolist() == [3, 1, 0, 1]
    assert entry.tolist() == [1, 0, 2, 3]


def test_threads_do_not_disturb_each_other() -> None:
    graphs = [a_graph(100, 1000) for _ in range(4)]
    wanted = [square(i, v.detach(), 100, True) for i, v in graphs]

    def run(graph: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor | None]:
        with use_backend("numba"):
            return square(graph[0], graph[1].detach(), 100, True)

    with ThreadPoolExecutor(4) as pool:
        for got, right in zip(pool.map(run, graphs), wanted, strict=True):
            torch.testing.assert_close(got, right)


def test_result_owns_its_memory() -> None:
    index, value = a_graph(20, 60)
    with use_backend("numba"):
        out = square(index, value.detach(), 20, False)
    again = pickle.loads(pickle.dumps(out))
    torch.testing.assert_close(again, out)
    out[0].add_(1)  # writable
