r"""Two residual layers around a sum over groups, as one operation.

.. math::
    y_c = m_c \, \mathrm{LN}_2\bigl(s_c + W_2 s_c + b_2\bigr), \qquad
    s_c = \sum_{i \in c} \mathrm{LN}_1\bigl(x_i + W_1 x_i + b_1\bigr)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from pyg_pool.kernels.derive import gradients
from pyg_pool.kernels.dispatch import is_traced, runs_numba
from pyg_pool.kernels.norm_sum import norm_sum

__all__ = ["Residual", "deepsets", "deepsets_backward", "deepsets_forward"]

# Entries of the rows that are worked on at a time.
BLOCK = 1 << 17
# Entries up to which the transformed rows are kept for the gradient; more of them are
# computed again, which takes less time than writing and reading them.
KEPT = 1 << 22

# Weight and bias of the linear map, scale, shift and epsilon of the normalisation.
Residual = tuple[Tensor, Tensor, Tensor, Tensor, float]


def deepsets(
    x: Tensor,
    first: Residual,
    second: Residual,
    group: Tensor,
    num_groups: int,
    factor: Tensor | None = None,
) -> Tensor:
    """Returns one row per group.

    Args:
        x: Rows.
        first: The layer in front of the sum, in the type of ``x``.
        second: The layer behind it.
        group: Group of each row.
        num_groups: Number of groups.
        factor: Number by which each group's row is multiplied.

    Shapes:
        x: ``[N, F]``; weights: ``[F, F]``; biases, scales, shifts: ``[F]``; group:
        ``[N]`` int64; factor: ``[K]``; returns ``[K, F]``.

    Note:
        On the CPU the rows before the normalisation are kept while they are few,
        otherwise computed again; second derivatives compute all of it again.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.deepsets import deepsets
        >>> layer = torch.eye(2), torch.zeros(2), torch.ones(2), torch.zeros(2), 0.0
        >>> x, group = torch.tensor([[1.0, 3.0], [5.0, 9.0]]), torch.tensor([0, 0])
        >>> deepsets(x, layer, layer, group, 1, torch.tensor([3.0]))
        tensor([[-3.,  3.]])
    """
    tensors = [x, *first[:4], *second[:4], *([] if factor is None else [factor])]
    known = x.dtype in (torch.float32, torch.float64)
    known = known and all(each.dtype == x.dtype for each in tensors)
    if (
        is_traced()
        or not (known and runs_numba("norm_sum", x.numel(), x, group))
        or torch.is_autocast_enabled("cpu")
    ):
        return _native(x, first, second, group, num_groups, factor)
    out: Tensor = _DeepSets.apply(x, *first, *second, group, num_groups, factor)
    return out


def _native(
    x: Tensor, first: Residual, second: Residual, group: Tensor, size: int,
    factor: Tensor | None,
) -> Tensor:  # fmt: skip
    weight, bias, scale, shift, eps = first
    rows = torch.addmm(bias, x, _raised(weight).t())
    rows = norm_sum(rows, scale, shift, eps, group, size)
    weight, bias, scale, shift, eps = second
    rows = torch.addmm(bias, rows, _raised(weight).t())
    rows = layer_norm(rows, rows.shape[-1:], scale, shift, eps)
    return rows if factor is None else rows * factor.unsqueeze(-1)


def _raised(weight: Tensor) -> Tensor:
    """The weight plus the identity: one product instead of a product and a sum."""
    return weight + torch.eye(weight.size(0), dtype=weight.dtype, device=weight.device)


class _DeepSets(torch.autograd.Function):
    """One call of the compiled passes in each direction."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor, w1: Tensor, b1: Tensor, scale1: Tensor, shift1: Tensor, eps1: float,
        w2: Tensor, b2: Tensor, scale2: Tensor, shift2: Tensor, eps2: float,
        group: Tensor, size: int, factor: Tensor | None,
    ) -> Tensor:  # fmt: skip
        first, second = (w1, b1, scale1, shift1, eps1), (w2, b2, scale2, shift2, eps2)
        times = x.new_ones(size) if factor is None else factor.detach().contiguous()
        out, kept = deepsets_forward(x, first, second, group.contiguous(), size, times)
        ctx.save_for_backward(x, *first[:4], *second[:4], group, factor, *kept)
        ctx.eps, ctx.size = (eps1, eps2), size
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            return _again(ctx, grad)
        parts, kept = ctx.saved_tensors[:11], ctx.saved_tensors[11:]
        x, group, norms = parts[0], parts[9], (*parts[3:5], *parts[7:9])
        grad_x, first, second, steep = deepsets_backward(
            grad, x, norms, group.contiguous(), kept, has_x=ctx.needs_input_grad[0]
        )
        last = None if parts[10] is None else steep
        return (grad_x, *first, None, *second, None, None, None, last)


def deepsets_forward(
    x: Tensor, first: Residual, second: Residual, group: Tensor, size: int,
    times: Tensor,
) -> tuple[Tensor, tuple[Tensor, ...]]:  # fmt: skip
    """Compiled pass: the rows of the groups, and what the way back needs."""
    from pyg_pool.kernels import deepsets_numba as twin

    x, width = x.detach(), x.size(1)
    layers = x.new_empty(2, width + 1, width)
    w1, b1, w2, b2 = (each.detach().numpy() for each in (*first[:2], *second[:2]))
    twin.centred(w1, b1, w2, b2, layers.numpy())
    keeps = x.numel() <= KEPT
    rows = x.new_empty(x.shape if keeps else (_block(x), width))
    zeros = x.new_zeros(size * (width + 1))
    count, sums = zeros[:size], zeros[size:].view(size, width)
    members, inverse = group.numpy(), x.new_empty(x.size(0))
    offset, lengths = layers[0, width].numpy(), inverse.numpy()
    totals, sizes = sums.numpy(), count.numpy()
    for part in _parts(x):
        piece = rows[part] if keeps else rows[: part.stop - part.start]
        torch.mm(x[part], layers[0, :width].t(), out=piece)
        twin.norm_sum(
            piece.numpy(), offset, first[4], members[part], lengths[part], totals,
            sizes,
        )  # fmt: skip
    inner, outer = _outer_rows(sums, count, first[2], first[3], layers)
    out, spread = torch.empty_like(sums), torch.empty_like(count)
    scale, shift = second[2].detach().numpy(), second[3].detach().numpy()
    twin.norm_rows(
        outer.numpy(), layers[1, width].numpy(), scale, shift, second[4],
        times.numpy(), spread.numpy(), out.numpy(),
    )  # fmt: skip
    if not keeps:
        rows = inner = outer = x.new_empty(0, width)
    return out, (layers, rows, inverse, sums, count, inner, outer, spread, times)


def deepsets_backward(
    grad: Tensor, x: Tensor, norms: tuple[Tensor, ...], group: Tensor,
    kept: tuple[Tensor, ...], *, has_x: bool = True,
) -> tuple[Tensor | None, list[Tensor], list[Tensor], Tensor]:  # fmt: skip
    """Gradients of rows, first layer, second layer and factors.

    ``norms`` are scale and shift of the first layer, and of the second.
    """
    from pyg_pool.kernels import deepsets_numba as twin

    layers, rows, inverse, sums, count, inner, outer, spread, times = kept
    x, width = x.detach(), x.size(1)
    scale, _, outer_scale, shift = (each.detach().numpy() for each in norms)
    again = rows.size(0) < x.size(0)
    if again:
        inner, outer = _outer_rows(sums, count, norms[0], norms[1], layers)
    slopes, lower, steep = (
        x.new_zeros(6, width),
        torch.empty_like(outer),
        torch.empty_like(times),
    )
    twin.norm_rows_backward(
        grad.contiguous().numpy(), outer.numpy(), layers[1, width].numpy(),
        outer_scale, shift, times.numpy(), spread.numpy(), lower.numpy(),
        slopes.numpy(), steep.numpy(),
    )  # fmt: skip
    second = [lower.t() @ inner, slopes[2], slopes[0], slopes[1]]
    inner = outer = grad  # lets go of the rows that are no longer needed
    lower = lower @ layers[1, :width]
    twin.norm_sides(
        lower.numpy(), sums.numpy(), count.numpy(), scale, slopes[3:].numpy()
    )
    grad_x, weight = torch.empty_like(x) if has_x else None, x.new_zeros(width, width)
    offset, of_bias = layers[0, width].numpy(), slopes[5].numpy()
    down = x.new_empty(_block(x), width)
    piece = torch.empty_like(down) if again else down
    for part in _parts(x):
        size = part.stop - part.start
        if again:
            torch.mm(x[part], layers[0, :width].t(), out=piece[:size])
        held = piece[:size] if again else rows[part]
        twin.norm_sum_backward(
            held.numpy(), offset, group[part].numpy(), inverse[part].numpy(),
            lower.numpy(), down[:size].numpy(), of_bias,
        )  # fmt: skip
        weight.addmm_(down[:size].t(), x[part])
        if grad_x is not None:
            torch.mm(down[:size], layers[0, :width], out=grad_x[part])
    return grad_x, [weight, slopes[5], slopes[3], slopes[4]], second, steep


def _outer_rows(
    sums: Tensor, count: Tensor, scale: Tensor, shift: Tensor, layers: Tensor
) -> tuple[Tensor, Tensor]:
    """The sums with scale and shift, and what the second layer makes of them."""
    from pyg_pool.kernels import deepsets_numba

    inner, width = torch.empty_like(sums), sums.size(1)
    deepsets_numba.affine_sums(
        sums.numpy(), count.numpy(), scale.detach().numpy(), shift.detach().numpy(),
        inner.numpy(),
    )  # fmt: skip
    return inner, torch.mm(inner, layers[1, :width].t())


def _block(x: Tensor) -> int:
    """Rows that are worked on at a time, so that they stay in the cache."""
    return min(max(BLOCK // max(x.size(1), 1), 1), x.size(0))


def _parts(x: Tensor) -> list[slice]:
    """The rows, block by block."""
    size, step = x.size(0), max(_block(x), 1)
    return [slice(at, min(at + step, size)) for at in range(0, size, step)]


def _again(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients from torch's operations, which have second derivatives."""
    x, w1, b1, scale1, shift1, w2, b2, scale2, shift2, group, factor = (
        ctx.saved_tensors[:11]
    )
    first = (w1, b1, scale1, shift1, ctx.eps[0])
    second = (w2, b2, scale2, shift2, ctx.eps[1])
    out = _native(x, first, second, group, ctx.size, factor)
    parts = (x, *first[:4], *second[:4], *(() if factor is None else (factor,)))
    found = gradients(out, parts, grad)
    last = None if factor is None else found[9]
    return (*found[:5], None, *found[5:9], None, None, None, last)
