"""Reductions of rows into segments, given by an index or by offsets.

Every function takes the segments in any order, any rank, and empty ones. Half
precision is accumulated in float32. Maxima send their gradient to the lowest row
among ties, on every device.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from pyg_pool.errors import check_choice, reads_values
from pyg_pool.kernels import segment_chosen
from pyg_pool.kernels import segment_twin as twin
from pyg_pool.kernels.dispatch import chosen, is_traced, runs_numba
from pyg_pool.kernels.segment_native import (
    accumulator,
    native_extreme,
    native_logsumexp,
    native_reduce,
    native_softmax,
    segment_count,
)
from pyg_pool.typing import OptTensor, SegmentReduce

__all__ = [
    "segment_count", "segment_extreme", "segment_index", "segment_reduce",
    "segment_softmax",
]  # fmt: skip

Extreme = Literal["max", "min"]

REDUCES = ("sum", "mean", "max", "min", "prod", "logsumexp")
DOUBLE = (torch.float32, torch.float64)
# Types that the compiled CPU twin knows, by reduction.
TWINS = {
    "sum": DOUBLE, "mean": DOUBLE, "max": DOUBLE, "min": DOUBLE,
    "logsumexp": (torch.float32,),
}  # fmt: skip


def segment_reduce(
    x: Tensor,
    index: OptTensor = None,
    ptr: OptTensor = None,
    dim_size: int | None = None,
    reduce: SegmentReduce = "sum",
) -> Tensor:
    r"""Reduces the rows of ``x`` that belong to the same segment.

    .. math::
        y_s = \mathop{\mathrm{reduce}}_{i:\ \mathrm{index}_i = s} x_i

    Args:
        x: Rows to reduce.
        index: Segment of each row, in any order. Without ``index`` and ``ptr``
            all rows form one segment.
        ptr: Offsets of contiguous segments, instead of ``index``.
        dim_size: Number of segments; without it the largest index sets it.
        reduce: ``"sum"``, ``"mean"``, ``"max"``, ``"min"``, ``"prod"`` or
            ``"logsumexp"``.

    Returns:
        One row per segment. An empty segment gives 0, and 1 for ``"prod"``.

    Shapes:
        x: ``[N, *]``; index: ``[N]`` int64; ptr: ``[B + 1]`` int64; returns
        ``[B, *]``.

    Raises:
        ValueError: If the reduction is unknown or the index does not fit ``x``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels import segment_reduce
        >>> x = torch.tensor([1.0, 5.0, 3.0])
        >>> segment_reduce(x, torch.tensor([2, 0, 2]), dim_size=4, reduce="max")
        tensor([5., 0., 3., 0.])
    """
    check_choice("segment_reduce", "reduce", reduce, REDUCES)
    index, dim_size = segment_index("segment_reduce", x, index, ptr, dim_size)
    wide = accumulator(x)
    word = "sum" if reduce == "mean" else reduce
    name = chosen("segment_reduce", x, index) if _is_known(x, reduce) else None
    if name is not None:
        given = wide if reduce == "mean" else x
        out = segment_chosen.reduce_by(name, given, index, dim_size, word)
    else:
        run = _compiled if _has_twin(wide, index, reduce) else native_reduce
        out = run(wide, index, dim_size, word)
    if reduce == "mean":
        count = segment_count(index, dim_size).clamp(min=1).to(wide.dtype)
        out = out / count.view([-1] + [1] * (x.dim() - 1))
    return out.to(x.dtype)


def _is_known(x: Tensor, reduce: str) -> bool:
    """Whether backends chosen by name know the reduction."""
    if is_traced():  # sizes may be symbols that no guard should tie down
        return False
    return reduce in TWINS and x.is_floating_point() and 0 not in x.shape


def _has_twin(x: Tensor, index: Tensor, reduce: str) -> bool:
    """Whether the compiled CPU twin takes the rows."""
    kinds = TWINS.get(reduce, ())
    if is_traced() or x.dtype not in kinds or x.size(0) >= 2**31:
        return False
    return runs_numba("segment_reduce", x.numel(), x, index)


def _compiled(x: Tensor, index: Tensor, size: int, reduce: str) -> Tensor:
    """A reduction in the compiled CPU twin."""
    twin.check_range("segment_reduce", index, size)
    rows = x.reshape(x.size(0), math.prod(x.shape[1:]))
    if reduce == "sum":
        out = twin.sums(rows, index, size)
    elif reduce == "logsumexp":
        out = twin.logsumexp(rows, index, size, native_logsumexp)
    else:
        out = twin.extremes(rows, index, size, reduce)[0]
    return out.view(size, *x.shape[1:])


def segment_extreme(
    x: Tensor,
    index: OptTensor = None,
    ptr: OptTensor = None,
    dim_size: int | None = None,
    reduce: Extreme = "max",
) -> tuple[Tensor, Tensor]:
    """Largest or smallest entry of each segment and column, and the row that holds it.

    Args:
        x: Rows.
        index: Segment of each row, in any order.
        ptr: Offsets of contiguous segments, instead of ``index``.
        dim_size: Number of segments.
        reduce: ``"max"`` or ``"min"``.

    Returns:
        Values as :func:`segment_reduce` gives them, and rows: the lowest among ties,
        the lowest with NaN where there is one, N where a segment is empty.

    Shapes:
        x: ``[N, *]``; index: ``[N]``; ptr: ``[B + 1]``; returns ``[B, *]`` twice, the
        second int64.

    Raises:
        ValueError: If the reduction is unknown or the index does not fit ``x``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels import segment_extreme
        >>> segment_extreme(torch.tensor([1.0, 5.0, 5.0]), torch.tensor([0, 1, 1]))
        (tensor([1., 5.]), tensor([0, 1]))
    """
    check_choice("segment_extreme", "reduce", reduce, ("max", "min"))
    index, size = segment_index("segment_extreme", x, index, ptr, dim_size)
    wide = accumulator(x)
    if not _has_twin(wide, index, reduce):
        best, row = native_extreme(wide, index, size, reduce, with_rows=True)
        return best.to(x.dtype), row.long()
    twin.check_range("segment_extreme", index, size)
    rows = wide.reshape(x.size(0), math.prod(x.shape[1:]))
    best, row = twin.extremes(rows, index, size, reduce)
    shape = [size, *x.shape[1:]]
    return best.view(shape).to(x.dtype), row.view(shape).long()


def segment_softmax(
    scores: Tensor,
    index: OptTensor = None,
    ptr: OptTensor = None,
    dim_size: int | None = None,
) -> Tensor:
    """Softmax of the scores over the rows of each segment.

    Args:
        scores: Scores, one row per element.
        index: Segment of each row, in any order.
        ptr: Offsets of contiguous segments, instead of ``index``.
        dim_size: Number of segments.

    Returns:
        Positive weights that sum to 1 over each non-empty segment and column; zeros
        where all scores of a segment are ``-inf``.

    Shapes:
        scores: ``[N, *]``; index: ``[N]``; ptr: ``[B + 1]``; returns ``[N, *]``.

    Raises:
        ValueError: If the index does not fit the scores.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels import segment_softmax
        >>> segment_softmax(torch.zeros(3), torch.tensor([0, 0, 1]))
        tensor([0.5000, 0.5000, 1.0000])
    """
    index, dim_size = segment_index("segment_softmax", scores, index, ptr, dim_size)
    name = chosen("segment_softmax", scores, index) if scores.numel() > 0 else None
    if name is not None:
        out = segment_chosen.softmax_by(name, scores, index, dim_size)
        return out.to(scores.dtype)
    wide = accumulator(scores)
    is_single = wide.dtype == torch.float32
    if is_single and runs_numba("segment_softmax", scores.numel(), scores, index):
        twin.check_range("segment_softmax", index, dim_size)
        rows = wide.reshape(scores.size(0), math.prod(scores.shape[1:]))
        out = twin.softmax(rows, index, dim_size, native_softmax)
        return out.view_as(scores).to(scores.dtype)
    return native_softmax(wide, index, dim_size).to(scores.dtype)


def segment_index(
    owner: str, x: Tensor, index: OptTensor, ptr: OptTensor, dim_size: int | None
) -> tuple[Tensor, int]:
    """Returns the segment of each row and the number of segments."""
    if x.dim() == 0:
        raise ValueError(
            f"{owner} got a scalar, expected one row per element; unsqueeze it first."
        )
    if index is None:
        if ptr is not None:
            return _index_from_ptr(owner, x, ptr, dim_size), ptr.numel() - 1
        index = torch.zeros(x.size(0), dtype=torch.long, device=x.device)
        return index, 1 if dim_size is None else dim_size
    if type(index) is not Tensor and hasattr(index, "as_tensor"):
        index = index.as_tensor()  # PyG's Index
    if index.dim() != 1 or index.size(0) != x.size(0):
        raise ValueError(
            f"{owner} got index of shape {list(index.shape)} for {x.size(0)} rows, "
            f"expected [{x.size(0)}]; give one segment per row."
        )
    if dim_size is None:
        dim_size = int(index.max()) + 1 if index.numel() > 0 else 0
    return index.long(), dim_size


def _index_from_ptr(owner: str, x: Tensor, ptr: Tensor, dim_size: int | None) -> Tensor:
    """The index that belongs to offsets."""
    if ptr.dim() != 1 or ptr.numel() == 0:
        raise ValueError(
            f"{owner} got ptr of shape {list(ptr.shape)}, expected [num_segments + 1]; "
            f"start it with 0 and end it with the number of rows."
        )
    if dim_size is not None and dim_size != ptr.numel() - 1:
        raise ValueError(
            f"{owner} got dim_size={dim_size} and ptr with {ptr.numel()} offsets, "
            f"expected {dim_size + 1} offsets; leave dim_size out when ptr is given."
        )
    ids = torch.arange(ptr.numel() - 1, device=x.device)
    count = ptr[1:] - ptr[:-1]
    if reads_values(ptr):
        first, last = int(ptr[0]), int(ptr[-1])
        if first != 0 or last != x.size(0) or bool((count < 0).any()):
            raise ValueError(
                f"{owner} got ptr from {first} to {last} for {x.size(0)} rows, "
                f"expected ascending offsets from 0 to {x.size(0)}; pass the offsets "
                f"of all segments."
            )
    return torch.repeat_interleave(ids, count, output_size=x.size(0))
