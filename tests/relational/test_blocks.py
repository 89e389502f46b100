"""Blocks of copies: every row and edge once, and the same layers as without."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.kernels import use_backend
from pyg_pool.kernels.copy_sum import CopyGroup
from pyg_pool.relational import (
    CopyGIN,
    RelationalPooling,
    expand_copies,
    find_tuples,
    lay_ground,
)
from pyg_pool.relational.blocks import block_groups, copy_blocks, copy_groups

EDGES = torch.tensor(
    [[0, 1, 1, 2, 2, 0, 4, 5, 5, 8, 6], [1, 0, 2, 1, 1, 0, 5, 4, 5, 6, 8]]
)
BATCH = torch.tensor([0, 0, 0, 0, 2, 2, 3, 3, 3])


@pytest.mark.parametrize("ego", [None, 1])
@pytest.mark.parametrize("rows", [1, 4, 9, 100])
def test_rows_and_edges_once(ego: int | None, rows: int) -> None:
    tuples = find_tuples(EDGES, BATCH, 1, "distinct", batch_size=5)
    copies = expand_copies(lay_ground(EDGES, BATCH, 5), tuples, ego=ego)
    blocks, place, found = copy_blocks(copies, rows), 0, []
    for block in blocks:
        assert block.start == place < block.stop
        place = block.stop
        ends = torch.stack([block.source, block.target])
        assert ((ends >= 0) & (ends < block.stop - block.start)).all()
        found.append(ends + block.start)
    assert place == copies.num_pairs
    got = torch.cat(found, dim=1)
    assert sorted(got.t().tolist()) == sorted(copies.edge_index.t().tolist())


def test_whole_copies_list_no_edges() -> None:
    ring = torch.stack([torch.arange(40), (torch.arange(40) + 1) % 40])
    copies = expand_copies(lay_ground(ring, None), find_tuples(ring, None, 1, "all"))
    blocks = copy_blocks(copies, 100)
    assert "listed" not in vars(copies)
    assert blocks[0].source.data_ptr() == blocks[1].source.data_ptr()


@pytest.mark.parametrize("ego", [None, 1])
def test_layers_are_the_same(ego: int | None) -> None:
    model = RelationalPooling(CopyGIN(3, 6, 3), 1, ego=ego).double()
    x = torch.randn(9, 2, dtype=torch.float64, requires_grad=True)
    results = []
    for backend in ("native", "numba"):
        with use_backend(backend):
            out = model(x, EDGES, batch=BATCH, batch_size=5)
            grads = torch.autograd.grad(out.square().sum(), [x, *model.parameters()])
        results.append([out, *grads])
    for one, two in zip(*results, strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("ego", [None, 1])
def test_groups_hold_the_edges_of_all_copies(ego: int | None, times: int) -> None:
    tuples = find_tuples(EDGES, BATCH, 1, "distinct", batch_size=5)
    copies = expand_copies(lay_ground(EDGES, BATCH, 5), tuples, ego=ego)
    size = copies.num_pairs

    def edges_of(first: int, group: CopyGroup) -> list[list[int]]:
        return [
            [*(ends + first + copy * group.size).tolist(), int(edge)]
            for copy in range(group.count)
            for ends, edge in zip(group.edge_index.t(), group.edge_id, strict=True)
        ]

    def every(parts: list[tuple[int, CopyGroup]]) -> list[list[int]]:
        return sorted(edge for part in parts for edge in edges_of(*part))

    want = [
        [u + k * size, v + k * size, edge]
        for k in range(times)
        for (u, v), edge in zip(
            copies.edge_index.t().tolist(), copies.edge_id.tolist(), strict=True
        )
    ]
    groups = copy_groups(copies, times)
    assert every([(group.start, group) for group in groups]) == sorted(want)
    assert sum(group.count * group.size for group in groups) == times * size
    if times == 1:
        assert every(block_groups(copies, 4)) == sorted(want)
        assert all(group.start == 0 for _, group in block_groups(copies, 4))
