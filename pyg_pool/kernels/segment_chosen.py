"""Segment reductions by the backends that run only when chosen by name.

torch-scatter passes over NaN in maxima and minima; all else is the same everywhere.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.dispatch import peer
from pyg_pool.kernels.segment_native import accumulator, segment_count

__all__ = ["attention_by", "reduce_by", "softmax_by"]


def _rows(x: Tensor) -> Tensor:
    """``[N, *]`` as a matrix."""
    return x.reshape(x.size(0), math.prod(x.shape[1:]))


def reduce_by(name: str, x: Tensor, index: Tensor, size: int, reduce: str) -> Tensor:
    """A sum, max, min or logsumexp per segment, in the type that sums are held in."""
    rows = _rows(x)
    out = _triton(rows, index, size, reduce) if name == "triton" else None
    if out is None:
        out = _torch_scatter(accumulator(rows), index, size, reduce)
    return out.view(size, *x.shape[1:])


def _triton(x: Tensor, index: Tensor, size: int, reduce: str) -> Tensor:
    from pyg_pool.kernels import segment_triton as twin

    if reduce == "sum":
        out: Tensor = twin.sums(x, index, size)
    elif reduce == "logsumexp":
        out = twin.logsumexp(x, index, size)
    else:
        out = twin.extremes(x, index, size, 1 if reduce == "max" else -1)[0]
    return out


def _torch_scatter(x: Tensor, index: Tensor, size: int, reduce: str) -> Tensor:
    package = peer("torch_scatter")
    if reduce in ("max", "min"):
        run: Any = getattr(package, f"scatter_{reduce}")
        best: Tensor = run(x, index, 0, dim_size=size)[0]
        return best
    if reduce == "sum":
        total: Tensor = package.scatter_sum(x, index, 0, dim_size=size)
        return total
    # Its own logsumexp adds a small number; with the maximum taken off here, a sum
    # of exponentials will do.
    top = package.scatter_max(x.detach(), index, 0, dim_size=size)[0]
    top = top.masked_fill(top.abs() == torch.inf, 0.0)
    power = (x - top.index_select(0, index)).exp()
    total = package.scatter_sum(power, index, 0, dim_size=size)
    empty = (segment_count(index, size) == 0).unsqueeze(1)
    return total.masked_fill(empty, 1.0).log() + top


def softmax_by(name: str, scores: Tensor, index: Tensor, size: int) -> Tensor:
    """Softmax over the rows of each segment."""
    rows = _rows(scores)
    if name == "triton":
        from pyg_pool.kernels import segment_triton

        out: Tensor = segment_triton.softmax(rows, index, size)
    else:
        wide = accumulator(rows)
        package = peer("torch_scatter")
        top = package.scatter_max(wide.detach(), index, 0, dim_size=size)[0]
        top = top.masked_fill(top == -torch.inf, 0.0)
        power = (wide - top.index_select(0, index)).exp()
        total = package.scatter_sum(power, index, 0, dim_size=size)
        out = power / total.masked_fill(total == 0, 1.0).index_select(0, index)
    return out.view_as(scores)


def attention_by(
    scores: Tensor, values: Tensor, index: Tensor, size: int, heads: int
) -> Tensor:
    """Softmax-weighted sums in Triton."""
    from pyg_pool.kernels import segment_attention_triton as twin

    flat = _rows(values)
    depth = flat.size(1) // max(1, heads)
    rows = scores.reshape(values.size(0), heads)
    out: Tensor = twin.attention(rows, flat, index, size, depth)[0]
    return out.view(size, *values.shape[1:])
