"""Hands attention inside groups to its compiled twin: rows in order, plain arrays."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_pool.kernels.attention_native import AttentionGroups
from pyg_pool.kernels.segment import segment_count
from pyg_pool.typing import OptTensor

__all__ = ["OrderedRows", "twin_backward", "twin_forward"]


@dataclass(frozen=True)
class OrderedRows:
    """Where the rows of each group lie once they are in order.

    Attributes:
        query_ptr: ``[B + 1]`` offsets of the queries.
        key_ptr: ``[B + 1]`` offsets of the keys.
        query_order: Order of the queries; ``None`` where they are in order.
        key_order: Order of the keys.
    """

    query_ptr: Tensor
    key_ptr: Tensor
    query_order: OptTensor
    key_order: OptTensor

    @classmethod
    def of(cls, groups: AttentionGroups) -> OrderedRows:
        """Those of some groups."""
        query_ptr, query_order = _ordered(groups.query, groups.size)
        if groups.key is groups.query:
            return cls(query_ptr, query_ptr, query_order, query_order)
        key_ptr, key_order = _ordered(groups.key, groups.size)
        return cls(query_ptr, key_ptr, query_order, key_order)


def twin_forward(
    q: Tensor, k: Tensor, v: Tensor, groups: AttentionGroups, rows: OrderedRows
) -> tuple[Tensor, Tensor, Tensor]:
    """Result, and the largest product and the sum of each query and head, in order."""
    from pyg_pool.kernels import group_attention_numba

    ours = _taken(q, rows.query_order)
    keys, values = _taken(k, rows.key_order), _taken(v, rows.key_order)
    out = q.new_zeros(q.shape)
    top, total = q.new_empty(len(q), groups.heads), q.new_empty(len(q), groups.heads)
    group_attention_numba.forward(
        ours.numpy(), keys.numpy(), values.numpy(), rows.query_ptr.numpy(),
        rows.key_ptr.numpy(), groups.factor.numpy(), groups.heads, out.numpy(),
        top.numpy(), total.numpy(),
    )  # fmt: skip
    return _put_back(out, rows.query_order), top, total


def twin_backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    grad: Tensor,
    kept: list[Tensor],
    groups: AttentionGroups,
    rows: OrderedRows,
    limit: float,
    into: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of queries, keys and values, side by side in ``into`` where given."""
    from pyg_pool.kernels import group_attention_numba

    ours, up = _taken(q, rows.query_order), _taken(grad, rows.query_order)
    keys, values = _taken(k, rows.key_order), _taken(v, rows.key_order)
    if into is None:
        grads = q.new_zeros(q.shape), k.new_zeros(k.shape), v.new_zeros(v.shape)
    else:
        grads = into.split(q.size(1), 1)
    group_attention_numba.backward(
        ours.numpy(), keys.numpy(), values.numpy(), up.numpy(),
        rows.query_ptr.numpy(), rows.key_ptr.numpy(), groups.factor.numpy(),
        groups.heads, kept[0].numpy(), kept[1].numpy(), limit,
        grads[0].numpy(), grads[1].numpy(), grads[2].numpy(),
    )  # fmt: skip
    orders = rows.query_order, rows.key_order, rows.key_order
    found = [_put_back(g, order) for g, order in zip(grads, orders, strict=True)]
    return found[0], found[1], found[2]


def _ordered(index: Tensor, size: int) -> tuple[Tensor, OptTensor]:
    """Offsets of the groups, and the order of rows where it is not theirs."""
    count = segment_count(index, size)
    ptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
    if bool((index[1:] >= index[:-1]).all()):
        return ptr, None
    return ptr, torch.sort(index, stable=True).indices


def _taken(x: Tensor, order: OptTensor) -> Tensor:
    """Rows in order."""
    x = x.detach()
    return x if order is None else x.index_select(0, order)


def _put_back(x: Tensor, order: OptTensor) -> Tensor:
    """Rows at the places they came from."""
    if order is None:
        return x
    return torch.empty_like(x).index_copy_(0, order, x)
