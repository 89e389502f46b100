"""The compiled CPU twin of attention inside groups: where it runs, and its calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyg_pool.kernels.attention_native import AttentionGroups
from pyg_pool.kernels.dispatch import runs_numba
from pyg_pool.kernels.segment import segment_count
from pyg_pool.kernels.threads import shared

__all__ = [
    "TwinPlan",
    "in_rows",
    "twin_backward",
    "twin_forward",
    "twin_plan",
    "twin_room",
]

# Beyond, torch's kernel is as fast and its blocks stay in the cache.
MOST, MOST_KEYS = 512, 2048


class TwinPlan(NamedTuple):
    """Rows of both sides, group after group.

    Args:
        queries: Rows of the queries.
        keys: Rows of the keys.
        query_ptr: Where each group of queries begins.
        key_ptr: Where each group of keys begins.
        most_keys: Keys of the largest group.
        pairs: A bound of the number of pairs.
    """

    queries: Tensor
    keys: Tensor
    query_ptr: Tensor
    key_ptr: Tensor
    most_keys: int
    pairs: int


def twin_plan(x: Tensor, groups: AttentionGroups) -> TwinPlan | None:
    """A plan if the twin takes these rows, else ``None``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.attention_native import AttentionGroups
        >>> from pyg_pool.kernels.group_attention_twin import twin_plan
        >>> index = torch.zeros(4096, dtype=torch.long)
        >>> twin_plan(torch.rand(4096, 4), AttentionGroups(index, index, 1, index))
    """
    is_known = x.dtype == torch.float32 and groups.dropout == 0.0 and x.numel() > 0
    if not is_known or not runs_numba("attend", x.numel(), x):
        return None
    if not float(groups.factor.max()) <= 1.0:  # products may be too large
        return None
    queries, query_ptr, most = _side(groups.query, groups.size)
    same = groups.key is groups.query
    keys, key_ptr, most_keys = (
        (queries, query_ptr, most) if same else _side(groups.key, groups.size)
    )
    if most_keys > (MOST_KEYS if most <= MOST else MOST):
        return None
    pairs = groups.query.numel() * most_keys
    return TwinPlan(queries, keys, query_ptr, key_ptr, most_keys, pairs)


def _side(index: Tensor, size: int) -> tuple[Tensor, Tensor, int]:
    """Rows in the order of their groups, where these begin, and the largest size."""
    count = segment_count(index, size)
    ptr = torch.zeros(size + 1, dtype=torch.int64)
    torch.cumsum(count, 0, out=ptr[1:])
    if bool((index[1:] >= index[:-1]).all()):
        rows = torch.arange(index.numel())
    else:
        rows = index.argsort(stable=True)
    return rows, ptr, int(count.max())


def in_rows(*parts: Tensor) -> Sequence[Tensor]:
    """Queries, keys and values whose rows the kernels can step through."""
    _, k, v = parts
    if all(part.stride(1) == 1 for part in parts) and k.stride(0) == v.stride(0):
        return parts
    return [part.contiguous() for part in parts]


def twin_forward(
    parts: Sequence[Tensor], groups: AttentionGroups, plan: TwinPlan
) -> tuple[Tensor, Tensor]:
    """Result, and one number per query and head for the gradient.

    Args:
        parts: Queries, keys and values as :func:`in_rows` gives them, or one
            contiguous matrix with all of them.
        groups: Groups and options.
        plan: What :func:`twin_plan` makes of them.
    """
    from pyg_pool.kernels import group_attention_numba as kernel

    given, width = _given(parts, groups, plan)
    out = torch.empty(plan.queries.numel(), width)
    total = torch.empty(plan.queries.numel(), groups.heads)
    _run(kernel.forward.single, plan, given, [out, total], width // groups.heads)
    return out, total


def twin_backward(
    parts: Sequence[Tensor],
    grad: Tensor,
    out: Tensor,
    total: Tensor,
    groups: AttentionGroups,
    plan: TwinPlan,
) -> list[Tensor]:
    """Gradients of the parts."""
    from pyg_pool.kernels import group_attention_numba as kernel

    given, width = _given(parts, groups, plan)
    into = [torch.empty(part.shape) for part in parts]
    places = [into[0].size(1), into[-1].size(1), *_places(into, width)]
    last = [out, total, grad.contiguous()]
    _run(kernel.backward.single, plan, given, last, width // groups.heads, places)
    return into


def twin_room(plan: TwinPlan, depth: int) -> Tensor:
    """Memory in which the kernels pack a head of that depth of the largest group."""
    wide, step = (-(-size // 16) * 16 for size in (depth, plan.most_keys))
    return torch.empty(step * (2 * depth + 3 * wide + 8) + 16 * wide + 16)


def _places(parts: Sequence[Tensor], width: int) -> list[int]:
    """Addresses of queries, keys and values."""
    if len(parts) == 3:
        return [part.data_ptr() for part in parts]
    first, step = parts[0].data_ptr(), width * parts[0].element_size()
    return [first, first + step, first + 2 * step]


def _given(
    parts: Sequence[Tensor], groups: AttentionGroups, plan: TwinPlan
) -> tuple[list[int], int]:
    """What both kernels take first, and the width of a query."""
    width = parts[0].size(1) // (1 if len(parts) == 3 else 3)
    q_stride, k_stride = parts[0].stride(0), parts[-1].stride(0)
    sides = plan.queries, plan.keys, plan.query_ptr, plan.key_ptr, groups.factor
    return [
        groups.heads, width // groups.heads, q_stride, k_stride,
        *_places(parts, width),
        *(side.data_ptr() for side in sides),
    ], width  # fmt: skip


def _run(
    kernel: Any,
    plan: TwinPlan,
    given: list[int],
    tensors: list[Tensor],
    depth: int,
    places: Sequence[int] = (),
) -> None:
    """Calls a kernel, in threads where that pays, each with memory of its own."""
    last = [tensor.data_ptr() for tensor in tensors]

    def run(start: int, stop: int) -> None:
        room = twin_room(plan, depth)
        kernel(start, stop, *given, room.data_ptr(), *last, *places)

    shared(run, plan.query_ptr.numel() - 1, plan.pairs * depth)
