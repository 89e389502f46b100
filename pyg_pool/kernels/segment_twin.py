"""The way from the segment doors to the compiled CPU twin, with closed-form gradients.

Each door is one step of autograd and keeps nothing of the size of the input. Second
derivatives go through torch's operations. Rows are ``[N, F]``, contiguous, and a result
is in the type of the rows.
"""

from __future__ import annotations

import functools
import mmap
from typing import Any, NoReturn

import torch
from torch import Tensor

from pyg_pool.kernels import threads
from pyg_pool.kernels.threads import shared
from pyg_pool.typing import OptTensor

__all__ = [
    "counts", "extremes", "guarded", "is_one_span", "refuse", "room", "step_of",
    "sums", "typed",
]  # fmt: skip


@functools.cache
def room() -> Any:
    """The kernels; loaded when the first is needed."""
    from pyg_pool.kernels import segment_numba

    return segment_numba


def typed(kernel: Any, x: Tensor) -> Any:
    """A kernel for the type of the rows."""
    return kernel.double if x.dtype is torch.float64 else kernel.single


def step_of(function: type[torch.autograd.Function]) -> Any:
    """The ``apply`` of a step of autograd without what it does for torch.func.

    Doors send that elsewhere; small inputs spend more time on it than on the work.
    """
    return super(torch.autograd.Function, function).apply  # type: ignore[misc]


def is_one_span(elements: int) -> bool:
    """Whether one call of a kernel does all of so much work."""
    return elements < threads.PARALLEL_FROM or torch.get_num_threads() == 1


def guarded(
    owner: str, index: Tensor, size: int, kernel: Any, length: int, elements: int,
    *args: Any,
) -> None:  # fmt: skip
    """Calls a kernel in threads, as :func:`shared`, that returns 1 for a wrong index.

    Raises:
        IndexError: If it does so: a row is outside all segments.
    """
    if is_one_span(elements):
        if kernel(0, length, *args):
            refuse(owner, index, size)
        return
    codes: list[int] = []
    shared(lambda *span: codes.append(kernel(*span)), length, elements, *args)
    if any(codes):
        refuse(owner, index, size)


def refuse(owner: str, index: Tensor, size: int) -> NoReturn:
    """Raises ``IndexError``: some row is outside all segments."""
    raise IndexError(
        f"{owner} got segments from {int(index.min())} to {int(index.max())} with "
        f"dim_size={size}, expected 0 to {size - 1}; raise dim_size or mend index."
    )


def counts(owner: str, index: Tensor, size: int) -> Tensor:
    """Number of rows of each segment."""
    out = torch.empty(size, dtype=torch.int64)
    args = index.numel(), size, index.data_ptr(), out.data_ptr()
    if room().counts.single(*args):
        refuse(owner, index, size)
    return out


def sums(x: Tensor, index: Tensor, size: int, *, mean: bool, owner: str) -> Tensor:
    """Sums or means of rows per segment."""
    out: Tensor = _sum(x, index, size, mean, owner)
    return out


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, index: Tensor, size: int, mean: bool, owner: str
    ) -> Tensor:
        rows, width = x.shape
        out = torch.empty((size, width), dtype=x.dtype)
        count = counts(owner, index, size) if mean else None
        guarded(
            owner, index, size, typed(room().sums, x), width, rows * width, rows,
            width, size, x.data_ptr(), index.data_ptr(), mean,
            count.data_ptr() if count is not None else 0, out.data_ptr(),
        )  # fmt: skip
        ctx.kept = index, count
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, ...]:
        index, count = ctx.kept
        if torch.is_grad_enabled():  # operations that can be differentiated again
            if count is not None:
                grad = grad / count.clamp(min=1).to(grad.dtype).unsqueeze(1)
            return grad.index_select(0, index), None, None, None, None
        grad = grad.contiguous()
        rows, width = index.numel(), grad.size(1)
        out = torch.empty((rows, width), dtype=grad.dtype)
        shared(
            typed(room().spread, grad), rows, rows * width, width, grad.data_ptr(),
            index.data_ptr(), count is not None,
            count.data_ptr() if count is not None else 0, out.data_ptr(),
        )  # fmt: skip
        return out, None, None, None, None


_sum = step_of(_Sum)


def extremes(
    x: Tensor, index: Tensor, size: int, reduce: str, owner: str
) -> tuple[Tensor, Tensor]:
    """Maxima or minima per segment and the lowest row with each, int32."""
    arg = torch.empty((size, x.size(1)), dtype=torch.int32)
    out: Tensor = _extreme(x, index, arg, 1.0 if reduce == "max" else -1.0, owner)
    return out, arg


class _Extreme(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, index: Tensor, arg: Tensor, sign: float, owner: str
    ) -> Tensor:
        (rows, width), size = x.shape, arg.size(0)
        best = torch.empty((size, width), dtype=x.dtype)
        guarded(
            owner, index, size, typed(room().extremes, x), width, rows * width, rows,
            width, size, sign, x.data_ptr(), index.data_ptr(), best.data_ptr(),
            arg.data_ptr(),
        )  # fmt: skip
        ctx.kept = rows, arg
        return best

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, ...]:
        rows, arg = ctx.kept
        if torch.is_grad_enabled():  # an operation that can be differentiated again
            out = grad.new_zeros(rows + 1, grad.size(1))
            out = out.scatter(0, arg.long(), grad)[:-1]
            return out, None, None, None, None
        grad = grad.contiguous()
        size, width = grad.shape
        pages = fresh_pages(rows, grad)
        out = torch.empty((rows, width), dtype=grad.dtype) if pages is None else pages
        shared(
            typed(room().send_back, grad), rows, rows * width, rows, width, size,
            grad.data_ptr(), arg.data_ptr(), pages is not None, out.data_ptr(),
        )  # fmt: skip
        return out, None, None, None, None


_extreme = step_of(_Extreme)


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
