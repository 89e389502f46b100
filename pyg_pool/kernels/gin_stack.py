r"""GIN layers on many small graphs, block by block, keeping little for the gradient.

.. math::
    H^{l+1} = \mathrm{ReLU}\big( \mathrm{ReLU}(\mathrm{BN}(A W_1 + b_1)) W_2 + b_2
    \big), \qquad A_v = H^l_v + \sum_{u \to v} H^l_u

A block is a run of rows whose edges stay among themselves, small enough for the cache
of a processor. Of a layer only the statistics of its normalisation concern all rows,
so everything else is done for one block after the other. Kept for the gradient are two
tables per layer, the rows before the normalisation and the output; of large ones only
the output of every second layer, and the rest is computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.dispatch import is_traced, runs_numba
from pyg_pool.kernels.gin_layer import Block, Layer, LayerGradient, first_run

__all__ = ["Block", "RowPool", "fits_gin_stack", "gin_stack"]

#: Weights of a layer: two linear maps, and scale and shift of the normalisation.
PER_LAYER = 6
#: Bytes of a layer's output from which little is kept.
SPARE_FROM = 2**25


@dataclass(frozen=True)
class RowPool:
    """Groups of rows of which only the sum or mean is wanted.

    Args:
        owner: ``[N]`` group of each row.
        size: Number of groups.
        is_mean: Means instead of sums.
    """

    owner: Tensor
    size: int
    is_mean: bool

    def scaled(self, rows: Tensor) -> Tensor:
        """Sums over the size of their groups, where means are wanted."""
        if not self.is_mean:
            return rows
        count = self.owner.new_zeros(self.size)
        count.scatter_add_(0, self.owner, torch.ones_like(self.owner))
        return rows / count.clamp(min=1).view(-1, 1).to(rows.dtype)


def fits_gin_stack(x: Tensor) -> bool:
    """Whether these rows are taken: floats on the CPU, eager, enough of them."""
    if is_traced() or x.dtype not in (torch.float32, torch.float64) or x.size(0) < 2:
        return False
    if torch.is_autocast_enabled("cpu"):
        return False
    return runs_numba("gather_sum", x.numel(), x)


def gin_stack(
    x: Tensor,
    blocks: Sequence[Block],
    weights: Sequence[Tensor],
    eps: Sequence[float],
    *,
    spare: bool | None = None,
    pool: RowPool | None = None,
) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
    """Runs the layers with the statistics of their rows.

    Args:
        x: Rows.
        blocks: All rows and edges, block by block in the order of the rows.
        weights: For each layer weight and bias of the first linear map, scale and
            shift of the normalisation, weight and bias of the second linear map.
        eps: Epsilon of each normalisation.
        spare: Keep the output of every second layer and nothing else; by default
            where a table takes 32 MiB.
        pool: Groups of rows of which only sums or means are wanted; then there is no
            table of the last rows, nor of their gradient.

    Returns:
        New rows or those of the groups, and for each layer mean and biased variance of
        the rows that were normalised.

    Shapes:
        x: ``[N, F]``; returns ``[N, H]`` and pairs of ``[H]``.

    Note:
        The bias in front of a normalisation moves nothing; its gradient is zero.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.gin_stack import Block, gin_stack
        >>> one, zero = torch.ones(2), torch.zeros(2)
        >>> weights = [torch.eye(2), zero, one, zero, torch.eye(2), zero]
        >>> block = Block(0, 3, torch.tensor([0, 1]), torch.tensor([1, 0]))
        >>> gin_stack(torch.rand(3, 2), [block], weights, [1e-5])[0].shape
        torch.Size([3, 2])
    """
    if spare is None:
        spare = x.size(0) * weights[1].numel() * x.element_size() >= SPARE_FROM
    out, *stats = _GINStack.apply(x, blocks, tuple(eps), spare, pool, *weights)
    return out, list(zip(stats[::2], stats[1::2], strict=True))


class _GINStack(torch.autograd.Function):
    """All layers with their gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        blocks: Sequence[Block],
        eps: tuple[float, ...],
        spare: bool,
        pool: RowPool | None,
        *weights: Tensor,
    ) -> tuple[Tensor, ...]:
        state, stats, kept = x.detach().contiguous(), [], []
        for number, each in enumerate(eps):
            own = weights[PER_LAYER * number : PER_LAYER * (number + 1)]
            if not spare or number % 2 == 0:
                kept.append(state)
            inner, layer = first_run(state, blocks, own, each)
            stats += [layer.mean, layer.var]
            state = inner if spare else torch.empty_like(inner)
            for block in blocks:
                layer.outer(inner[block.rows], state[block.rows])
            if not spare:
                kept.append(inner)
        ctx.save_for_backward(*weights, *stats, *kept, state > 0)
        ctx.blocks, ctx.eps, ctx.spare, ctx.pool = blocks, eps, spare, pool
        for number, mean in enumerate(stats[::2]):  # those with the bias
            stats[2 * number] = mean + weights[PER_LAYER * number + 1].detach()
        ctx.mark_non_differentiable(*stats)
        if pool is None:
            return state, *stats
        out = state.new_zeros((pool.size, state.size(1)))
        return pool.scaled(out.index_add_(0, pool.owner, state)), *stats

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Any, ...]:
        grad, depth, saved = grad.contiguous(), len(ctx.eps), list(ctx.saved_tensors)
        pool = ctx.pool
        if pool is not None:
            grad = pool.scaled(grad)
        weights = [saved[i : i + PER_LAYER] for i in range(0, PER_LAYER * depth, 6)]
        stats = saved[PER_LAYER * depth :][: 2 * depth]
        kept = saved[(PER_LAYER + 2) * depth :]
        moments = zip(stats[::2], stats[1::2], strict=True)
        parts = zip(weights, ctx.eps, moments, strict=True)
        layers = [Layer(own, eps, *each) for own, eps, each in parts]
        del saved
        grads: list[Tensor] = []
        out, has_own = kept.pop(), False
        for number in range(depth - 1, -1, -1):
            inner = None if ctx.spare else kept.pop()
            is_kept = not ctx.spare or number % 2 == 0
            before = layers[number - 1]
            x = kept.pop() if is_kept else before.again(kept[-1], ctx.blocks)
            step = LayerGradient(layers[number], x, ctx.blocks)
            place = out if has_own else None
            is_top = number + 1 == depth
            source, new = partial(_rows_of, grad, pool if is_top else None), grad
            if is_top:
                new = grad.new_empty((x.size(0), grad.size(1)))
            grad = step.over_activations(source, out, inner, place, new)
            wants = number > 0 or ctx.needs_input_grad[0]
            grad = step.over_sums(grad, place if inner is None else inner, wants)
            grads = [*step.grads, *grads]
            out, has_own = x, not is_kept
            del place, new, step  # lest they outlive the next layer's table
        first = grad if ctx.needs_input_grad[0] else None
        return (first, None, None, None, None, *grads)


def _rows_of(grad: Tensor, pool: RowPool | None, block: Block) -> Tensor:
    """Gradient of the rows of a block, where need be from that of their groups."""
    if pool is None:
        return grad[block.rows]
    return grad.index_select(0, pool.owner[block.rows])
