from __future__ import annotations

import torch
from torch.testing import assert_close

from pyg_pool.models import GraphParsingNetwork

EDGES = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
BATCH = torch.tensor([0, 0, 0, 1, 1])


def test_one_round_by_hand() -> None:
    model = GraphParsingNetwork(3, 4, 2, feature_layers=1, deepsets_layers=0).double()
    x = torch.randn(5, 3).double()
    finest = model.begin(x, EDGES, None, BATCH, None)
    climb = model.climb(x, finest)
    assert_close(climb.start, model.input_mlp(x))
    (step,) = climb.rounds
    assert step.merged.tolist() == [True, True]
    assert step.out.selection.cluster.tolist() == [0, 0, 0, 1, 1]
    assert step.count.tolist() == [4.0, 2.0]
    rows = model.feature_convs(climb.start, finest, True)
    sums = torch.stack([rows[:3].sum(0), rows[3:].sum(0)])
    factor = (step.out.score * step.count).unsqueeze(-1)
    assert_close(climb.h, sums * factor)
    assert_close(model.features(finest, climb), climb.h)


def test_the_way_down_divides_by_the_count_alone() -> None:
    model = GraphParsingNetwork(3, 4, 2, task="node", self_loops=False).double()
    x = torch.randn(5, 3).double()
    finest = model.begin(x, EDGES, None, BATCH, None)
    climb = model.climb(x, finest)
    (step,) = climb.rounds
    copied = (climb.h / step.count.unsqueeze(-1))[[0, 0, 0, 1, 1]]
    wanted = model.up_convs(copied + climb.start, finest, True)
    assert_close(model.features(finest, climb), wanted)


def test_readout_of_levels_is_a_sum_of_means() -> None:
    model = GraphParsingNetwork(3, 4, 2, readout="levels").double()
    x = torch.randn(5, 3).double()
    finest = model.begin(x, EDGES, None, BATCH, None)
    climb = model.climb(x, finest)
    means = torch.stack([climb.start[:3].mean(0), climb.start[3:].mean(0)])
    assert_close(model.features(finest, climb), means + climb.h)
