"""The way down of a primal-dual mesh network: blocks with pooling between them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

from torch import Tensor
from torch.nn import Module, ModuleList

from pyg_pool.errors import check_choice, check_features
from pyg_pool.models.pd_blocks import (
    BLOCKS,
    BlockOptions,
    Level,
    pool_level,
)
from pyg_pool.pool import PrimalDualPooling, PrimalDualPoolOutput

__all__ = ["Encoded", "MeshEncoder", "MeshOutput"]


@dataclass
class MeshOutput:
    """What a mesh network computed.

    Attributes:
        out: Scores, ``[B, classes]`` or ``[F, classes]``, as ``forward`` returns them.
        pools: The pooling steps, from the finest level.
    """

    out: Tensor
    pools: list[PrimalDualPoolOutput]

    @property
    def face_clusters(self) -> list[Tensor]:
        """Cluster of each face after each pooling step, ``[F]`` each."""
        maps: list[Tensor] = []
        for pool in self.pools:
            step = pool.selection.cluster
            maps.append(step.index_select(0, maps[-1]) if maps else step)
        return maps


@dataclass
class Encoded:
    """What the way down went through.

    Attributes:
        x: Features of the faces at the lowest level.
        x_dual: Features of the dual nodes there.
        levels: Graphs of all levels, the finest first.
        skips: Features of both graphs just before each pooling step.
        pools: The pooling steps.
    """

    x: Tensor
    x_dual: Tensor
    levels: list[Level]
    skips: list[tuple[Tensor, Tensor]]
    pools: list[PrimalDualPoolOutput]


class MeshEncoder(Module):
    """Blocks ``block0``, ``block1``, ... each followed by a pooling step.

    Args:
        owner: Name of the network, for messages.
        given: Arguments of the network by name.
        num_blocks: How many of its channels belong to the way down.
    """

    def __init__(
        self, owner: str, given: Mapping[str, Any], num_blocks: int | None = None
    ) -> None:
        super().__init__()
        self.owner = owner
        check_choice(owner, "block", given["block"], BLOCKS)
        check_choice(owner, "norm", given["norm"], ("group", "batch", "none"))
        check_choice(owner, "norm_scope", given["norm_scope"], ("mesh", "batch"))
        self.widths = channel_pairs(owner, given["channels"], given["channels_dual"])
        self.widths = self.widths[:num_blocks]
        self.in_channels = (given["in_channels"], given["in_channels_dual"])
        self.options = BlockOptions(
            heads=given["heads"],
            num_skips=given["num_skips"],
            norm=given["norm"],
            norm_groups=given["norm_groups"],
            norm_scope=given["norm_scope"],
            dropout=given["dropout"],
            dual_self_loops=given["dual_self_loops"],
        )
        width: tuple[int, int] = self.in_channels
        for k, target in enumerate(self.widths):
            block = BLOCKS[given["block"]](width, target, self.options)
            self.add_module(f"block{k}", block)
            width = block.out_channels  # type: ignore[assignment]
        self.out_channels = width
        self.pools = ModuleList(make_pools(owner, given, len(self.widths)))

    def encode(self, x: Tensor, x_dual: Tensor, level: Level) -> Encoded:
        """Goes down all levels."""
        x = check_features(self.owner, x, self.in_channels[0])
        x_dual = check_features(self.owner, x_dual, self.in_channels[1])
        levels, skips, pools = [level], [], []
        for k, pool in enumerate(self.pools):
            block = self.get_submodule(f"block{k}")
            x, x_dual, attention = block(x, x_dual, levels[-1])
            skips.append((x, x_dual))
            pooled = pool_level(pool, x, x_dual, attention, levels[-1])  # type: ignore[arg-type]
            x, x_dual = pooled.x, pooled.x_dual
            pools.append(pooled)
            levels.append(Level.of(pooled, level.batch_size))
        return Encoded(x, x_dual, levels, skips, pools)


def finest_level(data: Any) -> Level:
    """The graphs of a mesh or a batch of meshes."""
    size = getattr(data, "num_graphs", None)
    batch = getattr(data, "batch", None)
    level = Level.of(data, 1 if batch is None or size is None else int(size))
    if batch is None:
        level.batch_dual = None
    return level


def channel_pairs(
    owner: str, channels: Sequence[int], channels_dual: Sequence[int] | None
) -> list[tuple[int, int]]:
    """Widths of faces and dual nodes, block by block."""
    dual = channels if channels_dual is None else channels_dual
    if len(dual) != len(channels) or not channels:
        raise ValueError(
            f"{owner} got channels={tuple(channels)} and channels_dual={tuple(dual)}, "
            f"expected as many of both, at least one; give a width for each block."
        )
    return list(zip(channels, dual, strict=True))


def make_pools(
    owner: str, given: Mapping[str, Any], number: int
) -> list[PrimalDualPooling]:
    """One pooling operator for each block."""
    if given["pools"] is not None:
        pools = [copy.deepcopy(pool) for pool in given["pools"]]
        if len(pools) != number:
            raise ValueError(
                f"{owner} got {len(pools)} pools, expected {number}, one after each "
                f"block; give as many."
            )
        return pools
    share = given["fraction_to_keep"]
    shares = list(share) if isinstance(share, Sequence) else [share] * number
    if len(shares) != number:
        raise ValueError(
            f"{owner} got fraction_to_keep={tuple(shares)}, expected {number} numbers, "
            f"one for each block that pools; give as many, or one for all."
        )
    return [
        PrimalDualPooling(
            fraction_to_keep=each,
            reduce=given["reduce"],
            config=given["config"],
            dual_self_loops=given["dual_self_loops"],
        )
        for each in shares
    ]


def named(cls: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor by name, out of its local variables."""
    return {name: given[name] for name in signature(cls).parameters}
