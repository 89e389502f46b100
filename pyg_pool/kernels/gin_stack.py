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
from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.dispatch import is_traced, runs_numba

__all__ = ["Block", "fits_gin_stack", "gin_stack"]

#: Weights of a layer: two linear maps, and scale and shift of the normalisation.
PER_LAYER = 6
#: Bytes of a layer's output from which little is kept.
SPARE_FROM = 2**25


@dataclass(frozen=True)
class Block:
    """Rows of a block and the edges among them.

    Args:
        start: First row.
        stop: The row after the last.
        source: Source of each edge, counted from the first row of the block.
        target: Target of each edge, counted likewise.
    """

    start: int
    stop: int
    source: Tensor
    target: Tensor

    @property
    def rows(self) -> slice:
        """The rows."""
        return slice(self.start, self.stop)


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

    Returns:
        New rows, and for each layer mean and biased variance of the rows that were
        normalised.

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
    out, *stats = _GINStack.apply(x, blocks, tuple(eps), spare, *weights)
    return out, list(zip(stats[::2], stats[1::2], strict=True))


class _Layer:
    """One layer with its weights and the moments of its columns."""

    def __init__(
        self, weights: Sequence[Tensor], eps: float, mean: Tensor, var: Tensor
    ) -> None:
        plain = [weight.detach() for weight in weights]
        self.w1, self.b1, self.scale, self.shift, self.w2, self.b2 = plain
        self.mean, self.var, self.rate = mean, var, (var + eps).rsqrt()
        self.factor = self.rate * self.scale
        self.offset = self.shift - mean * self.factor

    def inner(self, x: Tensor, block: Block, out: Tensor | None = None) -> Tensor:
        """Rows before the normalisation."""
        return torch.addmm(self.b1, _summed(x, block), self.w1.t(), out=out)

    def hidden(self, inner: Tensor) -> Tensor:
        """Rows between the linear maps."""
        out = torch.empty_like(inner)
        _compiled().activate(*_arrays(inner, self.factor, self.offset, out))
        return out

    def outer(self, inner: Tensor, out: Tensor) -> None:
        """Rows of the output; may stand where the inner ones do."""
        torch.addmm(self.b2, self.hidden(inner), self.w2.t(), out=out).relu_()

    def again(self, x: Tensor, blocks: Sequence[Block]) -> Tensor:
        """The output once more."""
        out = x.new_empty((x.size(0), self.b2.numel()))
        for block in blocks:
            rows = out[block.rows]
            self.outer(self.inner(x[block.rows], block, rows), rows)
        return out


def _compiled() -> Any:
    from pyg_pool.kernels import gin_stack_numba

    return gin_stack_numba


def _arrays(*tensors: Tensor) -> list[Any]:
    return [tensor.numpy() for tensor in tensors]


def _summed(x: Tensor, block: Block, *, against: bool = False) -> Tensor:
    """Own and neighbours' rows of a block, added."""
    from pyg_pool.kernels import gather_sum_numba

    out = x.clone(memory_format=torch.contiguous_format)
    ends = (block.target, block.source) if against else (block.source, block.target)
    gather_sum_numba.add(*_arrays(x, *ends, out))
    return out


def _first_run(
    x: Tensor, blocks: Sequence[Block], weights: Sequence[Tensor], eps: float
) -> tuple[Tensor, _Layer]:
    """Rows before the normalisation, and the layer with their moments."""
    w1, b1 = weights[:2]
    inner = x.new_empty((x.size(0), b1.numel()))
    own, around, mean, spread = x.new_zeros(4, b1.numel())
    count = 0
    for block in blocks:
        rows, size = inner[block.rows], block.stop - block.start
        torch.addmm(b1, _summed(x[block.rows], block), w1.t(), out=rows)
        _compiled().moments(*_arrays(rows, own, around))
        gap, total = own - mean, count + size
        spread += around + gap.square() * (count * size / total)
        mean += gap * (size / total)
        count = total
    return inner, _Layer(weights, eps, mean, spread / max(count, 1))


class _GINStack(torch.autograd.Function):
    """All layers with their gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        blocks: Sequence[Block],
        eps: tuple[float, ...],
        spare: bool,
        *weights: Tensor,
    ) -> tuple[Tensor, ...]:
        state, stats, kept = x.detach().contiguous(), [], []
        for number, each in enumerate(eps):
            own = weights[PER_LAYER * number : PER_LAYER * (number + 1)]
            if not spare or number % 2 == 0:
                kept.append(state)
            inner, layer = _first_run(state, blocks, own, each)
            stats += [layer.mean, layer.var]
            state = inner if spare else torch.empty_like(inner)
            for block in blocks:
                layer.outer(inner[block.rows], state[block.rows])
            if not spare:
                kept.append(inner)
        ctx.save_for_backward(*weights, *stats, *kept, state > 0)
        ctx.blocks, ctx.eps, ctx.spare = blocks, eps, spare
        ctx.mark_non_differentiable(*stats)
        return state, *stats

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Any, ...]:
        grad, depth, saved = grad.contiguous(), len(ctx.eps), list(ctx.saved_tensors)
        weights = [saved[i : i + PER_LAYER] for i in range(0, PER_LAYER * depth, 6)]
        stats = saved[PER_LAYER * depth :][: 2 * depth]
        kept = saved[(PER_LAYER + 2) * depth :]
        moments = zip(stats[::2], stats[1::2], strict=True)
        parts = zip(weights, ctx.eps, moments, strict=True)
        layers = [_Layer(own, eps, *each) for own, eps, each in parts]
        del saved
        grads: list[Tensor] = []
        out, has_own = kept.pop(), False
        for number in range(depth - 1, -1, -1):
            inner = None if ctx.spare else kept.pop()
            is_kept = not ctx.spare or number % 2 == 0
            before = layers[number - 1]
            x = kept.pop() if is_kept else before.again(kept[-1], ctx.blocks)
            step = _Step(layers[number], x, ctx.blocks)
            place = out if has_own else None
            grad = step.over_activations(grad, out, inner, place, number + 1 < depth)
            wants = number > 0 or ctx.needs_input_grad[0]
            grad = step.over_sums(grad, place if inner is None else inner, wants)
            grads = [*step.grads, *grads]
            out, has_own = x, not is_kept
        first = grad if ctx.needs_input_grad[0] else None
        return (first, None, None, None, *grads)


class _Step:
    """The gradient of a layer with input ``x``, in two runs over the blocks."""

    def __init__(self, layer: _Layer, x: Tensor, blocks: Sequence[Block]) -> None:
        self.layer, self.x, self.blocks = layer, x, blocks
        parts = (layer.w1, layer.b1, layer.scale, layer.shift, layer.w2, layer.b2)
        self.grads = [torch.zeros_like(part) for part in parts]

    def over_activations(
        self,
        grad: Tensor,
        out: Tensor,
        inner: Tensor | None,
        place: Tensor | None,
        may_write: bool,
    ) -> Tensor:
        """Gradient of the normalised rows.

        Rows before the normalisation that are not kept are computed, into ``place``
        if there is one.
        """
        layer, grads = self.layer, self.grads
        new = grad if may_write else torch.empty_like(grad)
        norm = layer.factor, layer.offset, layer.mean
        for block in self.blocks:
            rows = block.rows
            outer = torch.empty_like(grad[rows])
            _compiled().pass_back(*_arrays(grad[rows], out[rows], outer, grads[5]))
            if inner is None:
                into = None if place is None else place[rows]
                own = layer.inner(self.x[rows], block, into)
            else:
                own = inner[rows]
            grads[4].addmm_(outer.t(), layer.hidden(own))
            here = torch.mm(outer, layer.w2, out=new[rows])
            _compiled().gate(*_arrays(here, own, *norm, grads[2], grads[3]))
        grads[2].mul_(layer.rate)
        return new

    def over_sums(self, grad: Tensor, inner: Tensor | None, wants: bool) -> Tensor:
        """Gradient of the input, written over that of the normalised rows."""
        layer, grads, size = self.layer, self.grads, self.x.size(0)
        spread = layer.rate * grads[2] / size
        slope = -spread * layer.factor
        offset = (layer.mean * spread - grads[3] / size) * layer.factor
        width = self.x.size(1)
        is_wide = width == grad.size(1)
        new = grad if is_wide or not wants else grad.new_empty((size, width))
        for block in self.blocks:
            rows = block.rows
            x = self.x[rows]
            own = layer.inner(x, block) if inner is None else inner[rows]
            within = torch.empty_like(own)
            parts = (grad[rows], own, layer.factor, slope, offset, within)
            _compiled().center(*_arrays(*parts))
            summed = _summed(within, block, against=True)
            grads[0].addmm_(summed.t(), x)
            if wants:
                torch.mm(summed, layer.w1, out=new[rows])
        return new
