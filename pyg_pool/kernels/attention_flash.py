"""Attention inside groups by torch's own kernel for the CPU, block after block.

The kernel never holds a matrix of weights. It takes one factor for all of its inner
products, so a block of groups with equal factors is a call; where the factor is
above 1, products may be too large for it and :mod:`attention_native` takes over, as
it does where this version of torch lacks the kernel, which is none of its public ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.attention_blocks import AttentionBlock, attention_blocks
from pyg_pool.kernels.attention_native import (
    AttentionGroups,
    native_backward,
    native_forward,
)
from pyg_pool.kernels.dispatch import current_backend, is_vectorised

__all__ = ["flash_backward", "flash_blocks", "flash_forward", "takes_flash"]

Parts = Sequence[Tensor]

NAME = "_scaled_dot_product_flash_attention_for_cpu"
NEEDED = {"attn_mask", "scale"}


def find_kernel(name: str) -> Any:
    """The private operation of torch of that name, ``None`` where it is not known."""
    found: Any = getattr(torch.ops.aten, name, None)
    if found is None or not hasattr(found, "default"):
        return None
    takes = {each.name for each in found.default._schema.arguments}
    return found.default if takes >= NEEDED else None


@cache
def kernel_pair() -> tuple[Any, Any] | None:
    """The kernel and its gradient, ``None`` where one of them is not there."""
    forward, backward = find_kernel(NAME), find_kernel(f"{NAME}_backward")
    return None if forward is None or backward is None else (forward, backward)


def takes_flash(q: Tensor, groups: AttentionGroups) -> bool:
    """Whether torch's kernel can take these rows; ``native`` is the reference."""
    if kernel_pair() is None or is_vectorised() or current_backend() == "native":
        return False
    is_wide = q.dtype in (torch.float32, torch.float64)
    return is_wide and q.device.type == "cpu" and groups.dropout == 0.0


def flash_blocks(groups: AttentionGroups) -> list[AttentionBlock]:
    """Blocks of groups of similar size and of one factor; large groups are alone."""
    factor, kind = groups.factor, None
    if factor.numel() > 0 and not bool(factor.min() == factor.max()):
        # All that the kernel cannot take may share a block.
        _, kind = torch.where(factor <= 1.0, factor, 2.0).unique(return_inverse=True)
    return attention_blocks(groups.query, groups.key, groups.size, kind, alone=True)


def flash_forward(
    parts: Parts, groups: AttentionGroups, blocks: list[AttentionBlock]
) -> tuple[Tensor, list[Tensor]]:
    """Result, and one number per query and head of each block for the gradient.

    Args:
        parts: Queries, keys and values, or one matrix with all of them.
        groups: Groups and options.
        blocks: What :func:`flash_blocks` makes of them.
    """
    q, k, v = _split(parts)
    kernel, _ = kernel_pair() or (None, None)
    out, kept = q.new_zeros(q.shape), []
    for block in blocks:
        scale = float(groups.factor[block.groups[0]])
        if kernel is None or not scale <= 1.0:
            out += native_forward(q, k, v, groups, [block])
            kept.append(q.new_zeros(0))
            continue
        ours, keys, values = _taken(parts, block, groups.heads)
        found, total = kernel(
            ours, keys, values, 0.0, False, attn_mask=_mask(block, q), scale=scale
        )
        _write(out, block.query, block.query_span, found)
        kept.append(total)
    return out, kept


def flash_backward(
    parts: Parts,
    grad: Tensor,
    out: Tensor,
    kept: Sequence[Tensor],
    groups: AttentionGroups,
    blocks: list[AttentionBlock],
) -> list[Tensor]:
    """Gradients of the parts."""
    _, kernel = kernel_pair() or (None, None)
    into = [torch.zeros_like(part) for part in parts]
    places = _split(into)
    for block, total in zip(blocks, kept, strict=True):
        scale = float(groups.factor[block.groups[0]])
        if kernel is None or not scale <= 1.0:
            q, k, v = _split(parts)
            found = native_backward(q, k, v, grad, groups, [block])
            for place, part in zip(places, found, strict=True):
                place += part
            continue
        ours, keys, values = _taken(parts, block, groups.heads)
        result = _rows(out, block.query, block.query_span, groups.heads)
        up = _rows(grad, block.query, block.query_span, groups.heads)
        if block.query_span is None:
            # A row that pads is that of a node, whose gradient must count once.
            up = up * block.query_here[:, None, :, None].to(up.dtype)
        slopes = kernel(
            up, ours, keys, values, result, total, 0.0, False,
            attn_mask=_mask(block, grad), scale=scale,
        )  # fmt: skip
        if len(parts) == 1 and block.query_span is None:
            joint = torch.stack([slope.transpose(1, 2) for slope in slopes], 2)
            into[0].index_add_(0, block.query.view(-1), joint.view(-1, into[0].size(1)))
            continue
        _add(places[0], block.query, block.query_span, slopes[0])
        _add(places[1], block.key, block.key_span, slopes[1])
        _add(places[2], block.key, block.key_span, slopes[2])
    return into


def _split(parts: Parts) -> Parts:
    """Queries, keys and values."""
    return parts[0].chunk(3, 1) if len(parts) == 1 else parts


def _taken(parts: Parts, block: AttentionBlock, heads: int) -> Parts:
    """Rows of a block of queries, keys and values."""
    if len(parts) == 1:
        rows = _rows(parts[0], block.query, block.query_span, 3 * heads)
        return rows.chunk(3, 1)
    return (
        _rows(parts[0], block.query, block.query_span, heads),
        _rows(parts[1], block.key, block.key_span, heads),
        _rows(parts[2], block.key, block.key_span, heads),
    )


def _rows(x: Tensor, rows: Tensor, span: slice | None, heads: int) -> Tensor:
    """Rows of a block, ``[G, H, P, D]``; a view where they lie side by side."""
    taken = x[span] if span is not None else x.index_select(0, rows.view(-1))
    return taken.view(*rows.shape, heads, -1).transpose(1, 2)


def _mask(block: AttentionBlock, like: Tensor) -> Tensor | None:
    """What is added to the products of a block, nothing where all keys are there."""
    if block.key_span is not None:
        return None
    none = like.new_zeros(block.key_here.shape)
    return none.masked_fill_(~block.key_here, -torch.inf)[:, None, None]


def _write(out: Tensor, rows: Tensor, span: slice | None, part: Tensor) -> None:
    """Puts rows of all heads in place; padded ones repeat a row and its result."""
    flat = part.transpose(1, 2).reshape(-1, out.size(1))
    if span is not None:
        out[span] = flat
    else:
        out.index_copy_(0, rows.view(-1), flat)


def _add(total: Tensor, rows: Tensor, span: slice | None, part: Tensor) -> None:
    """Puts gradients in place; those of padded rows are 0."""
    flat = part.transpose(1, 2).reshape(-1, total.size(1))
    if span is not None:
        total[span] = flat
    else:
        total.index_add_(0, rows.view(-1), flat)
