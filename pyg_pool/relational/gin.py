"""GIN layers as the base network of labelled copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import (
    BatchNorm1d,
    LayerNorm,
    Linear,
    Module,
    ModuleList,
    ReLU,
    Sequential,
)

from pyg_pool.errors import check_choice
from pyg_pool.kernels.copy_sum import CopyGroup, copy_sum
from pyg_pool.kernels.dispatch import is_traced
from pyg_pool.kernels.gin_stack import (
    Block,
    RowPool,
    fits_gin_stack,
    gin_stack,
)
from pyg_pool.kernels.segment import segment_reduce
from pyg_pool.relational.blocks import block_groups, copy_blocks, copy_groups
from pyg_pool.relational.checks import check_whole
from pyg_pool.relational.copies import Copies
from pyg_pool.relational.settings import check_attributes
from pyg_pool.typing import OptTensor

__all__ = ["CopyGIN", "ResidualConv", "residual_mlp"]

NORMS = ("batch", "layer", "none")


def residual_mlp(channels: int, hidden: int | None = None) -> Sequential:
    """Linear, ReLU, Linear, LayerNorm, ReLU: the block of the ID networks."""
    wide = channels if hidden is None else hidden
    return Sequential(
        Linear(wide, wide), ReLU(), Linear(wide, channels), LayerNorm(channels), ReLU()
    )


class ResidualConv(Module):
    r"""Adds an MLP of the neighbours' sum, scaled edge by edge.

    .. math::
        h'_u = h_u + \mathrm{mlp}\Big( \sum_{w} e_{uw} \odot h_w \Big)

    Args:
        channels: Width of the rows.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; scale: ``[E, F]`` or ``None`` for ones.

    Source:
        C. Zhou, X. Wang, M. Zhang. From Relational Pooling to Subgraph GNNs: A
        Universal Framework for More Expressive Graph Neural Networks. ICML 2023.

    Example:
        >>> import torch
        >>> from pyg_pool.relational import ResidualConv
        >>> ResidualConv(4)(torch.ones(2, 4), torch.tensor([[0], [1]])).shape
        torch.Size([2, 4])
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.mlp = residual_mlp(channels)

    def reset_parameters(self) -> None:
        """Draws the weights anew."""
        for index in (0, 2, 3):
            self.mlp[index].reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, edge_index: Tensor, scale: OptTensor = None) -> Tensor:
        """Returns rows of the same shape."""
        ids = torch.arange(edge_index.size(1), device=x.device)
        return self.on_groups(x, [CopyGroup(0, 1, x.size(0), edge_index, ids)], scale)

    def on_groups(
        self, x: Tensor, groups: Sequence[CopyGroup], scale: OptTensor = None
    ) -> Tensor:
        """The same on copies of graphs; the scales are those of the graphs' edges."""
        out: Tensor = x + self.mlp(copy_sum(x, groups, weight=scale))
        return out


class CopyGIN(Module):
    r"""GIN, with edge features where there are any, as a base for copies.

    .. math::
        h'_u = \mathrm{ReLU}\, \mathrm{mlp}\Big( h_u
        + \sum_w \mathrm{ReLU}(h_w + e_{uw}) \Big)

    Without edge features the sum is over :math:`h_w`. The MLP is a linear map, a
    normalisation, ReLU and a linear map.

    Args:
        in_channels: Width of the input.
        hidden_channels: Width of all layers.
        num_layers: Number of layers.
        edge_channels: Width of ``edge_attr``; 0 for none.
        norm: ``"batch"``, ``"layer"`` or ``"none"``.

    Shapes:
        x: ``[P, F]``; edge_index: ``[2, E]``; edge_attr: ``[E, D]``; returns
        ``[P, hidden_channels]``.

    Source:
        K. Xu et al. How Powerful are Graph Neural Networks? ICLR 2019.

    Example:
        >>> import torch
        >>> from pyg_pool.relational import CopyGIN
        >>> CopyGIN(2, 4, 3)(torch.ones(3, 2), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([3, 4])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        *,
        edge_channels: int = 0,
        norm: str = "batch",
    ) -> None:
        super().__init__()
        check_choice("CopyGIN", "norm", norm, NORMS)
        widths = {"in_channels": in_channels, "hidden_channels": hidden_channels}
        check_whole("CopyGIN", 1, num_layers=num_layers, **widths)
        check_whole("CopyGIN", edge_channels=edge_channels)
        self.norm, self.edge_channels = norm, edge_channels
        self.mlps, self.edges = ModuleList(), ModuleList()
        for layer in range(num_layers):
            width = hidden_channels if layer else in_channels
            self.mlps.append(gin_mlp(width, hidden_channels, norm))
            if edge_channels:
                self.edges.append(Linear(edge_channels, width))

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        for part in (*self.mlps, *self.edges):
            for module in part.modules():
                if hasattr(module, "reset_parameters") and module is not part:
                    module.reset_parameters()
            if isinstance(part, Linear):
                part.reset_parameters()

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: OptTensor = None
    ) -> Tensor:
        """Returns the rows of the last layer."""
        edge_attr = check_attributes(
            "CopyGIN", edge_index, edge_attr, self.edge_channels
        )
        ids = torch.arange(edge_index.size(1), device=x.device)
        group = CopyGroup(0, 1, x.size(0), edge_index, ids)
        return self._on_groups(x, [group], edge_attr)

    def _on_groups(
        self, x: Tensor, groups: Sequence[CopyGroup], edge_attr: OptTensor
    ) -> Tensor:
        """The layers, with the attributes of the graphs' own edges."""
        has_edges = self.edge_channels > 0 and edge_attr is not None
        for layer, mlp in enumerate(self.mlps):
            edge = self.edges[layer](edge_attr) if has_edges else None
            x = mlp(copy_sum(x, groups, edge=edge, own=True)).relu()
        return x

    def on_copies(
        self,
        x: Tensor,
        copies: Copies,
        edge_attr: OptTensor,
        *,
        pool: RowPool | None = None,
    ) -> Tensor:
        """The same on labelled copies, in the order that is fastest there.

        In training all copies take one layer after the other, block by block; where
        nothing has to be kept, each block of copies takes all layers at once.

        Args:
            x: ``[P, F]`` rows of the copies.
            copies: The copies.
            edge_attr: ``[E, D]`` attributes of the edges of the graphs.
            pool: Groups of rows of which only sums or means are wanted.
        """
        edges = copies.ground.edge_index
        edge_attr = check_attributes("CopyGIN", edges, edge_attr, self.edge_channels)
        if self.fits_blocks(x, edge_attr):
            return self.on_blocks(x, copy_blocks(copies), pool)
        out = self._one_by_one(x, copies, edge_attr)
        if pool is None:
            return out
        how: Any = "mean" if pool.is_mean else "sum"
        return segment_reduce(out, pool.owner, dim_size=pool.size, reduce=how)

    def _one_by_one(self, x: Tensor, copies: Copies, edge_attr: OptTensor) -> Tensor:
        """Copies without a common norm, a block of them at a time if none is kept."""
        is_apart = not torch.is_grad_enabled() and not is_traced()
        if not is_apart or (self.training and self.norm == "batch"):
            return self._on_groups(x, copy_groups(copies), edge_attr)
        done: list[Tensor] = []
        for start, group in block_groups(copies):
            rows = x[start : start + group.size * group.count]
            done.append(self._on_groups(rows, [group], edge_attr))
        return torch.cat(done) if done else self._on_groups(x, [], edge_attr)

    def fits_blocks(self, x: Tensor, edge_attr: OptTensor) -> bool:
        """Whether :meth:`on_blocks` can run: batch norm in training on the CPU."""
        has_edges = bool(self.edge_channels) and edge_attr is not None
        first: Any = self.mlps[0][0] if len(self.mlps) else None  # type: ignore[index]
        return (
            self.norm == "batch"
            and self.training
            and not has_edges
            and first is not None
            and first.weight.dtype == x.dtype
            and fits_gin_stack(x)
        )

    def on_blocks(
        self, x: Tensor, blocks: Sequence[Block], pool: RowPool | None = None
    ) -> Tensor:
        """The same, block by block; the running statistics move as ever.

        As in torch they move unseen by autograd, lest an earlier layer that keeps
        them refuses its gradient.
        """
        weights: list[Tensor] = []
        norms: list[Any] = []
        for mlp in self.mlps:
            parts: Any = mlp
            norms.append(parts[1])
            for part in (parts[0], parts[1], parts[3]):
                weights += [part.weight, part.bias]
        eps = [norm.eps for norm in norms]
        out, stats = gin_stack(x, blocks, weights, eps, pool=pool)
        size = x.size(0)
        with torch.no_grad():
            for norm, (mean, var) in zip(norms, stats, strict=True):
                norm.num_batches_tracked.data.add_(1)
                norm.running_mean.data.lerp_(mean, norm.momentum)
                norm.running_var.data.lerp_(var * (size / (size - 1)), norm.momentum)
        return out


def gin_mlp(in_channels: int, out_channels: int, norm: str) -> Sequential:
    """Linear, normalisation, ReLU, linear."""
    layers: list[Module] = [Linear(in_channels, out_channels)]
    if norm == "batch":
        layers.append(BatchNorm1d(out_channels))
    elif norm == "layer":
        layers.append(LayerNorm(out_channels))
    return Sequential(*layers, ReLU(), Linear(out_channels, out_channels))
