"""The way from softmax and logsumexp to the compiled CPU twin; see ``segment_twin.py``.

A softmax keeps its result for the way back, a logsumexp two numbers per segment.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.segment_twin import counts, guarded, refuse, step_of
from pyg_pool.kernels.threads import shared
from pyg_pool.typing import OptTensor

__all__ = [
    "logsumexp", "powers_of", "softmax", "softmax_of", "softmax_slope", "weights_of",
]  # fmt: skip

Native = Callable[[Tensor, Tensor, int], Tensor]


@functools.cache
def room() -> Any:
    """The kernels of the softmax; loaded when the first is needed."""
    from pyg_pool.kernels import softmax_numba

    return softmax_numba


def powers_of(x: Tensor, index: Tensor, size: int, owner: str) -> tuple[Tensor, Tensor]:
    """Largest entries and sums of exponentials relative to these, ``[B, F]``."""
    rows, width = x.shape
    top, total = torch.empty((size, width)), torch.empty((size, width))
    guarded(
        owner, index, size, room().powers.single, width, rows * width, rows,
        width, size, x.data_ptr(), index.data_ptr(), top.data_ptr(), total.data_ptr(),
    )  # fmt: skip
    return top, total


def weights_of(
    x: Tensor, index: Tensor, top: Tensor, total: Tensor, grad: OptTensor = None
) -> Tensor:
    """Exponentials over their sums, times the gradient of the segment if given."""
    rows, width = x.shape
    out = torch.empty((rows, width))
    scale = top if grad is None else grad.contiguous()
    shared(
        room().weights.single, rows, rows * width, width, x.data_ptr(),
        index.data_ptr(), top.data_ptr(), total.data_ptr(), grad is not None,
        scale.data_ptr(), out.data_ptr(),
    )  # fmt: skip
    return out


def softmax_of(x: Tensor, index: Tensor, size: int, owner: str) -> Tensor:
    """Softmax over the rows of each segment, without a gradient."""
    if x.size(1) != 1:
        return weights_of(x, index, *powers_of(x, index, size, owner))
    out, spare = torch.empty((x.size(0), 1)), torch.empty(2 * size)
    top = spare.data_ptr()
    if room().column.single(
        x.size(0), size, x.data_ptr(), index.data_ptr(), top, top + 4 * size,
        out.data_ptr(),
    ):  # fmt: skip
        refuse(owner, index, size)
    return out


def again(native: Native, x: Tensor, index: Tensor, size: int, grad: Tensor) -> Tensor:
    """The gradient by the native formula, which can be differentiated again."""
    out = native(x, index, size)
    return torch.autograd.grad(out, x, grad, create_graph=True)[0]


def logsumexp(
    x: Tensor, index: Tensor, size: int, native: Native, owner: str
) -> Tensor:
    """Logarithm of the sum of exponentials per segment, 0 for an empty one."""
    out: Tensor = _logsumexp(x, index, size, native, owner)
    return out


class _LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, index: Tensor, size: int, native: Native, owner: str
    ) -> Tensor:
        top, total = powers_of(x, index, size, owner)
        ctx.options = size, native
        ctx.save_for_backward(x, index, top, total)
        log_total = total.log()
        # Of infinite entries only, the exponentials say nothing; NaN they do keep.
        is_still = top.isinf() & ~log_total.isnan()
        out = torch.where(is_still, top, log_total + top)
        is_empty = (counts(owner, index, size) == 0).unsqueeze(1)
        return out.masked_fill(is_empty, 0.0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, ...]:
        x, index, top, total = ctx.saved_tensors
        if torch.is_grad_enabled():
            size, native = ctx.options
            return again(native, x, index, size, grad), None, None, None, None
        return weights_of(x, index, top, total, grad), None, None, None, None


_logsumexp = step_of(_LogSumExp)


def softmax(x: Tensor, index: Tensor, size: int, native: Native, owner: str) -> Tensor:
    """Softmax over the rows of each segment."""
    out: Tensor = _softmax(x, index, size, native, owner)
    return out


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, index: Tensor, size: int, native: Native, owner: str
    ) -> Tensor:
        out = softmax_of(x, index, size, owner)
        ctx.options = size, native
        ctx.save_for_backward(x, index, out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, ...]:
        x, index, weight = ctx.saved_tensors
        size, native = ctx.options
        if torch.is_grad_enabled():
            return again(native, x, index, size, grad), None, None, None, None
        slope = softmax_slope(weight, grad.contiguous(), index, size)
        return slope, None, None, None, None


_softmax = step_of(_Softmax)


def softmax_slope(weight: Tensor, grad: Tensor, index: Tensor, size: int) -> Tensor:
    """Gradient of a softmax, given its result."""
    rows, width = weight.shape
    inner, out = torch.empty((size, width)), torch.empty((rows, width))
    w, g, ids = weight.data_ptr(), grad.data_ptr(), index.data_ptr()
    kernels, length = room(), rows * width
    shared(
        kernels.products.single, width, length, rows, width, size, w, g, ids,
        inner.data_ptr(),
    )  # fmt: skip
    shared(
        kernels.slopes.single, rows, length, width, w, g, ids, inner.data_ptr(),
        out.data_ptr(),
    )  # fmt: skip
    return out
