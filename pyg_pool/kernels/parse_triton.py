"""Triton twin of ``parse.py`` and ``components.py``: integer work with atomics only.

Minima and maxima of integers do not depend on their order, so these are deterministic.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["components", "dominant_links", "link_roots"]

BLOCK = 256


@triton.jit
def _best_kernel(source, target, score, best, length, block: tl.constexpr):
    e = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    s, t = tl.load(source + e, e < length, 0), tl.load(target + e, e < length, 0)
    value = tl.load(score + e, e < length, 0)
    tl.atomic_max(best + s, value, (e < length) & (s != t))


@triton.jit
def _link_kernel(source, target, score, best, link, length, block: tl.constexpr):
    e = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = e < length
    s, t = tl.load(source + e, inside, 0), tl.load(target + e, inside, 0)
    is_best = tl.load(score + e, inside, 0) == tl.load(best + s, inside, 0)
    tl.atomic_min(link + s, t, inside & (s != t) & is_best)


@triton.jit
def _jump_kernel(ahead, lowest, ahead_out, lowest_out, size, block: tl.constexpr):
    u = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    v = tl.load(ahead + u, u < size, 0)
    low = tl.minimum(tl.load(lowest + u, u < size, 0), tl.load(lowest + v, u < size, 0))
    tl.store(lowest_out + u, low, u < size)
    tl.store(ahead_out + u, tl.load(ahead + v, u < size, 0), u < size)


@triton.jit
def _hook_kernel(source, target, parent, new, length, block: tl.constexpr):
    e = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = e < length
    s, t = tl.load(source + e, inside, 0), tl.load(target + e, inside, 0)
    up, other = tl.load(parent + s, inside, 0), tl.load(parent + t, inside, 0)
    high = tl.load(parent + up, inside, 0)
    far = tl.load(parent + other, inside, 0)
    tl.atomic_min(new + up, far, inside)
    tl.atomic_min(new + s, far, inside)
    tl.atomic_min(new + other, high, inside)
    tl.atomic_min(new + t, high, inside)


def _sortable(score: Tensor) -> Tensor:
    """Integers in the order of the scores; NaN is below all."""
    wide = score.double() if score.dtype == torch.float64 else score.float()
    wide = torch.where(wide == 0, 0.0, wide)  # no negative zero
    bits = wide.view(torch.int64 if wide.dtype == torch.float64 else torch.int32).long()
    lowest = torch.iinfo(torch.int64).min
    top = 2**63 - 1 if wide.dtype == torch.float64 else 2**31 - 1
    key = torch.where(bits < 0, bits ^ top, bits)
    return key.masked_fill(wide.isnan(), lowest)


@torch.library.custom_op("pyg_pool::dominant_links", mutates_args=())
def dominant_links(edge_index: Tensor, score: Tensor, num_nodes: int) -> Tensor:
    """End of the best edge of each node, the lowest among equals; itself without."""
    source, target = edge_index[0].contiguous(), edge_index[1].contiguous()
    key, lowest = _sortable(score), torch.iinfo(torch.int64).min
    best = source.new_full((num_nodes,), lowest)
    link = source.new_full((num_nodes,), num_nodes)
    if source.numel() > 0:
        # An edge with NaN becomes a loop, which no node may choose.
        target = torch.where(key == lowest, source, target)
        grid = (triton.cdiv(source.numel(), BLOCK),)
        args = source, target, key, best
        _best_kernel[grid](*args, source.numel(), BLOCK)
        _link_kernel[grid](*args, link, source.numel(), BLOCK)
    nodes = torch.arange(num_nodes, device=link.device)
    return torch.where(link == num_nodes, nodes, link)


@dominant_links.register_fake
def _(edge_index: Tensor, score: Tensor, num_nodes: int) -> Tensor:
    return edge_index.new_empty(num_nodes)


@torch.library.custom_op("pyg_pool::link_roots", mutates_args=())
def link_roots(link: Tensor) -> Tensor:
    """The lowest node of the cycle that each node's links lead to."""
    size = link.numel()
    ahead, lowest = link.clone(), torch.arange(size, device=link.device)
    other = torch.empty_like(ahead), torch.empty_like(lowest)
    grid = (triton.cdiv(max(1, size), BLOCK),)
    for _ in range(size.bit_length() if size else 0):
        _jump_kernel[grid](ahead, lowest, *other, size, BLOCK)
        (ahead, lowest), other = other, (ahead, lowest)
    return lowest.index_select(0, ahead)


@link_roots.register_fake
def _(link: Tensor) -> Tensor:
    return torch.empty_like(link)


@torch.library.custom_op("pyg_pool::components", mutates_args=())
def components(edge_index: Tensor, num_nodes: int) -> Tensor:
    """The lowest node of the component of each node; one look per round."""
    source, target = edge_index[0].contiguous(), edge_index[1].contiguous()
    parent = torch.arange(num_nodes, device=edge_index.device)
    if source.numel() == 0:
        return parent
    grid = (triton.cdiv(source.numel(), BLOCK),)
    while True:
        new = parent.index_select(0, parent)
        _hook_kernel[grid](source, target, parent, new, source.numel(), BLOCK)
        if torch.equal(new, parent):
            return parent
        parent = new


@components.register_fake
def _(edge_index: Tensor, num_nodes: int) -> Tensor:
    return edge_index.new_empty(num_nodes)
