"""Blocks of primal-dual mesh networks: norms, residual and pooled blocks, up blocks.

Milano et al., NeurIPS 2020. Departures from the authors' program: instance norms see
one mesh at a time (``norm_scope="batch"`` gives theirs), sums are not made in place,
and a batch norm that meets fewer than two rows uses its running statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import BatchNorm1d, GroupNorm, Module
from torch_geometric.nn import InstanceNorm

from pyg_pool.mesh.conv import PrimalDualConv
from pyg_pool.models.pd_norms import MeshNorm, RowBatchNorm, make_norm
from pyg_pool.pool import PrimalDualPooling, PrimalDualPoolOutput, PrimalDualUnpooling
from pyg_pool.typing import OptTensor

__all__ = ["BlockOptions", "DownBlock", "Level", "ResDownBlock", "UpBlock"]

NormScope = Literal["mesh", "batch"]


@dataclass
class Level:
    """The two graphs of one level, without features."""

    edge_index: Tensor
    edge_index_dual: Tensor
    edge_to_dual: Tensor
    batch: OptTensor
    batch_dual: OptTensor
    batch_size: int

    @classmethod
    def of(cls, source: Any, batch_size: int) -> Level:
        """The graphs of a data object or of the result of a pooling step."""
        return cls(
            source.edge_index,
            source.edge_index_dual,
            source.edge_to_dual,
            getattr(source, "batch", None),
            getattr(source, "batch_dual", None),
            batch_size,
        )

    @property
    def graphs(self) -> tuple[Tensor, Tensor, Tensor]:
        """What a convolution takes beside the features."""
        return self.edge_index, self.edge_index_dual, self.edge_to_dual


@dataclass(frozen=True)
class BlockOptions:
    """What all blocks of a network have in common.

    Args:
        heads: Number of heads, whose outputs are joined.
        num_skips: Convolutions after the first one of each block.
        norm: Norm at the end of a residual block.
        norm_groups: Groups of its channels.
        norm_scope: What an instance norm sees.
        dropout: Rate at which attention is dropped.
        dual_self_loops: Whether dual nodes attend to themselves.
    """

    heads: int
    num_skips: int
    norm: MeshNorm = "group"
    norm_groups: int = 16
    norm_scope: NormScope = "mesh"
    dropout: float = 0.0
    dual_self_loops: bool = False

    def conv(self, source: tuple[int, int], target: tuple[int, int]) -> PrimalDualConv:
        """A convolution from features of both graphs to others, by head."""
        return PrimalDualConv(
            *source,
            *target,
            heads=self.heads,
            bias=False,
            dropout=self.dropout,
            dual_self_loops=self.dual_self_loops,
        )


class ResConv(Module):
    """A convolution and more of them beside a skip, batch norms in between.

    Args:
        source: Channels of faces and dual nodes.
        target: The same after the block, by head.
        options: Options of all blocks.
    """

    def __init__(
        self, source: tuple[int, int], target: tuple[int, int], options: BlockOptions
    ) -> None:
        super().__init__()
        self.num_skips = options.num_skips
        self.conv0 = options.conv(source, target)
        wide = (self.conv0.out_channels, self.conv0.out_channels_dual)
        for k in range(1, options.num_skips + 1):
            self.add_module(f"bn{k}_primal", RowBatchNorm(wide[0]))
            self.add_module(f"bn{k}_dual", RowBatchNorm(wide[1]))
            self.add_module(f"conv{k}", options.conv(wide, target))

    def forward(
        self, x: Tensor, x_dual: Tensor, level: Level
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns both features and the attention of the last convolution."""
        first = out = self.conv0(x, x_dual, *level.graphs)
        for k in range(1, self.num_skips + 1):
            # The ReLU in front of the norm is that at the end of the convolution.
            x = self.get_submodule(f"bn{k}_primal")(out.x)
            x_dual = self.get_submodule(f"bn{k}_dual")(out.x_dual)
            out = self.get_submodule(f"conv{k}")(x, x_dual, *level.graphs)
        # Sums of what a ReLU gave need none.
        return out.x + first.x, out.x_dual + first.x_dual, out.attention


class ResDownBlock(Module):
    """A residual convolution, norms and ReLU.

    Args:
        source: Channels of faces and dual nodes.
        target: The same after the block, by head.
        options: Options of all blocks.
    """

    def __init__(
        self, source: tuple[int, int], target: tuple[int, int], options: BlockOptions
    ) -> None:
        super().__init__()
        self.conv = ResConv(source, target, options)
        self.out_channels = tuple(width * options.heads for width in target)
        norm, groups = options.norm, options.norm_groups
        self.norm_primal = make_norm(norm, self.out_channels[0], groups)
        self.norm_dual = make_norm(norm, self.out_channels[1], groups)

    def forward(
        self, x: Tensor, x_dual: Tensor, level: Level
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns both features and the attention of the last convolution."""
        x, x_dual, attention = self.conv(x, x_dual, level)
        x, x_dual = self.norm_primal(x), self.norm_dual(x_dual)
        # Neither norm needs its output for the gradient.
        return x.relu_(), x_dual.relu_(), attention


class DownBlock(Module):
    """Convolutions with instance norms, each but the first beside a skip.

    Args:
        source: Channels of faces and dual nodes.
        target: The same after the block, by head.
        options: Options of all blocks.
    """

    def __init__(
        self, source: tuple[int, int], target: tuple[int, int], options: BlockOptions
    ) -> None:
        super().__init__()
        self.num_skips, self.norm_scope = options.num_skips, options.norm_scope
        self.out_channels = tuple(width * options.heads for width in target)
        for k in range(options.num_skips + 1):
            start = source if k == 0 else self.out_channels
            self.add_module(f"conv{k}", options.conv(start, target))  # type: ignore[arg-type]
        self.norms = [InstanceNorm(width) for width in self.out_channels]

    def forward(
        self, x: Tensor, x_dual: Tensor, level: Level
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns both features and the attention of the last convolution."""
        out = self.get_submodule("conv0")(x, x_dual, *level.graphs)
        x, x_dual = self._normed(out.x, out.x_dual, level)
        x, x_dual = x.relu(), x_dual.relu()
        for k in range(1, self.num_skips + 1):
            out = self.get_submodule(f"conv{k}")(x, x_dual, *level.graphs)
            new, new_dual = self._normed(out.x, out.x_dual, level)
            x, x_dual = (new + x).relu(), (new_dual + x_dual).relu()
        return x, x_dual, out.attention

    def _normed(self, x: Tensor, x_dual: Tensor, level: Level) -> tuple[Tensor, Tensor]:
        """Rows of mean 0 and variance 1 within each mesh, or within the batch."""
        out = []
        owners = (level.batch, level.batch_dual)
        for norm, rows, batch in zip(self.norms, (x, x_dual), owners, strict=True):
            size = level.batch_size
            if batch is None or self.norm_scope == "batch":
                batch = torch.zeros(rows.size(0), dtype=torch.long, device=rows.device)
                size = 1
            out.append(norm(rows, batch, size))
        return out[0], out[1]


class UpBlock(Module):
    """Convolution, unpooling, joining with a skip, convolution.

    Args:
        source: Channels of faces and dual nodes of the coarse level.
        target: The same after the block.
        skip: The same of what is joined.
    """

    def __init__(
        self, source: tuple[int, int], target: tuple[int, int], skip: tuple[int, int]
    ) -> None:
        super().__init__()
        self.conv1 = PrimalDualConv(*source, *target, concat=False)
        self.bn_primal1 = RowBatchNorm(target[0])
        self.bn_dual1 = RowBatchNorm(target[1])
        self.unpool = PrimalDualUnpooling(target[1])
        joined = (target[0] + skip[0], target[1] + skip[1])
        self.conv2 = PrimalDualConv(*joined, *target, concat=False)
        self.bn_primal2 = RowBatchNorm(target[0])
        self.bn_dual2 = RowBatchNorm(target[1])

    def forward(
        self,
        features: tuple[Tensor, Tensor],
        skips: tuple[Tensor, Tensor],
        pooled: PrimalDualPoolOutput,
        levels: tuple[Level, Level],
    ) -> tuple[Tensor, Tensor]:
        """Returns both features on the fine level.

        Args:
            features: Of the coarse level.
            skips: Of the fine level.
            pooled: The pooling step between them.
            levels: The fine and the coarse level.
        """
        out = self.conv1(*features, *levels[1].graphs)
        x = self.bn_primal1(out.x).relu()
        x_dual = self.bn_dual1(out.x_dual).relu()
        x, x_dual = self.unpool(x, x_dual, pooled.selection, pooled.selection_dual)
        x = torch.cat([x, skips[0]], dim=1)
        x_dual = torch.cat([x_dual, skips[1]], dim=1)
        out = self.conv2(x, x_dual, *levels[0].graphs)
        return self.bn_primal2(out.x).relu(), self.bn_dual2(out.x_dual).relu()


Block = Callable[[tuple[int, int], tuple[int, int], BlockOptions], Module]
BLOCKS: dict[str, Block] = {"res": ResDownBlock, "down": DownBlock}


def pool_level(
    pool: PrimalDualPooling, x: Tensor, x_dual: Tensor, attention: Tensor, level: Level
) -> PrimalDualPoolOutput:
    """Pools the features of one level."""
    return pool(
        x,
        x_dual,
        *level.graphs,
        attention,
        batch=level.batch,
        batch_dual=level.batch_dual,
        batch_size=level.batch_size,
    )


def reset_all(model: Module) -> None:
    """Draws all weights of a network as the authors do."""
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            torch.nn.init.normal_(module.weight, 0.0, 0.02)
            torch.nn.init.zeros_(module.bias)
        elif isinstance(module, BatchNorm1d):
            module.reset_running_stats()
            torch.nn.init.normal_(module.weight, 1.0, 0.02)
            torch.nn.init.zeros_(module.bias)
        elif isinstance(module, (GroupNorm, PrimalDualConv, PrimalDualUnpooling)):
            module.reset_parameters()
