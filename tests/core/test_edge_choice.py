"""The rule by which edges are chosen."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.core.edge_choice import EdgeChoice
from pyg_pool.errors import PygPoolWarning

PATH = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])


def chosen(score: list[float], **options: object) -> list[int]:
    choice = EdgeChoice(owner="Mine", **options)  # type: ignore[arg-type]
    return choice(torch.tensor(score), PATH, None, 1, 5).nonzero().view(-1).tolist()


def test_ties_go_to_the_lowest_pair(backend: str) -> None:
    assert chosen([1.0, 1.0, 1.0, 1.0], num_edges_to_keep=2) == [0, 1]
    assert chosen([1.0, 2.0, 2.0, 2.0], num_edges_to_keep=2) == [1, 2]
    assert chosen([1.0, 1.0, 0.0, 1.0], num_edges_to_keep=2, largest=False) == [0, 2]


def test_threshold_is_strict() -> None:
    assert chosen([0.5, 0.6, 0.4, 0.5], threshold=0.5) == [1]
    assert chosen([0.5, 0.6, 0.4, 0.5], threshold=0.5, largest=False) == [2]


def test_number_is_counted_in_double_precision() -> None:
    choice = EdgeChoice(owner="Mine", fraction_to_keep=0.8)
    assert choice.budget(torch.tensor([120, 0, 5])).tolist() == [23, 0, 0]


@pytest.mark.parametrize(
    "options",
    [
        {"num_edges_to_keep": 0},
        {"threshold": 0.1},
        {"num_edges_to_keep": 0, "consecutive": False},
        {"threshold": 0.1, "max_cluster_size": 9},
        {"fraction_to_keep": 0.0, "largest": False},
    ],
)
def test_nan_is_never_chosen(options: dict) -> None:
    with pytest.warns(PygPoolWarning, match="1 scores of NaN among 4"):
        assert 1 not in chosen([0.9, float("nan"), 0.8, 0.3], **options)
