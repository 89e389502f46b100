r"""Multi-head attention inside each group of rows, without a batch-wide matrix.

The weights are computed anew for the gradient, a chunk of queries at a time, so that
memory is O(sum of group size times chunk) in both directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.attention_blocks import AttentionBlock, attention_blocks
from pyg_pool.kernels.dispatch import is_traced
from pyg_pool.typing import OptTensor

__all__ = ["AttentionGroups", "group_attention"]


@dataclass(frozen=True)
class AttentionGroups:
    """Which queries see which keys, and how.

    Args:
        query: ``[Q]`` int64 group of each query, in any order.
        key: ``[K]`` int64 group of each key; the same object where it is the same.
        size: Number of groups.
        factor: ``[B]`` factor of the inner products of each group.
        heads: Number of heads, a divisor of the width.
        chunk_size: Weights per key that are held at a time.
        dropout: Rate at which weights are dropped.
        seed: ``[1]`` int64 seed of the dropout; needed where there is any.
    """

    query: Tensor
    key: Tensor
    size: int
    factor: Tensor
    heads: int = 1
    chunk_size: int = 256
    dropout: float = 0.0
    seed: OptTensor = None


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
        return _forward(q, k, v, groups, _blocks(groups))
    out: Tensor = _GroupAttention.apply(q, k, v, groups)
    return out


class _GroupAttention(torch.autograd.Function):
    """Keeps queries, keys and values only."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, groups: AttentionGroups
    ) -> Tensor:
        ctx.groups, ctx.blocks = groups, _blocks(groups)
        ctx.save_for_backward(q, k, v)
        return _forward(q, k, v, groups, ctx.blocks)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        q, k, v = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivatives: only torch's operations do
            out = _forward(q, k, v, ctx.groups, ctx.blocks)
            first = torch.autograd.grad(out, (q, k, v), grad, create_graph=True)
            return first[0], first[1], first[2], None
        return *_backward(q, k, v, grad, ctx.groups, ctx.blocks), None


def _blocks(groups: AttentionGroups) -> list[AttentionBlock]:
    return attention_blocks(groups.query, groups.key, groups.size)


def _chunks(
    groups: AttentionGroups, blocks: list[AttentionBlock]
) -> Iterator[tuple[AttentionBlock, torch.Generator | None]]:
    """Parts of all blocks; a generator of dropout that starts anew for every pass."""
    chance = None
    if groups.dropout > 0.0 and groups.seed is not None:
        chance = torch.Generator(groups.query.device)
        chance.manual_seed(int(groups.seed))
    for block in blocks:
        for chunk in block.chunks(max(groups.chunk_size // groups.heads, 1)):
            yield chunk, chance


def _heads(x: Tensor, rows: Tensor, here: Tensor, heads: int) -> Tensor:
    """Padded rows of all heads, ``[G, H, P, D]``, zeros where padded."""
    taken = x.index_select(0, rows.reshape(-1)).view(*rows.shape, heads, -1)
    # A NaN in a row that pads must not reach the group.
    return taken.masked_fill(~here[..., None, None], 0.0).transpose(1, 2)


def _weights(q: Tensor, k: Tensor, factor: Tensor, chunk: AttentionBlock) -> Tensor:
    """Attention weights of padded queries and keys, ``[G, H, P, K]``."""
    products = q @ k.transpose(-1, -2)
    products = products.masked_fill(~chunk.key_here[:, None, None], -torch.inf)
    # The factor comes last: times a large one, both of two products may be infinite.
    top = products.detach().amax(-1, keepdim=True)
    return ((products - top) * factor).softmax(-1)


def _kept(weights: Tensor, rate: float, chance: torch.Generator | None) -> OptTensor:
    """Factors of dropout, or nothing."""
    if chance is None:
        return None
    drawn = torch.rand(weights.shape, generator=chance, device=weights.device)
    return (drawn >= rate).to(weights.dtype) / (1.0 - rate)


def _forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    groups: AttentionGroups,
    blocks: list[AttentionBlock],
) -> Tensor:
    """The formula in differentiable operations."""
    out, places = [q.new_zeros(0, q.size(1))], [groups.query[:0]]
    for chunk, chance in _chunks(groups, blocks):
        ours, keys, values, factor = _taken(q, k, v, chunk, groups)
        weights = _weights(ours, keys, factor, chunk)
        kept = _kept(weights, groups.dropout, chance)
        weights = weights if kept is None else weights * kept
        rows = (weights @ values).transpose(1, 2).reshape(-1, q.size(1))
        here = chunk.query_here.reshape(-1).nonzero().view(-1)
        out.append(rows.index_select(0, here))
        places.append(chunk.query.reshape(-1).index_select(0, here))
    return q.new_zeros(q.shape).index_copy(0, torch.cat(places), torch.cat(out))


def _taken(
    q: Tensor, k: Tensor, v: Tensor, chunk: AttentionBlock, groups: AttentionGroups
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Padded queries, keys and values, and the factor of each group."""
    return (
        _heads(q, chunk.query, chunk.query_here, groups.heads),
        _heads(k, chunk.key, chunk.key_here, groups.heads),
        _heads(v, chunk.key, chunk.key_here, groups.heads),
        groups.factor.index_select(0, chunk.groups)[:, None, None, None],
    )


def _backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    grad: Tensor,
    groups: AttentionGroups,
    blocks: list[AttentionBlock],
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients in closed form, with the weights computed anew."""
    limit = slope_limit(q.dtype)
    grads = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for chunk, chance in _chunks(groups, blocks):
        ours, keys, values, factor = _taken(q, k, v, chunk, groups)
        weights = _weights(ours, keys, factor, chunk)
        up = _heads(grad, chunk.query, chunk.query_here, groups.heads)
        slope = up @ values.transpose(-1, -2)
        kept = _kept(weights, groups.dropout, chance)
        mixed = weights if kept is None else weights * kept
        slope = slope if kept is None else slope * kept
        slope = weights * (slope - (slope * weights).sum(-1, keepdim=True)) * factor
        slope = slope.clamp(-limit, limit)
        _add(grads[0], chunk.query, chunk.query_here, slope @ keys)
        _add(grads[1], chunk.key, chunk.key_here, slope.transpose(-1, -2) @ ours)
        _add(grads[2], chunk.key, chunk.key_here, mixed.transpose(-1, -2) @ up)
    return grads


def slope_limit(dtype: torch.dtype) -> float:
    """Largest slope of a product of large numbers; beyond it, it is rounding error."""
    return float(torch.finfo(dtype).max ** 0.4)


def _add(total: Tensor, rows: Tensor, here: Tensor, part: Tensor) -> None:
    """Adds padded rows of all heads in place; each row occurs once."""
    flat = part.transpose(1, 2).reshape(-1, total.size(1))
    inside = here.reshape(-1).nonzero().view(-1)
    places = rows.reshape(-1).index_select(0, inside)
    fresh = total.index_select(0, places) + flat.index_select(0, inside)
    total.index_copy_(0, places, fresh)


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
    return _forward(q, k, v, groups, _blocks(groups))


@torch.library.custom_op("pyg_pool::group_attention_backward", mutates_args=())
def _attention_backward_op(
    q: Tensor, k: Tensor, v: Tensor, grad: Tensor, query: Tensor, key: Tensor,
    factor: Tensor, seed: Tensor | None, size: int, heads: int, chunk_size: int,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    groups = _groups_of(query, key, factor, seed, size, heads, chunk_size, dropout)
    return _backward(q, k, v, grad, groups, _blocks(groups))


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
