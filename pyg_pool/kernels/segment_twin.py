"""The way from the segment doors to the compiled CPU twin, with closed-form gradients.

Nothing of the size of the input is kept but the input itself (and the weights of a
softmax). Second derivatives go through the native formulas.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.threads import LINE, run_spans, spans

__all__ = [
    "channel_spans", "check_range", "extremes", "logsumexp", "plain", "powers_of",
    "row_spans", "softmax", "sums",
]  # fmt: skip

Native = Callable[[Tensor, Tensor, int], Tensor]


def plain(x: Tensor) -> Any:
    """The array of a tensor, contiguous."""
    return x.detach().contiguous().numpy()


def check_range(owner: str, index: Tensor, size: int) -> None:
    """Raises ``IndexError`` for a row outside all segments: kernels do not look."""
    from pyg_pool.kernels import segment_numba

    if not segment_numba.in_range(index.numpy(), size):
        raise IndexError(
            f"{owner} got segments from {int(index.min())} to {int(index.max())} with "
            f"dim_size={size}, expected 0 to {size - 1}; raise dim_size or mend index."
        )


def channel_spans(x: Tensor) -> list[tuple[int, int]]:
    """Channels per thread."""
    return spans(x.size(1), x.numel(), step=LINE)


def row_spans(x: Tensor) -> list[tuple[int, int]]:
    """Rows per thread."""
    return spans(x.size(0), x.numel(), step=LINE)


def sums(x: Tensor, index: Tensor, size: int) -> Tensor:
    """Sums of the rows of ``[N, F]`` per segment, in the twin."""
    out: Tensor = _Sum.apply(x, index, size)
    return out


def _add(x: Tensor, index: Tensor, size: int) -> Tensor:
    from pyg_pool.kernels import segment_numba as twin

    out = x.new_zeros(size, x.size(1))
    rows, ids, sink = plain(x), index.numpy(), out.numpy()
    run_spans(lambda f, g: twin.add(rows, ids, f, g, sink), channel_spans(x))
    return out


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(index)
        return _add(x, index, size)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (index,) = ctx.saved_tensors
        return grad.index_select(0, index), None, None


def extremes(x: Tensor, index: Tensor, size: int, reduce: str) -> tuple[Tensor, Tensor]:
    """Maxima or minima of ``[N, F]`` per segment and the lowest row with each."""
    out: tuple[Tensor, Tensor] = _Extreme.apply(x, index, size, reduce)
    return out


class _Extreme(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, index: Tensor, size: int, reduce: str
    ) -> tuple[Tensor, Tensor]:
        from pyg_pool.kernels import segment_numba as twin

        best = x.new_zeros(size, x.size(1))
        arg = torch.full_like(best, x.size(0), dtype=torch.int32)
        rows, ids, values, where = plain(x), index.numpy(), best.numpy(), arg.numpy()
        sign = rows.dtype.type(1 if reduce == "max" else -1)
        run_spans(
            lambda f, g: twin.extremes(rows, ids, sign, f, g, values, where),
            channel_spans(x),
        )
        ctx.num_rows = x.size(0)
        ctx.save_for_backward(arg)
        ctx.mark_non_differentiable(arg)
        return best, arg

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor, None, None, None]:
        (arg,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # an operation that can be differentiated again
            out = grad.new_zeros(ctx.num_rows + 1, grad.size(1))
            return out.scatter(0, arg.long(), grad)[:-1], None, None, None
        from pyg_pool.kernels import segment_numba as twin

        out = sparse_zeros(ctx.num_rows, grad)
        up, where, down = plain(grad), arg.numpy(), out.numpy()
        run_spans(
            lambda f, g: twin.send_back(up, where, f, g, down), channel_spans(arg)
        )
        return out, None, None, None


def sparse_zeros(num_rows: int, like: Tensor) -> Tensor:
    """Zeros ``[num_rows, F]`` of which at most the entries of ``like`` are written.

    Where these are few, fresh pages of the system do: the untouched ones take neither
    time nor memory.
    """
    length = num_rows * like.size(1) * like.element_size()
    if 2 * like.numel() * mmap.PAGESIZE >= length or not hasattr(mmap, "MAP_PRIVATE"):
        return like.new_zeros(num_rows, like.size(1))
    pages = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return torch.frombuffer(pages, dtype=like.dtype).view(num_rows, -1)


def powers_of(x: Tensor, index: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Largest entries, what is taken off, and sums of exponentials, ``[B, F]``."""
    from pyg_pool.kernels import segment_numba as twin

    best = x.new_full((size, x.size(1)), -torch.inf)
    shift, total = torch.empty_like(best), torch.zeros_like(best)
    rows, ids, off, sink = plain(x), index.numpy(), shift.numpy(), total.numpy()
    top = best.numpy()
    run_spans(lambda f, g: twin.tops(rows, ids, f, g, top), channel_spans(x))
    twin.shifts(top, off)
    run_spans(
        lambda f, g: twin.add_powers(rows, ids, off, f, g, sink), channel_spans(x)
    )
    return best, shift, total


def weights_of(x: Tensor, index: Tensor, shift: Tensor, factor: Tensor) -> Tensor:
    """Exponentials of rows less their shift, times a factor."""
    from pyg_pool.kernels import segment_numba as twin

    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    args = plain(x), index.numpy(), shift.numpy(), factor.numpy()
    sink = out.numpy()
    run_spans(lambda i, j: twin.scaled_powers(*args, i, j, sink), row_spans(x))
    return out


def inverse(total: Tensor) -> Tensor:
    """1 / total, 1 where that is 0."""
    return total.masked_fill(total == 0, 1.0).reciprocal()


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
        best, shift, total = powers_of(x, index, size)
        ctx.options = size, native
        ctx.save_for_backward(x, index, shift, total)
        out = torch.where(best.abs() == torch.inf, best, total.log() + shift)
        is_empty = (best == -torch.inf) & (counts(index, size) == 0).unsqueeze(1)
        return out.masked_fill(is_empty, 0.0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        x, index, shift, total = ctx.saved_tensors
        if torch.is_grad_enabled():
            size, native = ctx.options
            return again(native, x, index, size, grad), None, None, None
        factor = (grad * inverse(total)).contiguous()
        return weights_of(x, index, shift, factor), None, None, None


def counts(index: Tensor, size: int) -> Tensor:
    """Number of rows of each segment."""
    from pyg_pool.kernels import segment_numba

    out = index.new_zeros(size)
    segment_numba.counts(index.numpy(), out.numpy())
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
        _, shift, total = powers_of(x, index, size)
        out = weights_of(x, index, shift, inverse(total))
        ctx.options = size, native
        ctx.save_for_backward(x, index, out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        x, index, weight = ctx.saved_tensors
        size, native = ctx.options
        if torch.is_grad_enabled():
            return again(native, x, index, size, grad), None, None, None
        return slope(weight, grad, index, size), None, None, None


def slope(
    weight: Tensor, grad: Tensor, index: Tensor, size: int, inner: Tensor | None = None
) -> Tensor:
    """Gradient of a softmax, given its result."""
    from pyg_pool.kernels import segment_numba as twin

    w, g, ids = weight.numpy(), plain(grad), index.numpy()
    if inner is None:
        inner = weight.new_zeros(size, weight.size(1))
        run = partial(twin.add_products, w, g, ids)
        sink = inner.numpy()
        run_spans(lambda f, h: run(f, h, sink), channel_spans(weight))
    out = torch.empty_like(weight)
    args = w, g, ids, inner.numpy()
    down = out.numpy()
    run_spans(lambda i, j: twin.softmax_slope(*args, i, j, down), row_spans(weight))
    return out
