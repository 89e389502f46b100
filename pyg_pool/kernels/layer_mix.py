r"""Sums over the layers of a history that lies side by side in one matrix.

A history ``x`` holds the columns of all layers. Each group of rows has a scale ``t``,
so that products of large numbers stay finite; t = 1 where numbers are moderate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.derive import gradients
from pyg_pool.kernels.dispatch import is_traced, runs_numba
from pyg_pool.kernels.segment import segment_reduce
from pyg_pool.typing import OptTensor

__all__ = ["History", "group_scale", "layer_dots", "mixed_rows"]


@dataclass(frozen=True)
class History:
    """A history and its groups.

    Args:
        x: ``[N, W]`` activations of all layers, side by side.
        starts: First column of each layer, and the number of columns.
        index: ``[N]`` int64 group of each row, in any order.
        scale: ``[B]`` scale of each group, taken as a constant.
    """

    x: Tensor
    starts: tuple[int, ...]
    index: Tensor
    scale: Tensor

    @property
    def num_layers(self) -> int:
        """Number of layers."""
        return len(self.starts) - 1

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Rows, columns and layers."""
        return self.x.size(0), self.x.size(1), self.num_layers

    @cached_property
    def first(self) -> Tensor:
        """First column of each layer, and the number of columns."""
        return torch.tensor(self.starts, device="cpu")


def group_scale(x: Tensor, index: Tensor, size: int) -> Tensor:
    """Returns powers of two that bring the rows of each group to a moderate size.

    Args:
        x: Rows.
        index: Group of each row.
        size: Number of groups.

    Shapes:
        x: ``[N, W]``; index: ``[N]`` int64; returns ``[B]``, 1 for moderate groups.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.layer_mix import group_scale
        >>> x, index = torch.tensor([[1.0], [-(2.0**30)]]), torch.tensor([0, 1])
        >>> group_scale(x, index, 2)
        tensor([1.0000e+00, 9.7656e-04])
    """
    x = x.detach()
    if x.size(1) == 0:
        return x.new_ones(size)
    if _takes_numba(x, index):
        from pyg_pool.kernels import layer_mix_numba

        x, largest = x.contiguous(), x.new_empty(size)
        _run(layer_mix_numba.largest, x, *x.shape, size, x, index, largest)
    else:
        # One pass finds both ends; their magnitudes need no copy of x.
        low, high = torch.aminmax(x, dim=1)
        row = torch.maximum(-low, high)
        largest = x.new_zeros(size).scatter_reduce(0, index, row, "amax")
    moderate = 20.0 if x.dtype == torch.float32 else 200.0
    return torch.exp2(-(largest.log2().ceil() - moderate).clamp(min=0.0))


def layer_dots(r: Tensor, history: History) -> Tensor:
    r"""Inner products with the activations of each layer, summed over each group.

    .. math::
        c_{gl} = \sum_{v \in g} t_g \Big(\sum_{j \in l} r_{vj}\, x_{vj}
        + r_{v, W + l}\Big)

    Args:
        r: Vectors to multiply with, then one number per layer.
        history: The history.

    Shapes:
        r: ``[N, W + L]``; returns ``[B, L]``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.layer_mix import History, layer_dots
        >>> x, index = torch.tensor([[2.0, 3.0]]), torch.tensor([0])
        >>> history = History(x, (0, 1, 2), index, torch.ones(1))
        >>> layer_dots(torch.tensor([[10.0, 1.0, 0.5, 0.25]]), history)
        tensor([[20.5000,  3.2500]])
    """
    if is_traced():
        return _dots(r, history.x, history)
    out: Tensor = _LayerDots.apply(r, history.x, history)
    return out


def mixed_rows(weights: Tensor, history: History, maps: Tensor) -> Tensor:
    r"""The weighted sum of all projected layers.

    .. math::
        y_v = \sum_l t_g\, \alpha_{gl} \Big(\sum_{j \in l} x_{vj}\, m_j + m_{W + l}\Big)

    where the vectors m are columns of the maps.

    Args:
        weights: Weights of the layers in each group.
        history: The history.
        maps: Maps of all layers, then their constants, side by side.

    Shapes:
        weights: ``[B, L]``; maps: ``[F, W + L]``; returns ``[N, F]``.

    Note:
        The weighted activations are not kept for the gradient but made again.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.layer_mix import History, mixed_rows
        >>> x, index = torch.tensor([[2.0, 3.0]]), torch.tensor([0])
        >>> history = History(x, (0, 1, 2), index, torch.ones(1))
        >>> maps = torch.tensor([[1.0, 10.0, 0.0, 0.0]])
        >>> mixed_rows(torch.tensor([[1.0, -1.0]]), history, maps)
        tensor([[-28.]])
    """
    if is_traced():
        return _mix(weights, history.x, history) @ maps.t()
    out: Tensor = _MixedRows.apply(weights, history.x, maps, history)
    return out


def _takes_numba(x: Tensor, index: Tensor) -> bool:
    known = x.dtype in (torch.float32, torch.float64)
    return known and runs_numba("layer_mix", x.numel(), x, index)


def _columns(history: History) -> Tensor:
    """One column per layer that marks the columns of the history, ``[W, L]``."""
    place = torch.arange(history.starts[-1], device=history.x.device).unsqueeze(-1)
    edges = torch.tensor(history.starts, device=history.x.device)
    inside = (place >= edges[:-1]) & (place < edges[1:])
    return inside.to(history.x.dtype)


def _dots(r: Tensor, x: Tensor, history: History) -> Tensor:
    width = x.size(1)
    scale = history.scale.index_select(0, history.index).unsqueeze(-1)
    sums = (r[:, :width] * (x * scale)) @ _columns(history)
    sums = sums + r[:, width:] * scale
    return segment_reduce(sums, history.index, dim_size=history.scale.size(0))


def _mix(weights: Tensor, x: Tensor, history: History) -> Tensor:
    scale = history.scale.index_select(0, history.index).unsqueeze(-1)
    rows = weights.index_select(0, history.index)
    spread = rows @ _columns(history).t()
    return torch.cat([x * scale * spread, rows * scale], -1)


class _LayerDots(torch.autograd.Function):
    """One pass over the rows in each direction."""

    @staticmethod
    def forward(ctx: Any, r: Tensor, x: Tensor, history: History) -> Tensor:
        ctx.history = history
        ctx.save_for_backward(r, x)
        if not _takes_numba(x, history.index):
            return _dots(r, x, history)
        from pyg_pool.kernels import layer_mix_numba

        out, total = _sums(history)
        _run(
            layer_mix_numba.dots, x, *history.sizes, out.size(0), history.first,
            r.contiguous(), x.contiguous(), history.index, history.scale, total, out,
        )  # fmt: skip
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (r, x), history = ctx.saved_tensors, ctx.history
        if torch.is_grad_enabled() or not _takes_numba(x, history.index):
            return *_again(_dots, r, x, history, grad), None
        from pyg_pool.kernels import layer_mix_numba

        grad_r, grad_x = x.new_empty(r.shape), x.new_empty(x.shape)
        _run(
            layer_mix_numba.dots_backward, x, *history.sizes, history.first,
            r.contiguous(), x.contiguous(), history.index, history.scale,
            grad.contiguous(), grad_r, grad_x,
        )  # fmt: skip
        return grad_r, grad_x, None


class _MixedRows(torch.autograd.Function):
    """A product whose left factor is made twice instead of kept."""

    @staticmethod
    def forward(
        ctx: Any, weights: Tensor, x: Tensor, maps: Tensor, history: History
    ) -> Tensor:
        ctx.history = history
        ctx.save_for_backward(weights, x, maps)
        return _mix_forward(weights, x, history) @ maps.t()

    @staticmethod
    def backward(
        ctx: Any, grad: Tensor
    ) -> tuple[OptTensor, OptTensor, OptTensor, None]:
        weights, x, maps = ctx.saved_tensors
        if torch.is_grad_enabled():
            weights, x, maps = (t.view_as(t) for t in (weights, x, maps))
            out = _mix(weights, x, ctx.history) @ maps.t()
            first = gradients(out, [weights, x, maps], grad)
            return first[0], first[1], first[2], None
        grad_maps = grad.t() @ _mix_forward(weights, x, ctx.history)
        found = _mix_backward(weights, x, ctx.history, grad @ maps)
        return *found, grad_maps, None


def _mix_forward(weights: Tensor, x: Tensor, history: History) -> Tensor:
    if not _takes_numba(x, history.index):
        return _mix(weights, x, history)
    from pyg_pool.kernels import layer_mix_numba

    out = x.new_empty(x.size(0), x.size(1) + history.num_layers)
    _run(
        layer_mix_numba.mix, x, *history.sizes, history.first, weights.contiguous(),
        x.contiguous(), history.index, history.scale, out,
    )  # fmt: skip
    return out


def _mix_backward(
    weights: Tensor, x: Tensor, history: History, grad: Tensor
) -> tuple[Tensor, Tensor]:
    if not _takes_numba(x, history.index):
        return _again(_mix, weights, x, history, grad)
    from pyg_pool.kernels import layer_mix_numba

    (grad_weights, total), grad_x = _sums(history), x.new_empty(x.shape)
    _run(
        layer_mix_numba.mix_backward, x, *history.sizes, weights.size(0),
        history.first, weights.contiguous(), x.contiguous(), history.index,
        history.scale, grad.contiguous(), total, grad_weights, grad_x,
    )  # fmt: skip
    return grad_weights, grad_x


def _sums(history: History) -> tuple[Tensor, Tensor]:
    """Memory for one number per group and layer, and for the sums behind it."""
    shape = history.scale.size(0), history.num_layers
    return history.x.new_empty(shape), torch.empty(shape, dtype=torch.float64)


def _run(kernel: Any, like: Tensor, *args: int | Tensor) -> None:
    """Calls a kernel in the type of a tensor with numbers and addresses."""
    call = kernel.single if like.dtype == torch.float32 else kernel.double
    call(*(arg.data_ptr() if isinstance(arg, Tensor) else arg for arg in args))


def _again(
    function: Callable[[Tensor, Tensor, History], Tensor],
    first: Tensor,
    x: Tensor,
    history: History,
    grad: Tensor,
) -> tuple[Tensor, Tensor]:
    """Gradients through torch's operations, which may be differentiated again."""
    create = torch.is_grad_enabled()
    with torch.enable_grad():
        if not create:
            first, x = first.detach().requires_grad_(), x.detach().requires_grad_()
        first, x = first.view_as(first), x.view_as(x)  # one may come of the other
        inputs = [t for t in (first, x) if t.requires_grad]
        out = function(first, x, history)
        found = iter(torch.autograd.grad(out, inputs, grad, create_graph=create))
    a, b = (next(found) if t.requires_grad else torch.zeros_like(t) for t in (first, x))
    return a, b
