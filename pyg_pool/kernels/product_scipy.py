"""The sparse product by SciPy, for large factors: nothing to compile or to start.

SciPy leaves the columns of a row unsorted. The factors are therefore transposed and
swapped: turning the product's rows into columns sorts them in linear time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from pyg_pool.typing import OptTensor

Array = NDArray[Any]

# Entries written at once, which bounds the memory beside the result.
BLOCK_ENTRIES = 2**18


def suits(value_a: OptTensor, value_b: OptTensor) -> bool:
    """Whether no entry of the product can be zero; SciPy would leave it out."""
    if value_a is None or value_b is None:
        return True
    if value_a.numel() == 0 or value_b.numel() == 0:
        return True
    low = value_a.min().item() * value_b.min().item()
    return (
        bool(value_a.min() > 0)
        and bool(value_b.min() > 0)
        and low >= torch.finfo(value_a.dtype).tiny
    )


def multiply(
    index_a: Tensor,
    index_b: Tensor,
    shape: tuple[int, int, int],
    drop: bool,
    value_a: OptTensor,
    value_b: OptTensor,
) -> tuple[Tensor, Tensor]:
    """Entries and values of the product in row-major order; ones for patterns."""
    turned = _flipped(index_b, value_b, (shape[2], shape[1]))
    product = turned @ _flipped(index_a, value_a, (shape[1], shape[0]))
    del turned
    product = product.tocsc()
    return _entries(product.indptr, product.indices, product.data, drop)


def _flipped(index: Tensor, value: OptTensor, shape: tuple[int, int]) -> csr_matrix:
    """The transposed factor as compressed rows; repeated entries are added up."""
    small = max(*shape, index.size(1)) < 2**31
    row, col = index.numpy().astype(np.int32 if small else np.int64)
    ones = np.ones(col.size, np.float32)
    data = ones if value is None else value.detach().numpy()
    return csr_matrix((data, (col, row)), shape=shape)


def _entries(
    ptr: Array, column: Array, data: Array, drop: bool
) -> tuple[Tensor, Tensor]:
    """Rows and columns as tensors; the values are moved up inside their own array."""
    counts = torch.from_numpy(np.diff(ptr))
    size = int(ptr[-1])
    if drop:
        size -= sum(int((r == c).sum()) for r, c, _ in _blocks(ptr, counts, column))
    index = torch.empty(2, size, dtype=torch.long)
    value, end = torch.from_numpy(data), 0
    for row, col, place in _blocks(ptr, counts, column):
        part = value[place]
        if drop:
            keep = (row != col).nonzero().view(-1)
            row, col = row.index_select(0, keep), col.index_select(0, keep)
            part = part.index_select(0, keep)
        start, end = end, end + row.numel()
        index[0, start:end], index[1, start:end] = row, col
        value[start:end] = part
    return index, value[:size]


def _blocks(ptr: Array, counts: Tensor, column: Array) -> Any:
    """Row ids, column ids and place of whole rows, a block of entries at a time."""
    marks = np.arange(0, int(ptr[-1]), BLOCK_ENTRIES)
    cuts = np.unique(np.append(np.searchsorted(ptr, marks), counts.numel()))
    for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        row = torch.arange(first, last, dtype=torch.int32)
        place = slice(int(ptr[first]), int(ptr[last]))
        row = torch.repeat_interleave(row, counts[first:last])
        yield row, torch.from_numpy(column[place]), place
