"""ID-PPGN separates what 2-FWL alone cannot."""

from __future__ import annotations

import torch

from pyg_pool.models import IDPPGN
from tests.relational.families import graph

ROOK = "O~`HW}GPHDaNaGPCcPWaN"
SHRIKHANDE = "OlfJHsHBGK_\\oHWKeBK_\\"


def test_labels_add_power() -> None:
    graphs = [graph(ROOK), graph(SHRIKHANDE)]
    for labels in (0, 1):
        gaps = []
        for seed in range(3):
            torch.manual_seed(seed)
            model = IDPPGN(1, 6, 2, 4, l=labels).double()
            for weight in model.network.parameters():
                torch.nn.init.normal_(weight, std=0.6)
            one, two = (
                model.network(
                    torch.ones(g.num_nodes, 1).double(), g.edge_index
                ).detach()
                for g in graphs
            )
            gaps.append(float((one - two).abs().max() / one.abs().max()))
        # Random weights can bring the true difference down to 3e-9.
        assert (max(gaps) > 1e-11) if labels else (max(gaps) < 1e-13)


def test_weights_are_drawn_anew() -> None:
    model = IDPPGN(1, 4, 2, 2)
    x, edges = torch.ones(3, 1), torch.tensor([[0, 1], [1, 2]])
    before = model(x, edges)
    model.reset_parameters()
    assert not torch.equal(model(x, edges), before)
