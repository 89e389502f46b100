r"""Multi-head attention inside each group of rows, without a batch-wide matrix.

The weights are computed anew for the gradient, a chunk of queries at a time, so that
memory is O(sum of group size times chunk) in both directions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.attention_flash import (
    flash_backward,
    flash_blocks,
    flash_forward,
    takes_flash,
)
from pyg_pool.kernels.attention_native import (
    AttentionGroups,
    blocks_of,
    native_backward,
    native_forward,
)
from pyg_pool.kernels.derive import gradients
from pyg_pool.kernels.dispatch import is_traced
from pyg_pool.kernels.group_attention_twin import (
    in_rows,
    twin_backward,
    twin_forward,
    twin_plan,
)
from pyg_pool.typing import OptTensor

__all__ = ["AttentionGroups", "group_attention", "self_attention"]


def group_attention(q: Tensor, k: Tensor, v: Tensor, groups: AttentionGroups) -> Tensor:
    r"""Lets each query attend to the keys of its group.

    .. math::
        y_i = \sum_j \mathrm{softmax}_j(\phi_g\, q_i \cdot k_j)\, v_j, \qquad
        g_i = g_j = g

    for each head, which has its own part of the channels.

    Args:
        q: Queries.
        k: Keys.
        v: Values.
        groups: Groups of both sides and options.

    Returns:
        One row per query; zeros where the group has no key.

    Shapes:
        q: ``[Q, F]``; k: ``[K, F]``; v: ``[K, F]``; returns ``[Q, F]``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.group_attention import (
        ...     AttentionGroups, group_attention
        ... )
        >>> index = torch.tensor([0, 0, 1])
        >>> groups = AttentionGroups(index, index, 2, torch.ones(2))
        >>> v = torch.tensor([[2.0], [4.0], [7.0]])
        >>> group_attention(torch.zeros(3, 1), torch.zeros(3, 1), v, groups)
        tensor([[3.],
                [3.],
                [7.]])
    """
    parts = _parts_of(groups)
    if torch.compiler.is_compiling():
        traced: Tensor = _attention_op(q, k, v, *parts)
        return traced
    if is_traced():
        return native_forward(q, k, v, groups, blocks_of(groups))
    out: Tensor = _GroupAttention.apply(q, k, v, groups)
    return out


def self_attention(qkv: Tensor, groups: AttentionGroups) -> Tensor:
    """The same for queries, keys and values side by side in one matrix.

    Shapes:
        qkv: ``[N, 3F]``; returns ``[N, F]``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.group_attention import (
        ...     AttentionGroups, self_attention
        ... )
        >>> index = torch.tensor([0, 0])
        >>> groups = AttentionGroups(index, index, 1, torch.ones(1))
        >>> self_attention(torch.tensor([[0.0, 0.0, 2.0], [0.0, 0.0, 4.0]]), groups)
        tensor([[3.],
                [3.]])
    """
    if is_traced() or not takes_flash(qkv, groups):
        q, k, v = qkv.chunk(3, 1)
        return group_attention(q, k, v, groups)
    # The gradients are written where they belong, without a copy.
    out: Tensor = _SelfAttention.apply(qkv, groups)
    return out


class _SelfAttention(torch.autograd.Function):
    """Torch's kernel on one matrix."""

    @staticmethod
    def forward(ctx: Any, qkv: Tensor, groups: AttentionGroups) -> Tensor:
        ctx.groups, ctx.plan = groups, twin_plan(qkv, groups)
        if ctx.plan is not None:
            qkv = qkv.contiguous()
            out, total = twin_forward([qkv], groups, ctx.plan)
            ctx.save_for_backward(qkv, out, total)
            return out
        ctx.blocks = flash_blocks(groups)
        out, kept = flash_forward([qkv], groups, ctx.blocks)
        ctx.save_for_backward(qkv, out, *kept)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, None]:
        qkv, out, *kept = ctx.saved_tensors
        if torch.is_grad_enabled():
            q, k, v = qkv.chunk(3, 1)
            again = native_forward(q, k, v, ctx.groups, blocks_of(ctx.groups))
            return gradients(again, [qkv], grad)[0], None
        if ctx.plan is not None:
            return twin_backward([qkv], grad, out, kept[0], ctx.groups, ctx.plan)[
                0
            ], None
        found = flash_backward([qkv], grad, out, kept, ctx.groups, ctx.blocks)
        return found[0], None


class _GroupAttention(torch.autograd.Function):
    """Keeps queries, keys and values, and a number per query and head."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, groups: AttentionGroups
    ) -> Tensor:
        ctx.groups, ctx.is_flash = groups, takes_flash(q, groups)
        ctx.plan = twin_plan(q, groups) if ctx.is_flash else None
        if ctx.plan is not None:
            q, k, v = in_rows(q, k, v)
            out, total = twin_forward([q, k, v], groups, ctx.plan)
            ctx.save_for_backward(q, k, v, out, total)
            return out
        if ctx.is_flash:
            ctx.blocks = flash_blocks(groups)
            out, kept = flash_forward([q, k, v], groups, ctx.blocks)
            ctx.save_for_backward(q, k, v, out, *kept)
            return out
        ctx.blocks = blocks_of(groups)
        ctx.save_for_backward(q, k, v)
        return native_forward(q, k, v, groups, ctx.blocks)

    @staticmethod
    def backward(
        ctx: Any, grad: Tensor
    ) -> tuple[OptTensor, OptTensor, OptTensor, None]:
        q, k, v, *kept = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivatives: only torch's operations do
            blocks = blocks_of(ctx.groups)
            out = native_forward(q, k, v, ctx.groups, blocks)
            first = gradients(out, [q, k, v], grad)
            return first[0], first[1], first[2], None
        if ctx.plan is not None:
            found = twin_backward(
                [q, k, v], grad, kept[0], kept[1], ctx.groups, ctx.plan
            )
            return found[0], found[1], found[2], None
        if ctx.is_flash:
            out, *kept = kept
            found = flash_backward([q, k, v], grad, out, kept, ctx.groups, ctx.blocks)
            return found[0], found[1], found[2], None
        return *native_backward(q, k, v, grad, ctx.groups, ctx.blocks), None


def _parts_of(groups: AttentionGroups) -> tuple[Any, ...]:
    """The options as a traced operation takes them."""
    return (
        groups.query, groups.key, groups.factor, groups.seed,
        groups.size, groups.heads, groups.chunk_size, groups.dropout,
    )  # fmt: skip


def _groups_of(
    query: Tensor, key: Tensor, factor: Tensor, seed: Tensor | None,
    size: int, heads: int, chunk_size: int, dropout: float,
) -> AttentionGroups:  # fmt: skip
    return AttentionGroups(query, key, size, factor, heads, chunk_size, dropout, seed)


# How the blocks are cut depends on the data, which a traced graph cannot hold.
@torch.library.custom_op("pyg_pool::group_attention", mutates_args=())
def _attention_op(
    q: Tensor, k: Tensor, v: Tensor, query: Tensor, key: Tensor, factor: Tensor,
    seed: Tensor | None, size: int, heads: int, chunk_size: int, dropout: float,
) -> Tensor:  # fmt: skip
    groups = _groups_of(query, key, factor, seed, size, heads, chunk_size, dropout)
    if takes_flash(q, groups):
        return flash_forward([q, k, v], groups, flash_blocks(groups))[0]
    return native_forward(q, k, v, groups, blocks_of(groups))


@torch.library.custom_op("pyg_pool::group_attention_backward", mutates_args=())
def _attention_backward_op(
    q: Tensor, k: Tensor, v: Tensor, grad: Tensor, query: Tensor, key: Tensor,
    factor: Tensor, seed: Tensor | None, size: int, heads: int, chunk_size: int,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    groups = _groups_of(query, key, factor, seed, size, heads, chunk_size, dropout)
    return native_backward(q, k, v, grad, groups, blocks_of(groups))


@_attention_op.register_fake
def _(q: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(q, memory_format=torch.contiguous_format)


@_attention_backward_op.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    form = torch.contiguous_format
    return (
        torch.empty_like(q, memory_format=form),
        torch.empty_like(k, memory_format=form),
        torch.empty_like(v, memory_format=form),
    )


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:6], *([] if inputs[6] is None else [inputs[6]]))
    ctx.options = inputs[7:]


def _traced_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    q, k, v, query, key, factor, *seed = ctx.saved_tensors
    found = _attention_backward_op(
        q, k, v, grad, query, key, factor, seed[0] if seed else None, *ctx.options
    )
    return (*found, *[None] * 8)


_attention_op.register_autograd(_traced_backward, setup_context=_setup)
