from __future__ import annotations

import inspect
from typing import Any

import pytest

from pyg_pool import GPool
from pyg_pool.models import HierarchicalClassifier
from pyg_pool.models.classifier_forms import (
    FORMS,
    classifier_form,
    combined_width,
    example_names,
    readout_words,
)


def arguments(**given: Any) -> dict[str, Any]:
    """All arguments of a hierarchical classifier with their defaults."""
    parameters = inspect.signature(HierarchicalClassifier).parameters.values()
    return {p.name: p.default for p in parameters} | given


@pytest.mark.parametrize("preset", FORMS)
def test_presets_fill_what_is_left_open(preset: str | None) -> None:
    form = classifier_form(arguments(preset=preset))
    assert form.conv == FORMS[preset].conv
    assert form.readout == FORMS[preset].readout
    form = classifier_form(arguments(preset=preset, conv="gin", dropout=0.0))
    assert (form.conv, form.dropout) == ("gin", 0.0)


def test_only_gpool_gets_the_options_of_the_preset() -> None:
    for pool in ("gpool", GPool):
        form = classifier_form(arguments(pool=pool, pool_options={"bias": True}))
        assert form.pool_options == {"nonlinearity": "tanh", "bias": True}
    assert classifier_form(arguments(pool=[GPool(4)] * 3)).pool_options == {}


@pytest.mark.parametrize(
    ("readout", "words"),
    [
        ("max", ["max", "max"]),
        (("mean", "max"), [("mean", "max")] * 2),
        ([["mean"], "max"], [["mean"], "max"]),
        ([["mean", "max"]], [["mean", "max"]] * 2),
    ],
)
def test_readouts_for_all_levels_or_each(readout: Any, words: list[Any]) -> None:
    assert readout_words(readout, 2) == words


def test_widths_of_a_sum_must_agree() -> None:
    assert combined_width([4, 4], "sum") == 4
    assert combined_width([4, 6], "cat") == 10
    with pytest.raises(ValueError, match=r"widths \[4, 6\].*set combine='cat'"):
        combined_width([4, 6], "sum")


def test_names_of_the_example() -> None:
    rules = example_names(2, 1)
    assert rules == [
        (r"conv1\.", "convs.0."),
        (r"conv2\.", "convs.1."),
        (r"pool1\.", "pools.0."),
        (r"pool2\.", "pools.1."),
        (r"lin1\.", "head.lins.0."),
    ]
