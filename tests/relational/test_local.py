"""Stars cut out of the graph."""

from __future__ import annotations

import torch

from pyg_pool.relational import local_stars


def test_roots_with_few_and_no_neighbours() -> None:
    # A star with center 0 and four leaves; node 5 alone; a second graph: one edge.
    edges = torch.tensor([[0, 0, 0, 0, 6], [1, 2, 3, 4, 7]])
    batch = torch.tensor([0] * 6 + [1] * 2)
    copies = local_stars(edges, batch, 4, 3)
    rows = copies.tuples.index.tolist()
    assert [row for row in rows if row[0] == 0] == [
        [0, 1, 2, 3],
        [0, 1, 2, 4],
        [0, 1, 3, 4],
        [0, 2, 3, 4],
    ]
    assert [1, 0, -1, -1] in rows
    assert not any(row[0] == 5 for row in rows)
    assert copies.tuples.batch.tolist() == [0] * 8 + [1] * 2
    assert copies.tuples.total.tolist() == [8, 2, 0]
    assert copies.pair_node[copies.pair_tuple == 0].tolist() == [0, 1, 2, 3]
