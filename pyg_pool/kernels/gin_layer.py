"""One GIN layer on blocks of rows, with its gradient, for :mod:`gin_stack`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

__all__ = ["Block", "Layer", "LayerGradient", "first_run"]


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


class Layer:
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
        """Rows before the normalisation, without the bias, which it takes away."""
        return torch.mm(_summed(x, block), self.w1.t(), out=out)

    def hidden(self, inner: Tensor) -> Tensor:
        """Rows between the linear maps."""
        out = torch.empty_like(inner)
        _compiled().activate(*_arrays(inner, self.factor, self.offset, out))
        return out

    def outer(self, inner: Tensor, out: Tensor) -> None:
        """Rows of the output; may stand where the inner ones do."""
        torch.mm(self.hidden(inner), self.w2.t(), out=out)
        _compiled().shift(*_arrays(out, self.b2))

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


def first_run(
    x: Tensor, blocks: Sequence[Block], weights: Sequence[Tensor], eps: float
) -> tuple[Tensor, Layer]:
    """Rows before the normalisation, and the layer with their moments."""
    w1, b1 = weights[:2]
    inner = x.new_empty((x.size(0), b1.numel()))
    own, around, mean, spread = x.new_zeros(4, b1.numel())
    count = 0
    for block in blocks:
        rows, size = inner[block.rows], block.stop - block.start
        torch.mm(_summed(x[block.rows], block), w1.t(), out=rows)
        _compiled().moments(*_arrays(rows, own, around))
        gap, total = own - mean, count + size
        spread += around + gap.square() * (count * size / total)
        mean += gap * (size / total)
        count = total
    return inner, Layer(weights, eps, mean, spread / max(count, 1))


class LayerGradient:
    """The gradient of a layer with input ``x``, in two runs over the blocks."""

    def __init__(self, layer: Layer, x: Tensor, blocks: Sequence[Block]) -> None:
        self.layer, self.x, self.blocks = layer, x, blocks
        parts = (layer.w1, layer.b1, layer.scale, layer.shift, layer.w2, layer.b2)
        self.grads = [torch.zeros_like(part) for part in parts]

    def over_activations(
        self,
        grad_of: Callable[[Block], Tensor],
        out: Tensor,
        inner: Tensor | None,
        place: Tensor | None,
        new: Tensor,
    ) -> Tensor:
        """Gradient of the normalised rows, written to ``new``.

        Rows before the normalisation that are not kept are computed, into ``place``
        if there is one.
        """
        layer, grads = self.layer, self.grads
        norm = layer.factor, layer.offset, layer.mean
        for block in self.blocks:
            rows = block.rows
            grad = grad_of(block)
            outer = torch.empty_like(grad)
            _compiled().pass_back(*_arrays(grad, out[rows], outer, grads[5]))
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
