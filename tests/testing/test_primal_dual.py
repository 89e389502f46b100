"""The contract of pooling on two graphs, met by ours and broken by bad operators."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch

from pyg_pool import PrimalDualPooling
from pyg_pool.testing import check_primal_dual_pooling, random_primal_dual


@pytest.mark.parametrize("config", ["A", "B", "C"])
@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 0.6},
        {"fraction_to_keep": 0.5, "reduce": "sum"},
        {"num_edges_to_keep": 2, "consecutive": False},
        {"fraction_to_keep": 0.4, "max_cluster_size": 3, "dual_self_loops": True},
    ],
    ids=str,
)
def test_ours_meets_it(config: Any, options: dict[str, Any], backend: str) -> None:
    build = partial(PrimalDualPooling, config=config, **options)
    done = check_primal_dual_pooling(build, config=config)
    assert set(done.values()) == {"passed"}


class Shuffled(PrimalDualPooling):
    """Gives its edges in another order."""

    def forward(self, *args: Any, **options: Any) -> Any:
        out = super().forward(*args, **options)
        return replace(out, edge_index=out.edge_index.flip(1))


class Leaky(PrimalDualPooling):
    """Lets the scores of one mesh weigh on all."""

    def forward(self, *args: Any, **options: Any) -> Any:
        out = super().forward(*args, **options)
        return replace(out, x=out.x + options.get("batch_size", 1))


class Wide(PrimalDualPooling):
    """Forgets the type of its input."""

    def forward(self, *args: Any, **options: Any) -> Any:
        out = super().forward(*args, **options)
        return replace(out, x=out.x.double())


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        (Shuffled, "check 'form' failed: edges sorted"),
        (Leaky, "check 'alone' failed"),
        (Wide, "check 'types' failed: results of type"),
    ],
)
def test_bad_operators_are_found(operator: type, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_primal_dual_pooling(partial(operator, threshold=0.6))


def test_unknown_check() -> None:
    with pytest.raises(ValueError, match="did you mean 'form'"):
        check_primal_dual_pooling(PrimalDualPooling, only=["forms"])


def test_random_graphs_have_their_sizes() -> None:
    graphs = random_primal_dual([4, 0, 6], "B", seed=3)
    assert graphs["batch"].bincount(minlength=3).tolist() == [4, 0, 6]
    assert graphs["x_dual"].size(0) == graphs["edge_index"].size(1)
    assert torch.equal(graphs["edge_to_dual"], torch.arange(graphs["x_dual"].size(0)))
