"""A U-Net on meshes: down over face clusters and up again to the faces.

Milano et al., "Primal-Dual Mesh Convolutional Neural Networks", NeurIPS 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from torch import Tensor
from torch.nn import Module

from pyg_pool.core.naming import spell_call
from pyg_pool.models.pd_blocks import BlockOptions, NormScope, UpBlock, reset_all
from pyg_pool.models.pd_encoder import (
    MeshEncoder,
    MeshOutput,
    channel_pairs,
    finest_level,
    named,
)
from pyg_pool.models.pd_norms import MeshNorm, RowBatchNorm
from pyg_pool.pool import PrimalDualPooling

__all__ = ["MeshUNet"]

Block = Literal["res", "down"]
Reduction = Literal["mean", "sum"]
Config = Literal["A", "B", "C"]
Shares = float | Sequence[float]
Pools = Sequence[PrimalDualPooling]


class MeshUNet(Module):
    r"""Scores of each face from a way down with pooling and a way up again.

    Args:
        in_channels: Features of a face.
        in_channels_dual: Features of a dual node.
        num_classes: Scores of a face.
        channels: Width of each pooled block's faces, per head, and at the end that of
            the bridge at the lowest level.
        channels_dual: The same for dual nodes; ``None`` takes ``channels``.
        heads: Heads on the way down; they are averaged for the way up.
        num_skips, block, norm, norm_groups, norm_scope: As in
            :class:`MeshClassifier`.
        fraction_to_keep, pools, reduce, config, dropout, dual_self_loops: As there,
            for the way down.

    Shapes:
        data: as for :class:`MeshClassifier`; returns ``[F, num_classes]``.

    Raises:
        ValueError: If options do not fit together.

    Source:
        Milano, Loquercio, Rosinol, Scaramuzza and Carlone, "Primal-Dual Mesh
        Convolutional Neural Networks", NeurIPS 2020.

    Example:
        >>> from pyg_pool.mesh import Mesh, primal_dual_graph
        >>> from pyg_pool.models import MeshUNet
        >>> flap = Mesh(
        ...     [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]]
        ... )
        >>> MeshUNet(1, 7, 4, channels=(16, 32))(primal_dual_graph(flap)).shape
        torch.Size([2, 4])
    """

    def __init__(
        self,
        in_channels: int,
        in_channels_dual: int,
        num_classes: int,
        *,
        channels: Sequence[int] = (32, 64, 128),
        channels_dual: Sequence[int] | None = None,
        heads: int = 1,
        num_skips: int = 1,
        block: Block = "res",
        norm: MeshNorm = "group",
        norm_groups: int = 16,
        norm_scope: NormScope = "mesh",
        fraction_to_keep: Shares = 0.7,
        pools: Pools | None = None,
        reduce: Reduction = "mean",
        config: Config = "A",
        dropout: float = 0.0,
        dual_self_loops: bool = False,
    ) -> None:
        super().__init__()
        given = self._given = named(MeshUNet, locals())
        widths = channel_pairs("MeshUNet", channels, channels_dual)
        if len(widths) < 2:
            raise ValueError(
                f"MeshUNet got channels={tuple(channels)}, expected at least two "
                f"widths; give one for each pooled block and one for the bridge."
            )
        self.encoder = MeshEncoder("MeshUNet", given, len(widths) - 1)
        self.heads = heads
        bridge = self.encoder.options.conv(self.encoder.out_channels, widths[-1])
        self.conv_after_encoder = bridge
        self.bn_primal_after_encoder = RowBatchNorm(bridge.out_channels)
        self.bn_dual_after_encoder = RowBatchNorm(bridge.out_channels_dual)
        for k, width in enumerate(widths[:-1]):
            self.add_module(f"upconv{k}", UpBlock(widths[k + 1], width, width))
        last = (num_classes, widths[0][1])
        self.final_conv = BlockOptions(1, 0).conv(widths[0], last)
        self.bn_primal = RowBatchNorm(num_classes)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        reset_all(self)

    def forward(self, data: Any) -> Tensor:
        """Returns the scores of each face."""
        return self.run(data).out

    def run(self, data: Any) -> MeshOutput:
        """Returns the scores together with the pooling steps."""
        down = self.encoder.encode(data.x, data.x_dual, finest_level(data))
        levels = down.levels
        out = self.conv_after_encoder(down.x, down.x_dual, *levels[-1].graphs)
        x = self.bn_primal_after_encoder(out.x).relu()
        x_dual = self.bn_dual_after_encoder(out.x_dual).relu()
        x, x_dual = self._averaged(x), self._averaged(x_dual)
        for k in reversed(range(len(down.pools))):
            skip, skip_dual = down.skips[k]
            x, x_dual = self.get_submodule(f"upconv{k}")(
                (x, x_dual),
                (self._averaged(skip), self._averaged(skip_dual)),
                down.pools[k],
                (levels[k], levels[k + 1]),
            )
        out = self.final_conv(x, x_dual, *levels[0].graphs)
        return MeshOutput(self.bn_primal(out.x), down.pools)

    def _averaged(self, x: Tensor) -> Tensor:
        """Mean over the heads of the way down."""
        if self.heads == 1:
            return x
        return x.unflatten(1, (self.heads, -1)).mean(1)

    def __repr__(self) -> str:
        """The call that builds it, without the arguments left at their defaults."""
        return spell_call(type(self), self._given)
