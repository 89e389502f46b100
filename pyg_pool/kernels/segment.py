"""Reductions of rows into segments, given by an index or by offsets.

Every function takes the segments in any order, any rank, and empty ones. Half
precision is accumulated in float32. Maxima send their gradient to the lowest row
among ties, on every device.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_pool.errors import check_choice, reads_values
from pyg_pool.typing import OptTensor, SegmentReduce

__all__ = ["segment_reduce", "segment_softmax"]

REDUCES = ("sum", "mean", "max", "min", "prod", "logsumexp")


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
    wide = _accumulator(x)
    if reduce == "sum":
        out = _sum(wide, index, dim_size)
    elif reduce == "mean":
        out = _sum(wide, index, dim_size)
        count = segment_count(index, dim_size).clamp(min=1).to(wide.dtype)
        out = out / count.view([-1] + [1] * (x.dim() - 1))
    elif reduce in ("max", "min"):
        out = _extreme(wide, index, dim_size, reduce)
    elif reduce == "prod":
        spread = _spread(index, wide)
        out = wide.new_ones([dim_size, *x.shape[1:]])
        out = out.scatter_reduce(0, spread, wide, "prod")
    else:
        out = _logsumexp(wide, index, dim_size)
    return out.to(x.dtype)


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
    wide = _accumulator(scores)
    top = _extreme(wide.detach(), index, dim_size, "max")
    # A segment of -inf only: subtracting its maximum would give NaN.
    top = top.masked_fill(top == -torch.inf, 0.0)
    power = (wide - top.index_select(0, index)).exp()
    total = _sum(power, index, dim_size)
    total = total.masked_fill(total == 0, 1.0)
    return (power / total.index_select(0, index)).to(scores.dtype)


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


def segment_count(index: Tensor, dim_size: int) -> Tensor:
    """Number of rows of each segment, ``[B]`` int64."""
    ones = torch.ones_like(index)
    return index.new_zeros(dim_size).scatter_add_(0, index, ones)


def _accumulator(x: Tensor) -> Tensor:
    """The rows in the type that sums are held in."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _spread(index: Tensor, x: Tensor) -> Tensor:
    """The index with one entry per element of ``x``, without copying."""
    return index.view([-1] + [1] * (x.dim() - 1)).expand_as(x)


def _sum(x: Tensor, index: Tensor, dim_size: int) -> Tensor:
    out = x.new_zeros([dim_size, *x.shape[1:]])
    return out.scatter_add(0, _spread(index, x), x)


def _extreme(x: Tensor, index: Tensor, dim_size: int, reduce: str) -> Tensor:
    """Maximum or minimum, differentiable in the lowest row that attains it."""
    spread = _spread(index, x)
    plain = x.detach()
    best = plain.new_zeros([dim_size, *x.shape[1:]]).scatter_reduce(
        0, spread, plain, f"a{reduce}", include_self=False
    )
    if not (x.requires_grad and torch.is_grad_enabled()):
        return best
    hit = (plain == best.index_select(0, index)) | plain.isnan()
    rows = torch.arange(x.size(0), dtype=torch.int32, device=x.device)
    rows = rows.view([-1] + [1] * (x.dim() - 1)).expand_as(x)
    rows = rows.masked_fill(~hit, x.size(0))
    first = rows.new_full(best.shape, x.size(0)).scatter_reduce(0, spread, rows, "amin")
    filled = torch.cat([x, x.new_zeros([1, *x.shape[1:]])])
    return filled.gather(0, first.long())


def _logsumexp(x: Tensor, index: Tensor, dim_size: int) -> Tensor:
    top = _extreme(x.detach(), index, dim_size, "max")
    top = top.masked_fill(top.abs() == torch.inf, 0.0)
    total = _sum((x - top.index_select(0, index)).exp(), index, dim_size)
    empty = (segment_count(index, dim_size) == 0).view([-1] + [1] * (x.dim() - 1))
    # An empty segment is 0, the log(1) + 0 of a constant.
    return total.masked_fill(empty, 1.0).log() + top
