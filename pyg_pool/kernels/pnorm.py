r"""Norms of segments with any exponent, in the log domain, with their gradients.

With :math:`v^*` the largest (p > 0) or smallest (p < 0) entry of a segment, all terms
:math:`a_i = p (\log v_i - \log v^*)` are at most 0, so nothing overflows, and the two
parts of the gradient with respect to p have the same sign, so nothing cancels.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pyg_pool.errors import check_choice
from pyg_pool.kernels.dispatch import runs_numba
from pyg_pool.kernels.segment import segment_count, segment_index
from pyg_pool.typing import OptTensor

__all__ = ["segment_pnorm"]

PARTS = ("abs", "pos", "neg")
# Terms below e^-10000 are 0 in every dtype; a finite floor keeps 0 * a at 0.
FLOOR = -1e4
# Within e^+-40 a plain product is more exact than the way through logarithms.
NEAR = 40.0

Sums = tuple[Tensor, Tensor, Tensor]


def segment_pnorm(
    x: Tensor,
    p: Tensor,
    q: Tensor,
    index: OptTensor = None,
    ptr: OptTensor = None,
    dim_size: int | None = None,
    *,
    eps: float = 1e-7,
    part: str = "abs",
) -> Tensor:
    r"""Norms of the rows of each segment, for several exponents at once.

    .. math::
        y_{rsf} = n_s^{-q_{rf}} \Big( \sum_{i:\ \mathrm{index}_i = s}
        (\varphi(x_{if}) + \varepsilon)^{p_{rf}} \Big)^{1 / p_{rf}}

    Args:
        x: Rows; half precision is computed in float32.
        p: Exponents, none of them 0, one row per norm wanted.
        q: Exponents of the number of rows.
        index: Segment of each row, in any order.
        ptr: Offsets of contiguous segments, instead of ``index``.
        dim_size: Number of segments.
        eps: Added to every magnitude.
        part: What is taken of x: ``"abs"`` its magnitude, ``"pos"`` or ``"neg"`` the
            magnitude where x has that sign and 0 elsewhere.

    Returns:
        One row per exponent and segment, at most a third of the largest number of the
        dtype. Empty segments give 0; so do, with ``eps=0``, segments with a zero
        where p < 0.

    Shapes:
        x: ``[N, F]``; p, q: ``[R, 1]`` or ``[R, F]``; index: ``[N]``; ptr:
        ``[B + 1]``; returns ``[R, B, F]``.

    Raises:
        ValueError: If the part is unknown or the shapes do not fit.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels import segment_pnorm
        >>> x = torch.tensor([[3.0], [4.0], [5.0]])
        >>> p, q = torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0], [0.0]])
        >>> segment_pnorm(x, p, q, torch.tensor([0, 0, 1]), eps=0.0)[..., 0]
        tensor([[3.5000, 5.0000],
                [5.0000, 5.0000]])
    """
    check_choice("segment_pnorm", "part", part, PARTS)
    _check_shapes(x, p, q)
    index, dim_size = segment_index("segment_pnorm", x, index, ptr, dim_size)
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    p, q = p.to(wide.dtype), q.to(wide.dtype)
    if torch.compiler.is_compiling():
        return _plain(wide, p, q, index, dim_size, eps, part).to(x.dtype)
    out: Tensor = _PNorm.apply(wide, p, q, index, dim_size, eps, part)
    return out.to(x.dtype)


def _check_shapes(x: Tensor, p: Tensor, q: Tensor) -> None:
    """Raises ``ValueError`` unless there is an exponent for each column."""
    fits = x.dim() == p.dim() == q.dim() == 2 and p.shape == q.shape
    if not fits or p.size(1) not in (1, x.size(1)):
        raise ValueError(
            f"segment_pnorm got x of shape {list(x.shape)}, p of shape "
            f"{list(p.shape)} and q of shape {list(q.shape)}, expected [N, F] and "
            f"twice [R, 1] or [R, F]; view them in these shapes."
        )


class _PNorm(torch.autograd.Function):
    """The norms with their gradient in closed form; keeps x and results only."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, p: Tensor, q: Tensor, index: Tensor, size: int,
        eps: float, part: str,
    ) -> Tensor:  # fmt: skip
        ctx.options = size, eps, part
        run = _numba_sums if _takes_numba(x, index, eps) else _native_sums
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
            wanted = [t for t, w in zip((x, p, q), ctx.needs_input_grad) if w]  # noqa: B905
            again = _plain(x, p, q, index, *ctx.options)
            found = iter(torch.autograd.grad(again, wanted, grad, create_graph=True))
            grads = [next(found) if w else None for w in ctx.needs_input_grad[:3]]
            return *grads, None, None, None, None
        grad = grad.masked_fill(is_still, 0.0)
        per_log, log_sum = grad * out, rest.log1p()
        grad_p = per_log * (moment / (1 + rest) - log_sum) / (p * p).unsqueeze(1)
        grad_q = -per_log * _log_count(index, ctx.options[0], x)
        grad_x = None
        if ctx.needs_input_grad[0]:
            run = (
                _numba_rows if _takes_numba(x, index, ctx.options[1]) else _native_rows
            )
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
    top, rest, _ = _native_sums(x, p, index, size, eps, part, moments=False)
    scale, _ = _scale(top, rest, p, q, _log_count(index, size, x))
    return _times(top, scale)


def _native_sums(
    x: Tensor, p: Tensor, index: Tensor, size: int, eps: float, part: str,
    moments: bool = True,
) -> Sums:  # fmt: skip
    """Extreme entry, sum of the terms less 1, and sum of term times its logarithm."""
    v = _magnitude(x, part) + eps
    top = _tops(v.detach(), p, index, size)
    rests, sums = [], []
    for p_row, top_row in zip(p, top, strict=True):
        a = _terms(v, p_row, top_row, index, eps)
        term, is_top = a.exp(), a == 0
        # The sum is at least 1: what exceeds 1 is kept, lest small terms get lost.
        rest = _add(term - is_top.to(v.dtype), index, size)
        rest = rest + (_add(is_top.to(v.dtype), index, size) - 1)
        rests.append(rest.masked_fill(top_row == 0, 0.0))
        sums.append(_add(term * a, index, size) if moments else top_row)
    return top, torch.stack(rests), torch.stack(sums)


def _tops(v: Tensor, p: Tensor, index: Tensor, size: int) -> Tensor:
    """Largest entry where p > 0, smallest where p < 0; 0 in empty segments."""
    spread = index.unsqueeze(1).expand_as(v)
    empty = v.new_zeros([size, v.size(1)])
    high, low = (
        empty.scatter_reduce(0, spread, v, how, include_self=False)
        for how in ("amax", "amin")
    )
    return torch.where(p.unsqueeze(1) > 0, high, low)


def _terms(v: Tensor, p: Tensor, top: Tensor, index: Tensor, eps: float) -> Tensor:
    """Logarithms of the terms, relative to that of the extreme entry."""
    log_top = top.masked_fill(top == 0, 1.0).log()
    if eps > 0:
        return p * (v.log() - log_top.index_select(0, index))
    is_zero = v == 0
    log_v = v.masked_fill(is_zero, 1.0).log()
    a = p * (log_v - log_top.index_select(0, index))
    # Above 0 only beside a zero entry that makes the whole norm 0.
    return a.masked_fill(is_zero, FLOOR).clamp(FLOOR, 0.0)


def _scale(
    top: Tensor, rest: Tensor, p: Tensor, q: Tensor, log_count: Tensor
) -> tuple[Tensor, Tensor]:
    """Logarithm of norm / extreme entry, cut so that the norm is finite; where cut."""
    log_top = top.masked_fill(top == 0, 1.0).log()
    scale = rest.log1p() / p.unsqueeze(1) - q.unsqueeze(1) * log_count
    room = _log_max(top) - log_top
    return torch.minimum(scale, room), scale > room


def _times(top: Tensor, scale: Tensor) -> Tensor:
    """The extreme entry times the exponential of the scale."""
    is_near = scale.abs() < NEAR
    near = top * scale.masked_fill(~is_near, 0.0).exp()
    log_top = top.masked_fill(top == 0, 1.0).log()
    far = (log_top + scale.masked_fill(is_near, 0.0)).exp().masked_fill(top == 0, 0.0)
    # NaN is not near: it comes through the other way.
    return torch.where(is_near, near, far)


def _log_max(x: Tensor) -> float:
    return math.log(torch.finfo(x.dtype).max) - 1


def _native_rows(
    x: Tensor, p: Tensor, index: Tensor, top: Tensor, shift: Tensor, grad: Tensor,
    eps: float, part: str,
) -> Tensor:  # fmt: skip
    """Gradient with respect to the rows."""
    v = _magnitude(x, part) + eps
    log_v = v.masked_fill(v == 0, 1.0).log()
    out = torch.zeros_like(x)
    log_tops = top.masked_fill(top == 0, 1.0).log()
    for p_row, log_top, k, g in zip(p, log_tops, shift, grad, strict=True):
        power = (p_row - 1) * (log_v - log_top.index_select(0, index))
        power = (power + k.index_select(0, index)).clamp(max=_log_max(x))
        out = out + g.index_select(0, index) * power.exp()
    return out * _slope(x, part)


def _magnitude(x: Tensor, part: str) -> Tensor:
    if part == "abs":
        return x.abs()
    return x.relu() if part == "pos" else (-x).relu()


def _slope(x: Tensor, part: str) -> Tensor:
    """Derivative of the magnitude; 0 at 0."""
    sign = x.sign()
    if part == "abs":
        return sign
    return sign.clamp(min=0) if part == "pos" else sign.clamp(max=0)


def _add(x: Tensor, index: Tensor, size: int) -> Tensor:
    out = x.new_zeros([size, x.size(1)])
    return out.scatter_add(0, index.unsqueeze(1).expand_as(x), x)


def _takes_numba(x: Tensor, index: Tensor, eps: float) -> bool:
    """Whether the twin, which knows float32 without zeros only, takes the rows."""
    fits = x.dtype == torch.float32 and x.is_contiguous() and eps >= 1e-30
    return fits and runs_numba("segment_pnorm", x.numel(), x, index)


def _numba_sums(
    x: Tensor, p: Tensor, index: Tensor, size: int, eps: float, part: str
) -> Sums:
    from pyg_pool.kernels import pnorm_numba

    top = x.new_zeros(p.size(0), size, x.size(1))
    rest, moment = torch.zeros_like(top), torch.zeros_like(top)
    exponents = p.detach().expand(-1, x.size(1)).contiguous()
    pnorm_numba.sums(
        x.detach().numpy(), exponents.numpy(), index.numpy(), eps,
        PARTS.index(part), top.numpy(), rest.numpy(), moment.numpy(),
    )  # fmt: skip
    return top, rest, moment


def _numba_rows(
    x: Tensor, p: Tensor, index: Tensor, top: Tensor, shift: Tensor, grad: Tensor,
    eps: float, part: str,
) -> Tensor:  # fmt: skip
    from pyg_pool.kernels import pnorm_numba

    out = torch.zeros_like(x)
    exponents = p.detach().expand(-1, x.size(1)).contiguous()
    pnorm_numba.rows(
        x.detach().numpy(), exponents.numpy(), index.numpy(), top.numpy(),
        shift.contiguous().numpy(), grad.contiguous().numpy(), eps,
        PARTS.index(part), out.numpy(),
    )  # fmt: skip
    return out
