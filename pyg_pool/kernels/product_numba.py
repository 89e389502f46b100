"""Numba twin of ``product.py``: sparse products row by row, without triples.

Memory is the result plus one dense row. Both passes read the factors as compressed
rows that are built by counting, so nothing is sorted by comparison.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from pyg_pool.typing import OptTensor

Array = NDArray[Any]


@njit(nogil=True, cache=True)
def compress(row: Array, col: Array, num_rows: int) -> tuple[Array, Array, Array]:
    """Offsets, columns and entry ids of a matrix sorted by row."""
    ptr = np.zeros(num_rows + 1, np.int64)
    for e in range(row.size):
        ptr[row[e] + 1] += 1
    for r in range(num_rows):
        ptr[r + 1] += ptr[r]
    fill = ptr[:-1].copy()
    out = np.empty(row.size, np.int32)
    entry = np.empty(row.size, np.int32)
    for e in range(row.size):
        slot = fill[row[e]]
        fill[row[e]] += 1
        out[slot] = col[e]
        entry[slot] = e
    return ptr, out, entry


@njit(nogil=True, cache=True)
def count(
    ptr_a: Array, col_a: Array, ptr_b: Array, col_b: Array, num_cols: int, drop: bool
) -> Array:
    """Number of entries in each row of the product."""
    num_rows = ptr_a.size - 1
    seen = np.full(num_cols, -1, np.int64)
    out = np.zeros(num_rows + 1, np.int64)
    for i in range(num_rows):
        found = 0
        if drop and i < num_cols:
            seen[i] = i
        for a in range(ptr_a[i], ptr_a[i + 1]):
            v = col_a[a]
            for b in range(ptr_b[v], ptr_b[v + 1]):
                j = col_b[b]
                if seen[j] != i:
                    seen[j] = i
                    found += 1
        out[i + 1] = out[i] + found
    return out


@njit(nogil=True, cache=True)
def fill(
    ptr_t: Array,
    col_t: Array,
    val_t: Array,
    ptr_s: Array,
    col_s: Array,
    val_s: Array,
    ptr_out: Array,
    drop: bool,
    edge_index: Array,
    value: Array,
) -> None:
    """Writes the product with ascending columns in each row.

    The factors come transposed and swapped, so rows of the transposed result are
    met in order: column ``j`` is finished before ``j + 1``, and appending to row
    ``i`` keeps it sorted.
    """
    num_rows = ptr_out.size - 1
    for i in range(num_rows):
        edge_index[0, ptr_out[i] : ptr_out[i + 1]] = i
    slot = ptr_out[:-1].copy()
    seen = np.full(num_rows, -1, np.int32)
    weighted = value.size > 0
    for j in range(ptr_t.size - 1):
        for a in range(ptr_t[j], ptr_t[j + 1]):
            v = col_t[a]
            for b in range(ptr_s[v], ptr_s[v + 1]):
                i = col_s[b]
                if drop and i == j:
                    continue
                if seen[i] != j:
                    seen[i] = j
                    edge_index[1, slot[i]] = j
                    if weighted:
                        value[slot[i]] = val_t[a] * val_s[b]
                    slot[i] += 1
                elif weighted:
                    value[slot[i] - 1] += val_t[a] * val_s[b]


@njit(nogil=True, cache=True)
def gradient(
    ptr_a: Array,
    col_a: Array,
    entry_a: Array,
    val_a: Array,
    ptr_b: Array,
    col_b: Array,
    entry_b: Array,
    val_b: Array,
    ptr_out: Array,
    col_out: Array,
    grad_out: Array,
    grad_a: Array,
    grad_b: Array,
    num_cols: int,
) -> None:
    """Adds the gradients of both factors; entries absent from the result give 0."""
    row = np.zeros(num_cols, grad_out.dtype)
    zero = np.zeros(1, grad_out.dtype)[0]
    for i in range(ptr_a.size - 1):
        for c in range(ptr_out[i], ptr_out[i + 1]):
            row[col_out[c]] = grad_out[c]
        for a in range(ptr_a[i], ptr_a[i + 1]):
            v = col_a[a]
            weight = val_a[entry_a[a]]
            total = zero
            for b in range(ptr_b[v], ptr_b[v + 1]):
                g = row[col_b[b]]
                total += g * val_b[entry_b[b]]
                grad_b[entry_b[b]] += g * weight
            grad_a[entry_a[a]] += total
        for c in range(ptr_out[i], ptr_out[i + 1]):
            row[col_out[c]] = 0


def offsets(
    index_a: Tensor, index_b: Tensor, shape: tuple[int, int, int], drop: bool
) -> Array:
    """Row offsets of the product of two patterns."""
    a, b = index_a.numpy(), index_b.numpy()
    ptr_a, col_a, _ = compress(a[0], a[1], shape[0])
    ptr_b, col_b, _ = compress(b[0], b[1], shape[1])
    out: Array = count(ptr_a, col_a, ptr_b, col_b, shape[2], drop)
    return out


def multiply(
    index_a: Tensor,
    index_b: Tensor,
    shape: tuple[int, int, int],
    drop: bool,
    ptr: Array,
    value_a: OptTensor,
    value_b: OptTensor,
) -> tuple[Tensor, Tensor]:
    """Entries and values of the product in row-major order; see :func:`offsets`.

    Without values only the entries are found, and the second tensor is empty.
    """
    a, b, size = index_a.numpy(), index_b.numpy(), int(ptr[-1])
    index = torch.empty(2, size, dtype=torch.long)
    ptr_t, col_t, entry_t = compress(b[1], b[0], shape[2])
    ptr_s, col_s, entry_s = compress(a[1], a[0], shape[1])
    value = torch.empty(0)
    val_t = val_s = value.numpy()
    if value_a is not None and value_b is not None:
        value = torch.empty(size, dtype=value_a.dtype)
        val_t = value_b.detach().numpy()[entry_t]
        val_s = value_a.detach().numpy()[entry_s]
    del entry_t, entry_s
    fill(
        ptr_t, col_t, val_t, ptr_s, col_s, val_s, ptr, drop, index.numpy(),
        value.numpy(),
    )  # fmt: skip
    return index, value


def multiply_gradient(
    index_a: Tensor,
    index_b: Tensor,
    shape: tuple[int, int, int],
    value_a: Tensor,
    value_b: Tensor,
    index: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor]:
    """Gradients of both factors' values."""
    a, b, out = index_a.numpy(), index_b.numpy(), index.numpy()
    grad_a, grad_b = torch.zeros_like(value_a), torch.zeros_like(value_b)
    ptr_out = np.searchsorted(out[0], np.arange(shape[0] + 1))
    ptr_a, col_a, entry_a = compress(a[0], a[1], shape[0])
    ptr_b, col_b, entry_b = compress(b[0], b[1], shape[1])
    gradient(
        ptr_a, col_a, entry_a, value_a.detach().numpy(), ptr_b, col_b, entry_b,
        value_b.detach().numpy(), ptr_out, out[1], grad.numpy(), grad_a.numpy(),
        grad_b.numpy(), shape[2],
    )  # fmt: skip
    return grad_a, grad_b
