r"""A norm with an exponent above 0 beside one below 0, and their weighted sum.

What :mod:`pyg_pool.kernels.pnorm` does for any exponents is done here for a pair of
them, from their unconstrained form to the sum, in two passes over the rows.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from pyg_pool.kernels.dispatch import runs_numba
from pyg_pool.kernels.group_pnorm import Groups, group_pnorm
from pyg_pool.kernels.segment import flat_rows, segment_index
from pyg_pool.kernels.segment_twin import refuse, step_of
from pyg_pool.kernels.threads import shared
from pyg_pool.typing import OptTensor

__all__ = ["norm_pair", "pair_exponents"]

PARTS = {"abs": 0, "relu": 1}


def pair_exponents(raw: Tensor, low: float) -> Tensor:
    r""":math:`\pm(\mathrm{softplus}(r) + \mathrm{low})`, a row above and one below 0.

    Shapes:
        raw: ``[2, *]``; returns ``[2, *]``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.norm_pair import pair_exponents
        >>> pair_exponents(torch.tensor([[0.4610], [0.4610]]), 0.05).round(decimals=3)
        tensor([[ 1.],
                [-1.]])
    """
    size = softplus(raw) + low
    return torch.stack([size[0], -size[1]])


def norm_pair(
    owner: str,
    x: Tensor,
    raw_p: Tensor,
    raw_q: Tensor,
    weight: OptTensor,
    groups: Groups,
    *,
    low: float,
    eps: float,
    negative: str,
) -> Tensor:
    """Both norms of groups of elements, or their sum with weights.

    Args:
        owner: Name of the operator, for messages.
        x: Elements.
        raw_p: Exponents as :func:`pair_exponents` takes them.
        raw_q: Exponents of the group size.
        weight: Weights of the norms in a sum; without them both are returned.
        groups: Index, offsets, number of groups, and dimension of the elements.
        low: Least magnitude of the exponents.
        eps: Added to every magnitude.
        negative: ``"abs"``, ``"relu"``, ``"split"`` or ``"error"``.

    Shapes:
        x: ``[*, N, *, F]``; raw_p, raw_q, weight: ``[2, 1]`` or ``[2, F]``; returns
        ``[2, *, B, *, F]``, with weights ``[*, B, *, F]``.

    Raises:
        ValueError: If a shape or an option does not fit, or x has negative numbers
            against ``"error"``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.norm_pair import norm_pair
        >>> raw, groups = torch.full((2, 1), 0.4610), (None, None, None, 0)
        >>> x, q = torch.tensor([[2.0], [2.0]]), torch.zeros(2, 1)
        >>> norm_pair(
        ...     "doc", x, raw, q, torch.ones(2, 1), groups,
        ...     low=0.05, eps=0.0, negative="abs",
        ... ).round(decimals=3)
        tensor([[5.]])
    """
    index, ptr, size, dim = groups
    if _is_plain(x, raw_p, raw_q, weight, dim, negative):
        index, size = segment_index(owner, x, index, ptr, size)
        if runs_numba("segment_pnorm", x.numel(), x, raw_p, index):
            options = size, low, eps, negative
            out: Tensor = _pair(flat_rows(x), raw_p, raw_q, weight, index, options)
            return out
    return _composed(owner, x, raw_p, raw_q, weight, groups, low, eps, negative)


def _is_plain(
    x: Tensor, raw_p: Tensor, raw_q: Tensor, weight: OptTensor, dim: int, negative: str
) -> bool:
    """Whether the compiled twin knows such input."""
    known = [t for t in (x, raw_p, raw_q, weight) if t is not None]
    return (
        x.dim() == 2
        and dim in (0, -2)
        and negative in PARTS
        and raw_p.size(1) in (1, x.size(1))
        and all(t.dtype == torch.float32 for t in known)
    )


def _composed(
    owner: str, x: Tensor, raw_p: Tensor, raw_q: Tensor, weight: OptTensor,
    groups: Groups, low: float, eps: float, negative: str,
) -> Tensor:  # fmt: skip
    """The same in differentiable steps."""
    wide = torch.promote_types(raw_p.dtype, torch.float32)
    p, q = pair_exponents(raw_p.to(wide), low), raw_q.to(wide)
    norms = group_pnorm(owner, x, p, q, groups, eps=eps, negative=negative)
    if weight is None:
        return norms
    return (norms * weight.view(2, *[1] * (x.dim() - 1), -1)).sum(0)


class _Pair(torch.autograd.Function):
    """The compiled CPU twin; keeps x and what it found per segment."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, raw_p: Tensor, raw_q: Tensor, weight: OptTensor,
        index: Tensor, options: tuple[int, float, float, str],
    ) -> Tensor:  # fmt: skip
        from pyg_pool.kernels import norm_pair_numba as kernel
        from pyg_pool.kernels import norm_pair_parts_numba as parts
        from pyg_pool.kernels.segment_numba import RUN

        (rows, width), channels, (size, low, eps, negative) = (
            x.shape,
            raw_p.size(1),
            options,
        )
        raw_p, raw_q = raw_p.contiguous(), raw_q.contiguous()
        kept = torch.empty((4, 2, size, width))
        p, logs = torch.empty((2, channels)), torch.empty((RUN, width))
        count = torch.empty((2, size), dtype=torch.int64)
        top, rest, moment, norms = (t.data_ptr() for t in kept.unbind())
        ids, (counts, first) = index.data_ptr(), (t.data_ptr() for t in count.unbind())
        if kernel.tally.single(rows, size, ids, counts, first):
            refuse("segment_pnorm", index, size)
        parts.exponents_of.single(channels, low, raw_p.data_ptr(), p.data_ptr())
        shared(
            kernel.sums.single, width, 2 * x.numel(), rows, width, size, channels,
            PARTS[negative], eps, x.data_ptr(), p.data_ptr(), ids, first,
            logs.data_ptr(), top, rest, moment,
        )  # fmt: skip
        parts.norms_of.single(
            width, size, channels, p.data_ptr(), raw_q.data_ptr(), counts, top,
            rest, norms,
        )  # fmt: skip
        ctx.options = options
        ctx.save_for_backward(x, raw_p, raw_q, weight, index, count, p, kept)
        if weight is None:
            return kept[3].clone()
        out, weight = torch.empty((size, width)), weight.contiguous()
        parts.mix.single(
            width, size, channels, weight.data_ptr(), norms, out.data_ptr()
        )
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, ...]:
        from pyg_pool.kernels import norm_pair_numba as kernel
        from pyg_pool.kernels import norm_pair_parts_numba as parts

        x, raw_p, raw_q, weight, index, count, p, kept = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivatives are asked for
            return *_again(ctx, x, raw_p, raw_q, weight, index, grad), None, None
        size, _, eps, negative = ctx.options
        (rows, width), channels, grad = x.shape, p.size(1), grad.contiguous()
        top, rest, moment, norms = (t.data_ptr() for t in kept.unbind())
        spare, grads = torch.empty((4, 2, size, width)), torch.empty((3, 2, channels))
        up, log_top, shift, given = (t.data_ptr() for t in spare.unbind())
        grad_p, grad_q, grad_weight = grads.unbind()
        if weight is None:
            given = grad.data_ptr()
        else:
            parts.unmix.single(
                width, size, channels, weight.contiguous().data_ptr(), norms,
                grad.data_ptr(), given, grad_weight.data_ptr(),
            )  # fmt: skip
        parts.slopes_of.single(
            width, size, channels, p.data_ptr(), raw_q.data_ptr(),
            count.data_ptr(), top, rest, moment, norms, given, up, log_top, shift,
            grad_p.data_ptr(), grad_q.data_ptr(),
        )  # fmt: skip
        parts.raw_slopes_of.single(channels, raw_p.data_ptr(), grad_p.data_ptr())
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = torch.empty((rows, width))
            shared(
                kernel.rows.single, rows, 2 * x.numel(), width, size, channels,
                PARTS[negative], eps, x.data_ptr(), p.data_ptr(), index.data_ptr(),
                log_top, shift, up, grad_x.data_ptr(),
            )  # fmt: skip
        last = None if weight is None else grad_weight
        return grad_x, grad_p, grad_q, last, None, None


_pair = step_of(_Pair)


def _again(
    ctx: Any, x: Tensor, raw_p: Tensor, raw_q: Tensor, weight: OptTensor,
    index: Tensor, grad: Tensor,
) -> list[OptTensor]:  # fmt: skip
    """Gradients in steps that can be differentiated again."""
    size, low, eps, negative = ctx.options
    groups = index, None, size, 0
    # Views, as one input may have been made of another.
    x, raw_p, raw_q = (t.view_as(t) for t in (x, raw_p, raw_q))
    weight = None if weight is None else weight.view_as(weight)
    inputs, given = (x, raw_p, raw_q, weight), (low, eps, negative)
    out = _composed("norm_pair", x, raw_p, raw_q, weight, groups, *given)
    wants = ctx.needs_input_grad[:4]
    wanted = [t for t, w in zip(inputs, wants, strict=True) if w and t is not None]
    found = iter(torch.autograd.grad(out, wanted, grad, create_graph=True))
    return [next(found) if w else None for w in wants]
