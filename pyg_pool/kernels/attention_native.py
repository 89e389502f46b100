"""Attention inside groups in torch's own operations, on padded blocks of groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_pool.kernels.attention_blocks import AttentionBlock, attention_blocks
from pyg_pool.typing import OptTensor

__all__ = [
    "AttentionGroups",
    "blocks_of",
    "native_backward",
    "native_forward",
    "slope_limit",
]


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


def blocks_of(groups: AttentionGroups) -> list[AttentionBlock]:
    """Blocks of groups of similar size."""
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


def native_forward(
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


def native_backward(
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
