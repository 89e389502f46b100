r"""Norms of segments with any exponent, in the log domain, with their gradients.

With :math:`v^*` the largest (p > 0) or smallest (p < 0) entry of a segment, all terms
:math:`a_i = p (\log v_i - \log v^*)` are at most 0, so nothing overflows, and the two
parts of the gradient with respect to p have the same sign, so nothing cancels.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch import Tensor

from pyg_pool.errors import check_choice
from pyg_pool.kernels.dispatch import chosen, route
from pyg_pool.kernels.pnorm_native import log_max, native_rows, native_sums
from pyg_pool.kernels.segment import flat_rows, segment_count, segment_index
from pyg_pool.kernels.segment_native import accumulator
from pyg_pool.kernels.segment_twin import counts, guarded, is_one_span, step_of
from pyg_pool.kernels.threads import shared
from pyg_pool.typing import OptTensor

__all__ = ["segment_pnorm"]

PARTS = ("abs", "pos", "neg")
# Within e^+-40 a plain product is more exact than the way through logarithms.
NEAR = 40.0

Exponent = float | Tensor


def segment_pnorm(
    x: Tensor,
    p: Exponent,
    q: Exponent,
    index: OptTensor = None,
    ptr: OptTensor = None,
    dim_size: int | None = None,
    *,
    eps: float = 0.0,
    part: str = "abs",
) -> Tensor:
    r"""Norms of the rows of each segment, for one exponent or several at once.

    .. math::
        y_{rsf} = n_s^{-q_{rf}} \Big( \sum_{i:\ \mathrm{index}_i = s}
        (\varphi(x_{if}) + \varepsilon)^{p_{rf}} \Big)^{1 / p_{rf}}

    Args:
        x: Rows; half precision is computed in float32.
        p: Exponent, not 0: a number, one per channel, or a matrix with one row per
            norm wanted.
        q: Exponent of the number of rows, likewise.
        index: Segment of each row, in any order.
        ptr: Offsets of contiguous segments, instead of ``index``.
        dim_size: Number of segments.
        eps: Added to every magnitude.
        part: What is taken of x: ``"abs"`` its magnitude, ``"pos"`` or ``"neg"`` the
            magnitude where x has that sign and 0 elsewhere.

    Returns:
        One row per segment, for matrices of exponents one per exponent and segment;
        at most a third of the largest number of the dtype. Empty segments give 0; so
        do, with ``eps=0``, segments with a zero where p < 0.

    Shapes:
        x: ``[N, *, F]``; p, q: ``[]``, ``[1]`` or ``[F]``; returns ``[B, *, F]``. Or
        x: ``[N, F]``; p, q: ``[R, 1]`` or ``[R, F]``; returns ``[R, B, F]``. index:
        ``[N]``; ptr: ``[B + 1]``.

    Raises:
        ValueError: If the part is unknown, p is the number 0, or the shapes do not
            fit.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels import segment_pnorm
        >>> x = torch.tensor([[3.0], [-4.0], [5.0]])
        >>> segment_pnorm(x, 2.0, 0.0, torch.tensor([0, 0, 1]))
        tensor([[5.],
                [5.]])
        >>> p, q = torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0], [0.0]])
        >>> segment_pnorm(x, p, q, torch.tensor([0, 0, 1]))[..., 0]
        tensor([[3.5000, 5.0000],
                [5.0000, 5.0000]])
    """
    if part not in PARTS:
        check_choice("segment_pnorm", "part", part, PARTS)
    wide = accumulator(x)
    index, dim_size = segment_index("segment_pnorm", x, index, ptr, dim_size)
    p, q, is_one = _exponents(x, wide, p, q)
    fits = wide.dtype == torch.float32 and x.size(0) < 2**31
    name = route("segment_pnorm", wide.numel(), wide, index, has_twin=fits)
    if name == "numba":
        out = _compiled(flat_rows(wide), p, q, index, dim_size, eps, part)
    else:
        rows = wide.reshape(x.size(0), math.prod(x.shape[1:]))
        p, q = (t.reshape(-1, t.size(-1)) if t.dim() else t.view(1, 1) for t in (p, q))
        run = _plain if torch.compiler.is_compiling() else _PNorm.apply
        out = run(rows, p, q, index, dim_size, eps, part)
    if is_one and not (name == "numba" and x.dim() == 2):
        out = out.view(dim_size, *x.shape[1:])
    return out if wide is x else out.to(x.dtype)


def _exponents(
    x: Tensor, wide: Tensor, p: Exponent, q: Exponent
) -> tuple[Tensor, Tensor, bool]:
    """Both exponents in one shape, and whether a single norm is wanted."""
    if x.dim() == 2 and isinstance(p, Tensor) and isinstance(q, Tensor):
        is_plain = p.dim() == 1 and p.shape == q.shape and p.size(0) in (1, x.size(1))
        is_plain = is_plain and p.dtype == q.dtype == wide.dtype
        if is_plain and p.device == q.device == x.device:
            return p, q, True
    like = {"dtype": wide.dtype, "device": x.device}
    both = [torch.as_tensor(value, **like) for value in (p, q)]  # type: ignore[arg-type]
    is_one = both[0].dim() < 2 and both[1].dim() < 2
    width = x.size(-1) if x.dim() > 1 else 1
    fits = is_one or x.dim() == 2
    for t in both:
        fits &= t.dim() <= 2 and (t.dim() == 0 or t.size(-1) in (1, width))
    if not fits or (not isinstance(p, Tensor) and p == 0):
        shapes = [list(t.shape) for t in both]
        number = "" if isinstance(p, Tensor) else f"={p}"
        raise ValueError(
            f"segment_pnorm got x of shape {list(x.shape)}, p{number} of shape "
            f"{shapes[0]} and q of shape {shapes[1]}, expected [N, F] with [R, 1] or "
            f"[R, F], or [N, *, F] with [], [1] or [F], and p not 0; view them in "
            f"these shapes."
        )
    first, second = both
    if first.shape != second.shape:
        first, second = torch.broadcast_tensors(first, second)
    if is_one and x.dim() > 2 and first.numel() > 1:
        repeats = math.prod(x.shape[1:-1])
        first, second = first.repeat(repeats), second.repeat(repeats)
    return first, second, is_one


class _PNorm(torch.autograd.Function):
    """The norms with their gradient in closed form; keeps x and results only."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, p: Tensor, q: Tensor, index: Tensor, size: int,
        eps: float, part: str,
    ) -> Tensor:  # fmt: skip
        ctx.options = size, eps, part
        ctx.is_triton = x.numel() > 0 and bool(chosen("segment_pnorm", x, p, index))
        run: Any = native_sums
        if ctx.is_triton:
            from pyg_pool.kernels import pnorm_triton

            run = pnorm_triton.norm_sums
        top, rest, moment = run(x, p, index, size, eps, part)
        scale, is_cut = _scale(top, rest, p, q, _log_count(index, size, x))
        out = _times(top, scale)
        is_still = is_cut | (top == 0)  # where nothing moves the norm
        ctx.save_for_backward(x, p, q, index, top, rest, moment, scale, is_still, out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, ...]:
        x, p, q, index, top, rest, moment, scale, is_still, out = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivatives are asked for
            return *_again(ctx, x, p, q, index, grad), None, None, None, None
        grad = grad.masked_fill(is_still, 0.0)
        per_log, log_sum = grad * out, rest.log1p()
        grad_p = per_log * (moment / (1 + rest) - log_sum) / (p * p).unsqueeze(1)
        grad_q = -per_log * _log_count(index, ctx.options[0], x)
        grad_x = None
        if ctx.needs_input_grad[0]:
            run: Any = native_rows
            if ctx.is_triton:
                from pyg_pool.kernels import pnorm_triton

                run = pnorm_triton.norm_rows
            grad_x = run(x, p, index, top, scale - log_sum, grad, *ctx.options[1:])
        return grad_x, _fold(grad_p, p), _fold(grad_q, q), None, None, None, None


def _fold(grad: Tensor, p: Tensor) -> Tensor:
    """Adds up ``[R, B, F]`` to the shape of the exponents."""
    return grad.sum(1) if p.size(1) == grad.size(2) else grad.sum((1, 2)).unsqueeze(1)


def _log_count(index: Tensor, size: int, x: Tensor) -> Tensor:
    """Logarithm of the number of rows per segment, 0 for none, ``[B, 1]``."""
    return segment_count(index, size).clamp(min=1).to(x.dtype).log().unsqueeze(1)


def _plain(
    x: Tensor, p: Tensor, q: Tensor, index: Tensor, size: int, eps: float, part: str
) -> Tensor:
    """The norms in torch's differentiable operations."""
    top, rest, _ = native_sums(x, p, index, size, eps, part, moments=False)
    scale, _ = _scale(top, rest, p, q, _log_count(index, size, x))
    return _times(top, scale)


def _scale(
    top: Tensor, rest: Tensor, p: Tensor, q: Tensor, log_count: Tensor
) -> tuple[Tensor, Tensor]:
    """Logarithm of norm / extreme entry, cut so that the norm is finite; where cut."""
    log_top = top.masked_fill(top == 0, 1.0).log()
    scale = rest.log1p() / p.unsqueeze(1) - q.unsqueeze(1) * log_count
    room = log_max(top) - log_top
    return torch.minimum(scale, room), scale > room


def _times(top: Tensor, scale: Tensor) -> Tensor:
    """The extreme entry times the exponential of the scale."""
    is_near = scale.abs() < NEAR
    near = top * scale.masked_fill(~is_near, 0.0).exp()
    log_top = top.masked_fill(top == 0, 1.0).log()
    far = (log_top + scale.masked_fill(is_near, 0.0)).exp().masked_fill(top == 0, 0.0)
    # NaN is not near: it comes through the other way.
    return torch.where(is_near, near, far)


@functools.cache
def ways() -> Any:
    """The kernels of both ways; loaded when the first is needed."""
    from pyg_pool.kernels import pnorm_numba, pnorm_slopes_numba

    return pnorm_numba, pnorm_slopes_numba.backward


class _Compiled(torch.autograd.Function):
    """The same in the compiled CPU twin; exponents in any shape."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, p: Tensor, q: Tensor, index: Tensor, size: int,
        eps: float, part: str,
    ) -> Tensor:  # fmt: skip
        (rows, width), p, q, kernel = x.shape, p.contiguous(), q.contiguous(), ways()[0]
        is_many = p.dim() > 1
        norms, channels = (p.size(0), p.size(1)) if is_many else (1, p.numel())
        elements = rows * width * norms
        kept = torch.empty(3 * norms * size * width + kernel.RUN * width)
        out = torch.empty((norms, size, width) if is_many else (size, width))
        if is_one_span(elements):
            count = torch.empty(size, dtype=torch.int64)
        else:
            count = counts("segment_pnorm", index, size)
        guarded(
            "segment_pnorm", index, size, kernel.forward.single, width, elements, rows,
            width, size, norms, channels, PARTS.index(part), eps, x.data_ptr(),
            p.data_ptr(), q.data_ptr(), index.data_ptr(), kept.data_ptr(),
            not is_one_span(elements), count.data_ptr(), out.data_ptr(),
        )  # fmt: skip
        ctx.options = size, eps, part
        ctx.kept = kept, count
        ctx.save_for_backward(x, p, q, index, out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, ...]:
        x, p, q, index, out = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivatives are asked for
            return *_again(ctx, x, p, q, index, grad), None, None, None, None
        (rows, width), (size, eps, part) = x.shape, ctx.options
        (kept, count), grad = ctx.kept, grad.contiguous()
        norms, channels = (p.size(0), p.size(1)) if p.dim() > 1 else (1, p.numel())
        elements = rows * width * norms
        wants_rows = ctx.needs_input_grad[0]
        spare = torch.empty(3 * norms * size * width)
        grad_p, grad_q = torch.empty_like(p), torch.empty_like(q)
        grad_x = torch.empty((rows, width)) if wants_rows else None
        args = (
            width, size, norms, channels, PARTS.index(part), eps, x.data_ptr(),
            p.data_ptr(), q.data_ptr(), index.data_ptr(), count.data_ptr(),
            kept.data_ptr(), out.data_ptr(), grad.data_ptr(), spare.data_ptr(),
            grad_p.data_ptr(), grad_q.data_ptr(),
            grad_x.data_ptr() if grad_x is not None else 0,
        )  # fmt: skip
        run, is_alone = ways()[1].single, wants_rows and is_one_span(elements)
        run(0, rows if is_alone else 0, 1, *args)
        if wants_rows and not is_alone:
            shared(lambda *span: run(*span, 0, *args), rows, elements)
        return grad_x, grad_p, grad_q, None, None, None, None


_compiled = step_of(_Compiled)


def _again(
    ctx: Any, x: Tensor, p: Tensor, q: Tensor, index: Tensor, grad: Tensor
) -> list[OptTensor]:
    """Gradients by the native formula, which can be differentiated again."""
    first, second = (t if t.dim() > 1 else t.view(1, -1) for t in (p, q))
    out = _plain(x, first, second, index, *ctx.options)
    wanted = [t for t, w in zip((x, p, q), ctx.needs_input_grad, strict=False) if w]
    grad = grad.view_as(out)
    found = iter(torch.autograd.grad(out, wanted, grad, create_graph=True))
    return [next(found) if w else None for w in ctx.needs_input_grad[:3]]
