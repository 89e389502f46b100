"""k-tuples of the nodes of copies, and a round against loops."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch_geometric.data import Data

from pyg_pool.relational.colors import ExactColors, HashColors
from pyg_pool.relational.refine_items import Items
from pyg_pool.relational.refine_options import Setup
from pyg_pool.relational.refine_setup import copies_of, gather_graphs

PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def items(k: int) -> Items:
    setup = Setup(k, 0, True, "all", True, "tuple", None, "root", None, "mark", False)
    graphs = [Data(edge_index=PATH, num_nodes=3), Data(num_nodes=2)]
    copies, _ = copies_of(gather_graphs(graphs, None, None), setup)
    return Items.of(copies, k)


def test_order_and_diagonal() -> None:
    found = items(2)
    rows = list(itertools.product(range(3), repeat=2))
    rows += list(itertools.product(range(2), repeat=2))
    assert [tuple(r) for r in found.place.t().tolist()] == rows
    state = torch.arange(13)
    assert found.diagonal(state).tolist() == [0, 4, 8, 9, 12]


def test_types_tell_edges_and_equal_nodes() -> None:
    found = items(2)
    start = found.start(torch.zeros(5, dtype=torch.long), None, HashColors())
    kinds = start[:9].view(3, 3)
    assert kinds[0, 0] == kinds[1, 1]
    assert kinds[0, 1] == kinds[2, 1] != kinds[0, 2]
    assert kinds[0, 2] == start[10]


@pytest.mark.parametrize("folklore", [True, False])
def test_a_round_equals_loops(folklore: bool) -> None:
    found, state = items(2), torch.randint(3, (13,))
    names = []
    for first, size in ((0, 3), (9, 2)):
        grid = state[first : first + size**2].view(size, size).tolist()
        for u, v in itertools.product(range(size), repeat=2):
            one = [grid[w][v] for w in range(size)]
            two = [grid[u][w] for w in range(size)]
            if folklore:
                seen = tuple(sorted(zip(one, two, strict=True)))
            else:
                seen = tuple(sorted(one)), tuple(sorted(two))
            names.append((grid[u][v], seen))
    for colors in (ExactColors(), HashColors()):
        got = found.step(state, colors, folklore=folklore).tolist()
        for (a, x), (b, y) in itertools.combinations(zip(names, got, strict=True), 2):
            assert (a == b) == (x == y)


@pytest.mark.parametrize("k", [40, 100, 10**6])
def test_too_many_items_are_refused_before_they_are_counted(k: int) -> None:
    with pytest.raises(ValueError, match=r"make a list of .* tuples or pairs"):
        items(k)
