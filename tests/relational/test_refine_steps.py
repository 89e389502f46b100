"""First colours of labelled copies and the order of pooling."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

from pyg_pool.relational import kl_wl_details
from pyg_pool.relational.colors import HashColors
from pyg_pool.relational.refine_options import Setup
from pyg_pool.relational.refine_setup import copies_of, gather_graphs
from pyg_pool.relational.refine_steps import label_colors

PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


@pytest.mark.parametrize(("ordered", "number"), [(True, 3), (False, 2)])
def test_first_colours_show_the_labels(ordered: bool, number: int) -> None:
    colored = gather_graphs([Data(edge_index=PATH, num_nodes=3)], None, None)
    setup = Setup(
        1, 2, False, "distinct", ordered, "tuple", None, "root", None, "mark", False
    )
    copies, _ = copies_of(colored, setup)
    start = label_colors(colored, setup, copies, HashColors())
    assert start.unique().numel() == number
    assert start[:3].unique().numel() == number


def test_pooling_decides_what_a_node_sees() -> None:
    graphs = [Data(edge_index=PATH, num_nodes=3)]
    found = kl_wl_details(graphs, 1, 1, rounds=0)
    assert found.node_colors[0].unique().numel() == 1
    assert found.tuple_colors.unique().numel() == 1
    found = kl_wl_details(graphs, 1, 1, pooling="root", rounds=1)
    assert found.tuple_colors.unique().numel() == 2
    nested = kl_wl_details(graphs, 1, 2, pooling="nested", domain="star")
    assert nested.tuple_colors.numel() == 4
