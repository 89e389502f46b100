"""Every order of the labels comes up equally often."""

from __future__ import annotations

from collections import Counter

import torch

from pyg_pool.relational import (
    TupleSet,
    expand_copies,
    label_features,
    lay_ground,
)
from pyg_pool.relational.copies import Copies
from pyg_pool.relational.orders import position_orders, reordered

EDGES = torch.tensor([[0, 1, 2], [1, 2, 3]])


def copies_of(row: list[int]) -> Copies:
    one = torch.tensor([1])
    tuples = TupleSet(torch.tensor([row]), torch.tensor([0]), one, 1)
    return expand_copies(lay_ground(EDGES, None), tuples)


def test_full_tuples() -> None:
    copies = copies_of([2, 0, 3])
    got = {tuple(order.tolist()) for order in position_orders(copies)}
    assert len(got) == 6
    assert all(sorted(order) == [-1, 0, 1, 2] and order[1] == -1 for order in got)
    kept = [order.tolist() for order in position_orders(copies, keep_root=True)]
    assert kept == [[1, -1, 0, 2], [2, -1, 0, 1]]


def test_padded_tuples_change_among_their_own() -> None:
    copies = copies_of([1, 3, -1])
    got = Counter(tuple(order.tolist()) for order in position_orders(copies))
    assert got == {(-1, 0, -1, 1): 3, (-1, 1, -1, 0): 3}
    kept = [order.tolist() for order in position_orders(copies, keep_root=True)]
    assert kept == [[-1, 0, -1, 1], [-1, 0, -1, 2]]


def test_features_follow_the_orders() -> None:
    for row in ([2, 0, 3], [1, 3, -1]):
        copies = copies_of(row)
        label = label_features(lay_ground(EDGES, None), copies)
        got = Counter(str(each.tolist()) for each in reordered(label, copies))
        want = Counter()
        for order in position_orders(copies):
            each = torch.zeros(4, 3)
            nodes = (order >= 0).nonzero().view(-1)
            each[nodes, order[nodes]] = 1.0
            want[str(each.tolist())] += 1
        assert got == want
