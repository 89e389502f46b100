"""Networks on meshes: a classifier, a segmenter by face clusters, and a U-Net.

Milano et al., "Primal-Dual Mesh Convolutional Neural Networks", NeurIPS 2020. Weights
have the names of the authors' blocks. Departures: a mesh without dual nodes gets a
row of its own, options reach every block, and instance norms see one mesh.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import Linear

from pyg_pool.core import Selection, reduce
from pyg_pool.core.naming import spell_call
from pyg_pool.errors import check_choice
from pyg_pool.models.pd_blocks import (
    BLOCKS,
    NormScope,
    reset_all,
)
from pyg_pool.models.pd_encoder import (
    MeshEncoder,
    MeshOutput,
    finest_level,
    named,
)
from pyg_pool.models.pd_norms import MeshNorm
from pyg_pool.models.pd_unet import MeshUNet
from pyg_pool.pool import PrimalDualPooling

__all__ = ["MeshClassifier", "MeshOutput", "MeshSegmenter", "MeshUNet"]

Block = Literal["res", "down"]
Reduction = Literal["mean", "sum"]
Config = Literal["A", "B", "C"]
Readout = Literal["mean", "sum", "max"]
Shares = float | Sequence[float]
Pools = Sequence[PrimalDualPooling]


class MeshClassifier(MeshEncoder):
    r"""One row of scores for each mesh, from the dual nodes that pooling left.

    Args:
        in_channels: Features of a face.
        in_channels_dual: Features of a dual node.
        num_classes: Scores of a mesh.
        channels: Width of each block's faces, per head; a pooling step follows each.
        channels_dual: The same for dual nodes; ``None`` takes ``channels``.
        heads: Heads of each convolution, joined.
        num_skips: Convolutions after the first one in each block.
        block: ``"res"`` for blocks with a residual convolution, ``"down"`` for the
            older ones with instance norms.
        norm: Norm at the end of a ``"res"`` block: ``"group"``, ``"batch"``,
            ``"none"``.
        norm_groups: Groups of the group norm.
        norm_scope: ``"mesh"`` normalises each mesh of a ``"down"`` block by itself,
            ``"batch"`` all together.
        fraction_to_keep: Share of edges that each pooling step keeps, one for all or
            one for each.
        pools: Pooling operators to use instead, one for each block (copied).
        reduce: How pooling merges features: ``"mean"`` or ``"sum"``.
        readout: How the dual nodes of a mesh become a vector: ``"mean"``, ``"sum"``
            or ``"max"``; a mesh without any gives zeros.
        head_channels: Width of the hidden layer after it.
        config: Kind of the dual graphs.
        dropout: Rate at which attention is dropped.
        dual_self_loops: Whether dual nodes attend to themselves.

    Shapes:
        data: a mesh or a batch of them with ``x``, ``x_dual``, ``edge_index``,
        ``edge_index_dual``, ``edge_to_dual`` and, in a batch, ``batch`` and
        ``batch_dual``; returns ``[B, num_classes]``.

    Raises:
        ValueError: If options do not fit together.

    Note:
        The defaults are the authors' for SHREC: 567,226 weights with 30 classes.

    Source:
        Milano, Loquercio, Rosinol, Scaramuzza and Carlone, "Primal-Dual Mesh
        Convolutional Neural Networks", NeurIPS 2020.

    Example:
        >>> from pyg_pool.models import MeshClassifier
        >>> model = MeshClassifier(1, 7, 30)
        >>> sum(weight.numel() for weight in model.parameters())
        567226
    """

    def __init__(
        self,
        in_channels: int,
        in_channels_dual: int,
        num_classes: int,
        *,
        channels: Sequence[int] = (64, 128),
        channels_dual: Sequence[int] | None = None,
        heads: int = 3,
        num_skips: int = 1,
        block: Block = "res",
        norm: MeshNorm = "group",
        norm_groups: int = 16,
        norm_scope: NormScope = "mesh",
        fraction_to_keep: Shares = 0.8,
        pools: Pools | None = None,
        reduce: Reduction = "mean",
        readout: Readout = "mean",
        head_channels: int = 100,
        config: Config = "A",
        dropout: float = 0.0,
        dual_self_loops: bool = False,
    ) -> None:
        given = named(MeshClassifier, locals())
        check_choice("MeshClassifier", "readout", readout, ("mean", "sum", "max"))
        super().__init__("MeshClassifier", given)
        self._given = given
        self.readout = readout
        self.fc1 = Linear(self.out_channels[1], head_channels)
        self.fc2 = Linear(head_channels, num_classes)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        reset_all(self)

    def forward(self, data: Any) -> Tensor:
        """Returns the scores of each mesh."""
        return self.run(data).out

    def run(self, data: Any) -> MeshOutput:
        """Returns the scores together with the pooling steps."""
        down = self.encode(data.x, data.x_dual, finest_level(data))
        rows, last = down.x_dual, down.levels[-1]
        nodes = torch.arange(rows.size(0), device=rows.device)
        owner = torch.zeros_like(nodes) if last.batch_dual is None else last.batch_dual
        meshes = Selection(nodes, rows.size(0), owner, last.batch_size, kind="hard")
        read = reduce(rows, meshes, self.readout)
        return MeshOutput(self.fc2(self.fc1(read).relu()), down.pools)

    def __repr__(self) -> str:
        """The call that builds it, without the arguments left at their defaults."""
        return spell_call(type(self), self._given)


class MeshSegmenter(MeshEncoder):
    r"""Scores of face clusters, given to each of their faces.

    Args:
        in_channels: Features of a face.
        in_channels_dual: Features of a dual node.
        num_classes: Scores of a face.
        channels: Width of each pooled block's faces, per head; a last block without
            pooling gives the scores.
        channels_dual: The same for dual nodes; ``None`` takes ``channels``.
        heads, num_skips, block, norm, norm_groups, norm_scope: As in
            :class:`MeshClassifier`.
        fraction_to_keep, pools, reduce, config, dropout, dual_self_loops: As there.

    Shapes:
        data: as for :class:`MeshClassifier`; returns ``[F, num_classes]``.

    Raises:
        ValueError: If options do not fit together.

    Note:
        The clusters of the last level, ``run(data).face_clusters[-1]``, are the
        regions that get one label each.

    Source:
        Milano, Loquercio, Rosinol, Scaramuzza and Carlone, "Primal-Dual Mesh
        Convolutional Neural Networks", NeurIPS 2020.

    Example:
        >>> from pyg_pool.mesh import Mesh, primal_dual_graph
        >>> from pyg_pool.models import MeshSegmenter
        >>> flap = Mesh(
        ...     [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]]
        ... )
        >>> MeshSegmenter(1, 7, 4, channels=(8,))(primal_dual_graph(flap)).shape
        torch.Size([2, 4])
    """

    def __init__(
        self,
        in_channels: int,
        in_channels_dual: int,
        num_classes: int,
        *,
        channels: Sequence[int] = (64, 96),
        channels_dual: Sequence[int] | None = None,
        heads: int = 1,
        num_skips: int = 1,
        block: Block = "down",
        norm: MeshNorm = "group",
        norm_groups: int = 16,
        norm_scope: NormScope = "mesh",
        fraction_to_keep: Shares = 0.8,
        pools: Pools | None = None,
        reduce: Reduction = "mean",
        config: Config = "A",
        dropout: float = 0.0,
        dual_self_loops: bool = False,
    ) -> None:
        given = named(MeshSegmenter, locals())
        super().__init__("MeshSegmenter", given)
        self._given = given
        options = replace(self.options, heads=1, norm="none")
        width: Any = self.out_channels
        target = (num_classes, self.widths[-1][1])
        self.final_block = BLOCKS[block](width, target, options)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        reset_all(self)

    def forward(self, data: Any) -> Tensor:
        """Returns the scores of each face."""
        return self.run(data).out

    def run(self, data: Any) -> MeshOutput:
        """Returns the scores together with the pooling steps."""
        down = self.encode(data.x, data.x_dual, finest_level(data))
        scores, _, _ = self.final_block(down.x, down.x_dual, down.levels[-1])
        result = MeshOutput(scores, down.pools)
        result.out = scores.index_select(0, result.face_clusters[-1])
        return result

    def __repr__(self) -> str:
        """The call that builds it, without the arguments left at their defaults."""
        return spell_call(type(self), self._given)
