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
from pyg_pool.kernels import segment_chosen, softmax_twin
from pyg_pool.kernels import segment_twin as twin
from pyg_pool.kernels.dispatch import (
    is_traced,
    route,
    route_untraced,
    runs_numba,
)
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
    if reduce not in REDUCES:
        check_choice("segment_reduce", "reduce", reduce, REDUCES)
    index, dim_size = segment_index("segment_reduce", x, index, ptr, dim_size)
    wide = accumulator(x)
    name = _route(x, wide, index, reduce)
    if name == "numba":
        out = _compiled(wide, index, dim_size, reduce)
    else:
        out = _reduced(name, x, wide, index, dim_size, reduce)
    return out if wide is x else out.to(x.dtype)


def _route(x: Tensor, wide: Tensor, index: Tensor, reduce: str) -> str | None:
    """The backend that takes the rows, ``None`` for native."""
    if reduce not in TWINS or is_traced():  # guards would tie down symbolic sizes
        return None
    rows = x.numel()
    has_twin = wide.dtype in TWINS[reduce] and x.size(0) < 2**31
    name = route_untraced("segment_reduce", rows, x, index, has_twin=has_twin)
    if name is None or name == "numba" or (x.is_floating_point() and rows > 0):
        return name
    return None


def _reduced(
    name: str | None, x: Tensor, wide: Tensor, index: Tensor, size: int, reduce: str
) -> Tensor:
    """A reduction in a backend chosen by name, or in torch's operations."""
    word = "sum" if reduce == "mean" else reduce
    if name is None:
        out = native_reduce(wide, index, size, word)
    else:
        given = wide if reduce == "mean" else x
        out = segment_chosen.reduce_by(name, given, index, size, word)
    if reduce == "mean":
        count = segment_count(index, size).clamp(min=1).to(wide.dtype)
        out = out / count.view([-1] + [1] * (x.dim() - 1))
    return out


def _compiled(x: Tensor, index: Tensor, size: int, reduce: str) -> Tensor:
    """A reduction in the compiled CPU twin."""
    rows, owner = flat_rows(x), "segment_reduce"
    if reduce in ("max", "min"):
        out = twin.extremes(rows, index, size, reduce, owner)[0]
    elif reduce == "logsumexp":
        out = softmax_twin.logsumexp(rows, index, size, native_logsumexp, owner)
    else:
        out = twin.sums(rows, index, size, mean=reduce == "mean", owner=owner)
    return out if x.dim() == 2 else out.view(size, *x.shape[1:])


def flat_rows(x: Tensor) -> Tensor:
    """``[N, *]`` as a contiguous matrix; one that is so already as it is."""
    if x.dim() != 2:
        x = x.reshape(x.size(0), math.prod(x.shape[1:]))
    return x.contiguous()


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
    fits = wide.dtype in DOUBLE and x.size(0) < 2**31
    if not (fits and runs_numba("segment_reduce", x.numel(), x, index)):
        best, row = native_extreme(wide, index, size, reduce, with_rows=True)
        return best.to(x.dtype), row.long()
    rows = flat_rows(wide)
    best, row = twin.extremes(rows, index, size, reduce, "segment_extreme")
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
    wide = accumulator(scores)
    is_single = wide.dtype == torch.float32
    name = route("segment_softmax", scores.numel(), scores, index, has_twin=is_single)
    if name == "numba":
        rows = flat_rows(wide)
        out = softmax_twin.softmax(
            rows, index, dim_size, native_softmax, "segment_softmax"
        )
        out = out if scores.dim() == 2 else out.view_as(scores)
    elif name is not None and scores.numel() > 0:
        out = segment_chosen.softmax_by(name, scores, index, dim_size)
    else:
        out = native_softmax(wide, index, dim_size)
    return out if wide is scores else out.to(scores.dtype)


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
    if index.dtype != torch.long:
        index = index.long()
    return index.contiguous(), dim_size


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
