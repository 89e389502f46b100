"""One round of each update against its formula, by loops over roots and nodes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from pyg_pool.relational.colors import ExactColors, HashColors
from pyg_pool.relational.refine_options import UPDATES, Setup
from pyg_pool.relational.refine_roots import root_step
from pyg_pool.relational.refine_setup import copies_of, gather_graphs

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 1, 3], [1, 0, 2, 1, 3, 2, 3, 1]])
NEAR = {0: {1}, 1: {0, 2, 3}, 2: {1, 3}, 3: {1, 2}}


def seen(update: str, c: list[list[int]], u: int, v: int) -> Any:
    whole = [tuple(sorted(c[w][x] for w in range(4))) for x in range(4)]
    joined = NEAR[v] | (NEAR[u] if update == "SLFWL" else set())
    inside = tuple(sorted(c[u][w] for w in NEAR[v]))
    more = {
        "SWL": (),
        "PSWL": c[v][v],
        "GSWL": whole[v],
        "DSS": (whole[v], tuple(sorted(whole[w] for w in NEAR[v]))),
        "SSWL": tuple(sorted(c[w][v] for w in NEAR[u])),
    }
    if update in more:
        return c[u][v], inside, more[update]
    return c[u][v], tuple(sorted((c[u][w], c[w][v]) for w in joined))


@pytest.mark.parametrize("update", UPDATES)
def test_a_round_equals_loops(update: str) -> None:
    graphs = [Data(num_nodes=2), Data(edge_index=EDGES, num_nodes=4)]
    colored = gather_graphs(graphs, None, None)
    setup = Setup(
        1, 1, False, "distinct", True, "tuple", None, "root", update, "mark", False
    )
    copies, _ = copies_of(colored, setup)
    for colors in (ExactColors(), HashColors()):
        state = torch.randint(2, (20,))
        grid = state[4:].view(4, 4).tolist()
        step = root_step(update, colored, copies, colors)
        got = step(state)[4:].tolist()
        names = [
            seen(update, grid, u, v) for u, v in itertools.product(range(4), repeat=2)
        ]
        for (a, x), (b, y) in itertools.combinations(zip(names, got, strict=True), 2):
            assert (a == b) == (x == y)


def test_edge_colours_have_no_place_in_slfwl() -> None:
    graphs = [Data(edge_index=EDGES, num_nodes=4)]
    colored = gather_graphs(graphs, None, [torch.zeros(8)])
    setup = Setup(
        1, 1, False, "distinct", True, "tuple", None, "root", "SLFWL", "mark", False
    )
    copies, _ = copies_of(colored, setup)
    with pytest.raises(ValueError, match="take update='LFWL'"):
        root_step("SLFWL", colored, copies, HashColors())
