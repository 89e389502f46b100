"""The sparse product by SciPy, for large factors: nothing to compile or to start.

SciPy leaves the columns of a row unsorted. The factors are therefore transposed and
swapped: turning the product's rows into columns sorts them in linear time.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix
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
    """The transposed factor as compressed rows."""
    small = max(*shape, index.size(1)) < 2**31
    row, col = index.numpy().astype(np.int32 if small else np.int64)
    ones = np.ones(col.size, np.float32)
    data = ones if value is None else value.detach().numpy()
    entries = coo_matrix((data, (col, row)), shape=shape)
    # The product adds repeated entries up by itself: no need to sort for them here.
    entries.has_canonical_format = True
    return entries.tocsr()


def _entries(
    ptr: Array, column: Array, data: Array, drop: bool
) -> tuple[Tensor, Tensor]:
    """Rows and columns as tensors; the values are moved up inside their own array."""
    blocks, keep = _blocks(ptr), np.ones(column.size, np.bool_)
    if drop:
        for place, row in blocks:
            np.not_equal(column[place], _row_ids(ptr, row), out=keep[place])
    size = int(np.count_nonzero(keep))
    index, end = torch.empty(2, size, dtype=torch.long), 0
    rows, columns = index.numpy()
    for place, row in blocks:
        kept = keep[place]
        start, end = end, end + int(np.count_nonzero(kept))
        rows[start:end] = _row_ids(ptr, row)[kept]
        columns[start:end] = column[place][kept]
        data[start:end] = data[place][kept]
    return index, torch.from_numpy(data[:size])


def _row_ids(ptr: Array, row: slice) -> Array:
    """The row of each entry in a range of rows."""
    ids = np.arange(row.start, row.stop, dtype=ptr.dtype)
    return np.repeat(ids, np.diff(ptr[row.start : row.stop + 1]))


def _blocks(ptr: Array) -> list[tuple[slice, slice]]:
    """Entries and rows of whole rows, about a block of entries at a time."""
    marks = np.arange(0, int(ptr[-1]), BLOCK_ENTRIES)
    cuts = np.unique(np.append(np.searchsorted(ptr, marks), ptr.size - 1)).tolist()
    return [(slice(int(ptr[i]), int(ptr[j])), slice(i, j)) for i, j in pairwise(cuts)]
