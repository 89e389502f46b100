"""Options of the known forms of gPool, and gates by name."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.core.gpool_form import PRESETS, gate_function, options_of


def test_given_options_go_before_those_of_a_preset() -> None:
    options = options_of(0.5, "authors", {"bias": False, "rounding": None})
    assert options["bias"] is False
    assert options["rounding"] == "floor"
    assert options["nonlinearity"] == PRESETS[None]["nonlinearity"]


@pytest.mark.parametrize("name", PRESETS)
def test_each_form_names_every_option(name: str | None) -> None:
    assert options_of(0.5, name, {}).keys() == PRESETS[None].keys()


@pytest.mark.parametrize(
    ("preset", "own", "message"),
    [
        ("papers", {}, "did you mean 'paper'"),
        (None, {"augment": "squared"}, "did you mean 'square'"),
        (None, {"rounding": "up"}, "got rounding='up'"),
    ],
)
def test_wrong_words_are_explained(
    preset: str | None, own: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        options_of(0.5, preset, own)


def test_gates_by_name() -> None:
    y = torch.tensor([-1.0, 2.0])
    assert gate_function("tanh")(y).equal(y.tanh())
    assert gate_function("softmax")(y).equal(y)
    assert gate_function("relu")(y).tolist() == [0.0, 2.0]
