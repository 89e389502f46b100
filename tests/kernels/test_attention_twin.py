"""Rows in order for the compiled twin, and back at their places."""

from __future__ import annotations

import torch
from torch.testing import assert_close

from pyg_pool.kernels.attention_native import (
    AttentionGroups,
    blocks_of,
    native_backward,
    native_forward,
)
from pyg_pool.kernels.attention_twin import OrderedRows, twin_backward, twin_forward

QUERY = torch.tensor([2, 0, 2, 2, 0])
KEY = torch.tensor([0, 2, 1])


def test_offsets_and_orders() -> None:
    given = AttentionGroups(QUERY, KEY.sort().values, 3, torch.ones(3))
    rows = OrderedRows.of(given)
    assert rows.query_ptr.tolist() == [0, 2, 2, 5]
    assert rows.query_order is not None
    assert rows.query_order.tolist() == [1, 4, 0, 2, 3]
    assert rows.key_order is None
    same = OrderedRows.of(AttentionGroups(QUERY, QUERY, 3, torch.ones(3)))
    assert same.key_order is same.query_order


def test_like_native_rows_inside_wider_ones() -> None:
    given = AttentionGroups(QUERY, KEY, 3, torch.rand(3) + 0.5, 2)
    q, k, v = torch.randn(5, 12)[:, 3:9], torch.randn(3, 8)[:, :6], torch.randn(3, 6)
    rows = OrderedRows.of(given)
    out, *kept = twin_forward(q, k, v, given, rows)
    assert_close(out, native_forward(q, k, v, given, blocks_of(given)))
    grad = torch.randn(5, 6)
    found = twin_backward(q, k, v, grad, kept, given, rows, 1e15)
    wanted = native_backward(q, k, v, grad, given, blocks_of(given))
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other)


def test_gradients_side_by_side() -> None:
    index = QUERY.sort().values
    given = AttentionGroups(index, index, 3, torch.ones(3), 1)
    q, k, v = torch.randn(3, 5, 6)
    rows = OrderedRows.of(given)
    _, *kept = twin_forward(q, k, v, given, rows)
    into, grad = torch.zeros(5, 18), torch.randn(5, 6)
    twin_backward(q, k, v, grad, kept, given, rows, 1e15, into)
    wanted = native_backward(q, k, v, grad, given, blocks_of(given))
    assert_close(into, torch.cat(wanted, 1))
