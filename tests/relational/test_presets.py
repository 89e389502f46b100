"""Named networks: they run, and their tests bound what they separate."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.models import KLGNN
from pyg_pool.relational import PRESETS, kl_wl, preset_options, wl_options
from tests.relational.families import graph

PAIRS = [("EhEG", "EwCW"), ("IhEGGC@_G", "Ihe?GC@@G")]


@pytest.mark.parametrize("name", PRESETS)
def test_networks_separate_no_more_than_their_test(name: str) -> None:
    for pair in PAIRS:
        graphs = [graph(text) for text in pair]
        colors = kl_wl(graphs, cover=True, mode="hash", **wl_options(name))
        gaps = []
        for seed in range(3):
            torch.manual_seed(seed)
            layers = 6 if name == "id_gnn" else 3
            model = KLGNN.from_preset(name, 1, 24, 4, layers).double().eval().network
            with torch.no_grad():
                outs = [
                    model(torch.ones(g.num_nodes, 1, dtype=torch.float64), g.edge_index)
                    for g in graphs
                ]
            gaps.append(float((outs[0] - outs[1]).abs().max() / outs[0].abs().max()))
        if colors[0] == colors[1]:
            assert max(gaps) < 1e-13
        else:
            assert max(gaps) > 1e-12


def test_names_are_checked_and_options_are_copies() -> None:
    preset_options("ngnn")["l"] = 7
    assert preset_options("ngnn")["l"] == 1
    with pytest.raises(ValueError, match="did you mean 'ngnn'"):
        preset_options("ngn")
