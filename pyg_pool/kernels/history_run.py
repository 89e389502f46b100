"""Blocks of groups of a history, and the compiled kernels on their rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyg_pool.kernels.attention_native import AttentionGroups
from pyg_pool.kernels.group_attention_twin import TwinPlan, twin_room
from pyg_pool.kernels.layer_mix import History
from pyg_pool.typing import OptTensor

__all__ = ["Block", "BlockPlan", "BlockRun", "BlockWeights", "call"]

# Rows of a block, unless a group is larger.
ROWS = 512

Softened = Callable[[Tensor], Tensor]


class BlockWeights(NamedTuple):
    """Weights of the readout.

    Args:
        slope: ``[C, W + L]`` map of the last layer to what the history is multiplied
            with for the logits; ``None`` if these are not wanted.
        constant: ``[1, W + L]`` constant of it.
        maps: ``[F, W + L]`` maps of all layers, then their constants.
        in_weight: ``[3F, F]``.
        in_bias: ``[3F]``.
        out_weight: ``[F, F]``.
        out_bias: ``[F]``.
        norm_weight: ``[F]``.
        norm_bias: ``[F]``.
    """

    slope: OptTensor
    constant: OptTensor
    maps: Tensor
    in_weight: Tensor
    in_bias: Tensor
    out_weight: Tensor
    out_bias: Tensor
    norm_weight: Tensor
    norm_bias: Tensor


class Block(NamedTuple):
    """Groups and rows of a block."""

    first: int
    last: int
    start: int
    stop: int


@dataclass(frozen=True)
class BlockPlan:
    """Everything but numbers.

    Args:
        history: The history; its index ascends and its scale is 1.
        groups: Attention of the nodes among themselves.
        twin: Plan of that attention.
        softened: Makes weights of layers from logits, ``[B, L]`` both.
        mean: Whether the mean over nodes is wanted, not the sum.
        again: The same readout in differentiable steps, of x and the weights.
    """

    history: History
    groups: AttentionGroups
    twin: TwinPlan
    softened: Softened
    mean: bool
    again: Callable[..., Tensor]

    def blocks(self) -> list[Block]:
        """Cuts the groups into blocks."""
        ptr = self.twin.query_ptr.tolist()
        out, first = [], 0
        for last in range(1, len(ptr)):
            if last == len(ptr) - 1 or ptr[last + 1] - ptr[first] > ROWS:
                out.append(Block(first, last, ptr[first], ptr[last]))
                first = last
        return out


class BlockRun:
    """Kernels on the rows of a block, and memory for all blocks."""

    def __init__(self, x: Tensor, weights: BlockWeights, plan: BlockPlan) -> None:
        from pyg_pool.kernels import (
            group_attention_numba,
            history_blocks_numba,
            layer_mix_numba,
        )

        self.mix, self.norm = layer_mix_numba, history_blocks_numba
        self.attention = group_attention_numba
        self.x, self.weights, self.plan, self.blocks = x, weights, plan, plan.blocks()
        self.width, self.heads = weights.maps.size(0), plan.groups.heads
        self.layers = plan.history.num_layers
        self.local = plan.history.index.clone()
        for block in self.blocks:
            self.local[block.start : block.stop] -= block.first
        self.most = max(block.stop - block.start for block in self.blocks)
        self.joint = x.size(1) + self.layers
        self.room = twin_room(plan.twin, self.width // self.heads)
        self.total = torch.empty(plan.groups.size * self.layers, dtype=torch.float64)

    def memory(self, width: int) -> Tensor:
        """Rows for the largest block."""
        return torch.empty(self.most, width)

    def head(self, block: Block) -> tuple[int, int, int]:
        """Rows, columns and layers of a block."""
        return block.stop - block.start, self.x.size(1), self.layers

    def asked(self, block: Block, out: Tensor) -> Tensor:
        """What the history is multiplied with."""
        begin, end = self.plan.history.starts[-2:]
        rows = self.x[block.start : block.stop, begin:end]
        constant: Any = self.weights.constant
        slope: Any = self.weights.slope
        return torch.addmm(constant, rows, slope, out=out)

    def mixed(self, block: Block, alpha: Tensor, out: Tensor) -> Tensor:
        """Weighted activations."""
        call(
            self.mix.mix, *self.head(block), self.plan.history.first,
            alpha[block.first :], self.x[block.start :], self.local[block.start :],
            self.plan.history.scale, out,
        )  # fmt: skip
        return out

    def attend(self, block: Block, kernel: Any, qkv: Tensor, *last: int) -> None:
        """Attention of a block, with addresses of the whole."""
        depth, step = self.width // self.heads, self.width * 4
        stride, twin, first = 3 * self.width, self.plan.twin, qkv.data_ptr()
        call(
            kernel, block.first, block.last, self.heads, depth, stride, stride,
            first, first + step, first + 2 * step, twin.queries, twin.queries,
            twin.query_ptr, twin.query_ptr, self.plan.groups.factor, self.room, *last,
        )  # fmt: skip

    def dots(self, block: Block, r: Tensor, out: Tensor) -> None:
        """Sums of the products with the history, for each layer."""
        n, width, layers = self.head(block)
        call(
            self.mix.dots, n, width, layers, block.last - block.first,
            self.plan.history.first, r, self.x[block.start :],
            self.local[block.start :], self.plan.history.scale, self.total,
            out[block.first :],
        )  # fmt: skip


def call(kernel: Any, *args: int | Tensor) -> None:
    """Calls a kernel for float32 with numbers and addresses."""
    kernel.single(*(a.data_ptr() if isinstance(a, Tensor) else a for a in args))
