r"""Product of two sparse matrices, with gradients to the values of both.

The native form lists the contributing pairs of entries block by block of rows, so
memory stays bounded by the result and one block. The gradient lists them again
instead of keeping them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_pool.errors import reads_values
from pyg_pool.kernels.dispatch import (
    chosen,
    current_backend,
    prefers_scipy,
    runs_numba,
    use_backend,
)
from pyg_pool.kernels.product_pairs import (
    Problem,
    blocks,
    merge,
    pairs_of,
    sorted_rows,
    unpack,
)
from pyg_pool.kernels.segment import segment_reduce
from pyg_pool.typing import OptTensor

__all__ = ["sparse_product"]


def sparse_product(
    index_a: Tensor,
    value_a: OptTensor,
    index_b: Tensor,
    value_b: OptTensor,
    shape: tuple[int, int, int],
    *,
    drop_diagonal: bool = False,
    max_entries: int | None = None,
) -> tuple[Tensor, OptTensor]:
    r"""Multiplies two sparse matrices given by entries in any order.

    .. math::
        C_{ij} = \sum_v A_{iv} B_{vj}

    Args:
        index_a: Row and column of each entry of the left factor; repeated entries
            count as their sum.
        value_a: Values of the left factor, or ``None`` for the pattern only.
        index_b: Row and column of each entry of the right factor.
        value_b: Values of the right factor, or ``None`` exactly when ``value_a`` is.
        shape: ``(rows of A, columns of A, columns of B)``.
        drop_diagonal: Leave entries with equal row and column out.
        max_entries: Refuse a result with more entries, before it is allocated.

    Returns:
        Entries of the product in row-major order, and their values.

    Shapes:
        index_a: ``[2, E_a]`` int64; value_a: ``[E_a]``; index_b: ``[2, E_b]`` int64;
        value_b: ``[E_b]``; returns ``[2, M]``, ``[M]``.

    Raises:
        ValueError: If the shapes or ids of a factor do not fit, if only one factor
            has values, or if the result would have more than ``max_entries`` entries.

    Note:
        Entries whose contributions cancel stay as explicit zeros. Values are
        accumulated in at least float32. Under ``torch.compile`` all pairs are listed
        at once, and ``max_entries`` is not looked at. Cost: time and, in the native
        form, blocks of memory in the number of pairs
        :math:`\sum_v \deg_A(v) \deg_B(v)`.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels import sparse_product
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> index, value = sparse_product(
        ...     path, torch.ones(4), path, torch.ones(4), (3, 3, 3))
        >>> index
        tensor([[0, 0, 1, 2, 2],
                [0, 2, 1, 0, 2]])
    """
    if (value_a is None) != (value_b is None):
        raise ValueError(
            f"sparse_product got value_a={'None' if value_a is None else 'a tensor'} "
            f"and value_b={'None' if value_b is None else 'a tensor'}, expected "
            f"values of both factors or of none; pass ones for the other."
        )
    _check_factor("a", index_a, value_a, shape[0], shape[1])
    _check_factor("b", index_b, value_b, shape[1], shape[2])
    problem = Problem(index_a, index_b, shape, drop_diagonal, max_entries)
    if value_a is None or value_b is None:
        return _pattern(problem), None
    dtype = torch.promote_types(value_a.dtype, value_b.dtype)
    wide = torch.promote_types(dtype, torch.float32)
    value_a, value_b = value_a.to(wide), value_b.to(wide)
    if torch.compiler.is_compiling():
        index, value = _traced(problem, value_a, value_b)
    elif chosen("sparse_product", index_a, value_a, index_b, value_b):
        index, value = _in_triton(problem, value_a, value_b)
    else:
        index, value = _Product.apply(value_a, value_b, problem)
    return index, value.to(dtype)


def _check_factor(
    name: str, index: Tensor, value: OptTensor, num_rows: int, num_cols: int
) -> None:
    """Raises ``ValueError`` unless the entries lie inside the factor's shape."""
    fits = index.dim() == 2 and index.size(0) == 2 and index.dtype == torch.long
    if not fits or (value is not None and value.shape != index.shape[1:]):
        raise ValueError(
            f"sparse_product got index_{name} of shape {list(index.shape)} and dtype "
            f"{index.dtype}, with values of shape "
            f"{None if value is None else list(value.shape)}, expected [2, entries] "
            f"of torch.int64 and [entries]; stack rows and columns."
        )
    if not reads_values(index) or index.numel() == 0:
        return
    # A compiled twin would read and write outside its arrays.
    low, high = (part.tolist() for part in torch.aminmax(index, dim=1))
    if min(low) < 0 or high[0] >= num_rows or high[1] >= num_cols:
        raise ValueError(
            f"sparse_product got index_{name} with rows {low[0]} to {high[0]} and "
            f"columns {low[1]} to {high[1]}, expected ids below {num_rows} and "
            f"{num_cols}; give the shape (rows of A, columns of A, columns of B)."
        )


def _pattern(problem: Problem) -> Tensor:
    if not torch.compiler.is_compiling():
        run = _chosen(problem, None, None)
        if run is not _native_forward:
            return run(problem, None, None)[0]
    nothing = problem.index_a.new_zeros(problem.index_a.size(1), dtype=torch.float32)
    other = nothing.new_zeros(problem.index_b.size(1))
    if torch.compiler.is_compiling():
        return _traced(problem, nothing, other)[0]
    return _native_forward(problem, nothing, other)[0]


def _chosen(problem: Problem, value_a: OptTensor, value_b: OptTensor) -> Any:
    """The form that runs; SciPy's where nothing forbids it."""
    from pyg_pool.kernels import product_scipy

    size = problem.index_a.size(1) + problem.index_b.size(1)
    if (
        problem.max_entries is None
        and prefers_scipy(size, problem.index_a)
        and product_scipy.suits(value_a, value_b)
    ):
        return _scipy_forward
    return _numba_forward if _takes_numba(problem) else _native_forward


def _takes_numba(problem: Problem) -> bool:
    size = problem.index_a.size(1) + problem.index_b.size(1)
    if current_backend() == "scipy":  # and SciPy cannot: as if nothing were forced
        with use_backend("auto"):
            return runs_numba("sparse_product", size, problem.index_a)
    return runs_numba("sparse_product", size, problem.index_a)


class _Product(torch.autograd.Function):
    """The product with a gradient that recomputes the contributing pairs."""

    @staticmethod
    def forward(
        ctx: Any, value_a: Tensor, value_b: Tensor, problem: Problem
    ) -> tuple[Tensor, Tensor]:
        index, value = _chosen(problem, value_a, value_b)(problem, value_a, value_b)
        ctx.problem = problem
        ctx.save_for_backward(value_a, value_b, index)
        ctx.mark_non_differentiable(index)
        return index, value

    @staticmethod
    def backward(ctx: Any, _: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        value_a, value_b, index = ctx.saved_tensors
        # With second derivatives asked for, only torch's own operations will do.
        fast = _takes_numba(ctx.problem) and not torch.is_grad_enabled()
        run = _numba_backward if fast else _native_backward
        return (*run(ctx.problem, value_a, value_b, index, grad.contiguous()), None)


def _traced(
    problem: Problem, value_a: Tensor, value_b: Tensor
) -> tuple[Tensor, Tensor]:
    """All pairs at once, with torch's own gradients."""
    left, right, key = pairs_of(problem, sorted_rows(problem), slice(None))
    value = value_a.index_select(0, left) * value_b.index_select(0, right)
    key, value = merge(key, value)
    return unpack(key, problem.shape[2]), value


def _in_triton(
    problem: Problem, value_a: Tensor, value_b: Tensor
) -> tuple[Tensor, Tensor]:
    """All pairs at once: multiplied and summed up by Triton, sorted by torch."""
    from pyg_pool.kernels import product_triton

    left, right, key = pairs_of(problem, sorted_rows(problem), slice(None))
    value = product_triton.pair_products(value_a, value_b, left, right)
    key, order = torch.sort(key, stable=True)
    new = torch.ones_like(key, dtype=torch.bool)
    new[1:] = key[1:] != key[:-1]
    first = new.nonzero().view(-1)
    _check_size(problem, first.numel(), exact=True)
    slot, value = new.long().cumsum(0) - 1, value.index_select(0, order)
    total = segment_reduce(value, slot, dim_size=first.numel())
    return unpack(key.index_select(0, first), problem.shape[2]), total


def _native_forward(
    problem: Problem, value_a: Tensor, value_b: Tensor
) -> tuple[Tensor, Tensor]:
    rows = sorted_rows(problem)
    keys, values, total = [value_a.new_zeros(0, dtype=torch.long)], [value_a[:0]], 0
    for block in blocks(problem, rows):
        left, right, key = pairs_of(problem, rows, block)
        value = value_a.index_select(0, left) * value_b.index_select(0, right)
        key, value = merge(key, value)
        total += key.numel()
        _check_size(problem, total, exact=False)
        keys.append(key)
        values.append(value)
    return unpack(torch.cat(keys), problem.shape[2]), torch.cat(values)


def _native_backward(
    problem: Problem, value_a: Tensor, value_b: Tensor, index: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    grad_a, grad_b = torch.zeros_like(value_a), torch.zeros_like(value_b)
    known = index[0] * problem.shape[2] + index[1]
    rows = sorted_rows(problem)
    for block in blocks(problem, rows):
        left, right, key = pairs_of(problem, rows, block)
        part = grad.index_select(0, torch.searchsorted(known, key))
        grad_a.scatter_add_(0, left, part * value_b.index_select(0, right))
        grad_b.scatter_add_(0, right, part * value_a.index_select(0, left))
    return grad_a, grad_b


def _check_size(problem: Problem, total: int, exact: bool) -> None:
    limit = problem.max_entries
    if limit is not None and total > limit:
        size = f"{total}" if exact else f"more than {limit}"
        raise ValueError(
            f"sparse_product got factors whose product has {size} entries, expected "
            f"at most max_edges={limit}; raise max_edges, keep fewer nodes, or use a "
            f"sparser adjacency (augment='none')."
        )


def _scipy_forward(
    problem: Problem, value_a: OptTensor, value_b: OptTensor
) -> tuple[Tensor, Tensor]:
    from pyg_pool.kernels import product_scipy

    return product_scipy.multiply(
        problem.index_a, problem.index_b, problem.shape, problem.drop_diagonal,
        value_a, value_b,
    )  # fmt: skip


def _numba_forward(
    problem: Problem, value_a: OptTensor, value_b: OptTensor
) -> tuple[Tensor, Tensor]:
    from pyg_pool.kernels import product_numba

    factors = (problem.index_a, problem.index_b, problem.shape, problem.drop_diagonal)
    ptr = product_numba.offsets(*factors)
    _check_size(problem, int(ptr[-1]), exact=True)
    return product_numba.multiply(*factors, ptr, value_a, value_b)


def _numba_backward(
    problem: Problem, value_a: Tensor, value_b: Tensor, index: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    from pyg_pool.kernels import product_numba

    factors = (problem.index_a, problem.index_b, problem.shape)
    return product_numba.multiply_gradient(*factors, value_a, value_b, index, grad)
