"""The way from the segment doors to the compiled CPU twin, with closed-form gradients.

Each door is one step of autograd. Nothing of the size of the input is kept but the
input itself (and the weights of a softmax). Second derivatives go through the native
formulas. Rows are ``[N, F]``, contiguous, and a result is in the type of the rows.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.threads import shared
from pyg_pool.typing import OptTensor

__all__ = [
    "check_range", "extremes", "logsumexp", "powers_of", "softmax", "softmax_slope",
    "sums", "typed", "weights_of",
]  # fmt: skip

Native = Callable[[Tensor, Tensor, int], Tensor]


def typed(kernel: Any, x: Tensor) -> Any:
    """A kernel for the type of the rows."""
    return kernel.double if x.dtype == torch.float64 else kernel.single


def check_range(owner: str, index: Tensor, size: int) -> None:
    """Raises ``IndexError`` for a row outside all segments: kernels do not look."""
    from pyg_pool.kernels import segment_numba

    if segment_numba.is_outside.single(index.numel(), size, index.data_ptr()):
        raise IndexError(
            f"{owner} got segments from {int(index.min())} to {int(index.max())} with "
            f"dim_size={size}, expected 0 to {size - 1}; raise dim_size or mend index."
        )


def sums(x: Tensor, index: Tensor, size: int, *, mean: bool = False) -> Tensor:
    """Sums or means of rows per segment."""
    out: Tensor = _Sum.apply(x, index, size, mean)
    return out


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, size: int, mean: bool) -> Tensor:
        from pyg_pool.kernels import segment_numba as twin

        (rows, width), ids = x.shape, index.data_ptr()
        out = torch.empty((size, width), dtype=x.dtype)
        count = torch.empty(size if mean else 0, dtype=torch.int64)
        if mean:
            twin.counts.single(rows, size, ids, count.data_ptr())
        shared(
            typed(twin.sums, x), width, x.numel(), rows, width, size, x.data_ptr(),
            ids, mean, count.data_ptr(), out.data_ptr(),
        )  # fmt: skip
        ctx.save_for_backward(index, count)
        ctx.mean = mean
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, ...]:
        index, count = ctx.saved_tensors
        if torch.is_grad_enabled():  # operations that can be differentiated again
            if ctx.mean:
                grad = grad / count.clamp(min=1).to(grad.dtype).unsqueeze(1)
            return grad.index_select(0, index), None, None, None
        from pyg_pool.kernels import segment_numba as twin

        grad = grad.contiguous()
        rows, width = index.numel(), grad.size(1)
        out = torch.empty((rows, width), dtype=grad.dtype)
        shared(
            typed(twin.spread, grad), rows, rows * width, width, grad.data_ptr(),
            index.data_ptr(), ctx.mean, count.data_ptr(), out.data_ptr(),
        )  # fmt: skip
        return out, None, None, None


def extremes(x: Tensor, index: Tensor, size: int, reduce: str) -> tuple[Tensor, Tensor]:
    """Maxima or minima per segment and the lowest row with each, int32."""
    arg = torch.empty((size, x.size(1)), dtype=torch.int32)
    out: Tensor = _Extreme.apply(x, index, arg, 1.0 if reduce == "max" else -1.0)
    return out, arg


class _Extreme(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, arg: Tensor, sign: float) -> Tensor:
        from pyg_pool.kernels import segment_numba as twin

        (rows, width), size = x.shape, arg.size(0)
        best = torch.empty((size, width), dtype=x.dtype)
        shared(
            typed(twin.extremes, x), width, x.numel(), rows, width, size, sign,
            x.data_ptr(), index.data_ptr(), best.data_ptr(), arg.data_ptr(),
        )  # fmt: skip
        ctx.num_rows, ctx.arg = rows, arg
        return best

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, ...]:
        arg, rows = ctx.arg, ctx.num_rows
        if torch.is_grad_enabled():  # an operation that can be differentiated again
            out = grad.new_zeros(rows + 1, grad.size(1))
            return out.scatter(0, arg.long(), grad)[:-1], None, None, None
        from pyg_pool.kernels import segment_numba as twin

        grad = grad.contiguous()
        size, width = grad.shape
        pages = fresh_pages(rows, grad)
        out = torch.empty((rows, width), dtype=grad.dtype) if pages is None else pages
        shared(
            typed(twin.send_back, grad), rows, rows * width, rows, width, size,
            grad.data_ptr(), arg.data_ptr(), pages is not None, out.data_ptr(),
        )  # fmt: skip
        return out, None, None, None


def fresh_pages(num_rows: int, like: Tensor) -> OptTensor:
    """Zeros ``[num_rows, F]`` where few are written, at most the entries of ``like``.

    They are fresh pages of the system: the untouched ones take neither time nor
    memory. ``None`` where that does not pay.
    """
    length = num_rows * like.size(1) * like.element_size()
    if 2 * like.numel() * mmap.PAGESIZE >= length or not hasattr(mmap, "MAP_PRIVATE"):
        return None
    pages = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return torch.frombuffer(pages, dtype=like.dtype).view(num_rows, -1)


def powers_of(x: Tensor, index: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Largest entries and sums of exponentials relative to these, ``[B, F]``."""
    from pyg_pool.kernels import segment_numba as twin

    rows, width = x.shape
    top, total = torch.empty((size, width)), torch.empty((size, width))
    shared(
        twin.powers.single, width, x.numel(), rows, width, size, x.data_ptr(),
        index.data_ptr(), top.data_ptr(), total.data_ptr(),
    )  # fmt: skip
    return top, total


def weights_of(
    x: Tensor, index: Tensor, top: Tensor, total: Tensor, grad: OptTensor = None
) -> Tensor:
    """Exponentials over their sums, times the gradient of the segment if given."""
    from pyg_pool.kernels import segment_numba as twin

    rows, width = x.shape
    out = torch.empty((rows, width))
    scale = top if grad is None else grad.contiguous()
    shared(
        twin.weights.single, rows, x.numel(), width, x.data_ptr(), index.data_ptr(),
        top.data_ptr(), total.data_ptr(), grad is not None, scale.data_ptr(),
        out.data_ptr(),
    )  # fmt: skip
    return out


def again(native: Native, x: Tensor, index: Tensor, size: int, grad: Tensor) -> Tensor:
    """The gradient by the native formula, which can be differentiated again."""
    out = native(x, index, size)
    return torch.autograd.grad(out, x, grad, create_graph=True)[0]


def logsumexp(x: Tensor, index: Tensor, size: int, native: Native) -> Tensor:
    """Logarithm of the sum of exponentials per segment, 0 for an empty one."""
    out: Tensor = _LogSumExp.apply(x, index, size, native)
    return out


class _LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, index: Tensor, size: int, native: Native
    ) -> Tensor:
        top, total = powers_of(x, index, size)
        ctx.options = size, native
        ctx.save_for_backward(x, index, top, total)
        log_total = total.log()
        # Of infinite entries only, the exponentials say nothing; NaN they do keep.
        is_still = top.isinf() & ~log_total.isnan()
        out = torch.where(is_still, top, log_total + top)
        is_empty = (counts(index, size) == 0).unsqueeze(1)
        return out.masked_fill(is_empty, 0.0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, ...]:
        x, index, top, total = ctx.saved_tensors
        if torch.is_grad_enabled():
            size, native = ctx.options
            return again(native, x, index, size, grad), None, None, None
        return weights_of(x, index, top, total, grad), None, None, None


def counts(index: Tensor, size: int) -> Tensor:
    """Number of rows of each segment."""
    from pyg_pool.kernels import segment_numba

    out = torch.empty(size, dtype=torch.int64)
    segment_numba.counts.single(index.numel(), size, index.data_ptr(), out.data_ptr())
    return out


def softmax(x: Tensor, index: Tensor, size: int, native: Native) -> Tensor:
    """Softmax over the rows of each segment."""
    out: Tensor = _Softmax.apply(x, index, size, native)
    return out


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, index: Tensor, size: int, native: Native
    ) -> Tensor:
        out = weights_of(x, index, *powers_of(x, index, size))
        ctx.options = size, native
        ctx.save_for_backward(x, index, out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, ...]:
        x, index, weight = ctx.saved_tensors
        size, native = ctx.options
        if torch.is_grad_enabled():
            return again(native, x, index, size, grad), None, None, None
        return softmax_slope(weight, grad.contiguous(), index, size), None, None, None


def softmax_slope(weight: Tensor, grad: Tensor, index: Tensor, size: int) -> Tensor:
    """Gradient of a softmax, given its result."""
    from pyg_pool.kernels import segment_numba as twin

    rows, width = weight.shape
    inner, out = torch.empty((size, width)), torch.empty((rows, width))
    w, g, ids = weight.data_ptr(), grad.data_ptr(), index.data_ptr()
    shared(
        twin.products.single, width, rows * width, rows, width, size, w, g, ids,
        inner.data_ptr(),
    )  # fmt: skip
    shared(
        twin.slopes.single, rows, rows * width, width, w, g, ids, inner.data_ptr(),
        out.data_ptr(),
    )  # fmt: skip
    return out
