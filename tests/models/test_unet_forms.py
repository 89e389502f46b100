from __future__ import annotations

import inspect
from typing import Any

import pytest

from pyg_pool import GPool
from pyg_pool.models import GraphUNet
from pyg_pool.models.unet_forms import (
    FORMS,
    authors_names,
    ends_in_up_conv,
    loses_loops,
    unet_form,
    unet_widths,
)


def arguments(**given: Any) -> dict[str, Any]:
    """All arguments of a graph U-Net with their defaults."""
    parameters = inspect.signature(GraphUNet).parameters.values()
    sizes = {"in_channels": 3, "hidden_channels": 4, "out_channels": 2, "depth": 2}
    return {p.name: p.default for p in parameters} | sizes | given


@pytest.mark.parametrize("preset", FORMS)
def test_presets_fill_what_is_left_open(preset: str | None) -> None:
    form = unet_form(arguments(preset=preset))
    assert form.conv == FORMS[preset].conv
    assert form.pool_options["augment"] == FORMS[preset].augment
    assert form.skip == FORMS[preset].skip


def test_explicit_options_win() -> None:
    form = unet_form(
        arguments(preset="authors", conv="gcn", skip="pre", augment="square")
    )
    assert (form.conv, dict(form.conv_options), form.skip) == ("gcn", {}, "pre")
    assert form.pool_options["augment"] == "square"
    assert form.pool_options["preset"] == "authors"
    form = unet_form(arguments(pool_options={"augment": "none", "preset": None}))
    assert (form.augment, form.pool_options["preset"]) == ("none", None)
    form = unet_form(arguments(conv_options={"bias": False}))
    assert form.conv_options == {"improved": True, "bias": False}


def test_only_gpool_gets_its_options() -> None:
    assert unet_form(arguments(pool=GPool)).pool == "gpool"
    form = unet_form(arguments(pool=[GPool(4), GPool(4)]))
    assert form.pool_options == {}
    assert form.augment == "none"


def test_dropout_of_the_authors_acts_on_scores() -> None:
    form = unet_form(arguments(preset="authors", dropout=0.3))
    assert form.pool_options["dropout"] == 0.3
    assert "dropout" not in unet_form(arguments(dropout=0.3)).pool_options


def test_a_graph_task_has_no_last_convolution() -> None:
    form = unet_form(arguments(preset="paper", task="graph"))
    assert not form.out_conv
    assert not ends_in_up_conv(form, "graph")
    assert ends_in_up_conv(unet_form(arguments()), "node")
    assert not ends_in_up_conv(unet_form(arguments(preset="paper")), "node")


@pytest.mark.parametrize(
    ("options", "up", "emitted"),
    [
        ({}, [(4, 4), (4, 2)], [4, 2]),
        ({"merge": "cat"}, [(8, 4), (8, 2)], [4, 2]),
        ({"out_conv": True}, [(4, 4), (4, 4)], [4, 4]),
        (
            {"skip": "post", "merge": "cat", "out_conv": True},
            [(4, 4), (8, 4)],
            [8, 8],
        ),
        ({"preset": "authors"}, [(4, 4), (4, 4)], [4, 4, 4]),
    ],
)
def test_widths(options: dict[str, Any], up: list[Any], emitted: list[int]) -> None:
    given = arguments(**options)
    widths = unet_widths(unet_form(given), given)
    assert (widths.up, widths.emitted) == (up, emitted)
    entry = 4 if options.get("preset") == "authors" else 3
    assert widths.down == [(entry, 4), (4, 4), (4, 4)]


def test_sums_of_different_widths_are_refused() -> None:
    for options in ({"skip": "post"}, {"long_skip": True, "out_conv": True}):
        given = arguments(**options)
        with pytest.raises(ValueError, match="set out_conv=True or stem=True"):
            unet_widths(unet_form(given), given)


@pytest.mark.parametrize(
    ("options", "loses"),
    [
        ({"preset": "authors"}, False),
        ({"preset": "authors", "augment": "weighted"}, True),
        ({"preset": "authors", "pool": "precomputed"}, True),
        ({}, False),
    ],
)
def test_loops_are_added_again_where_pooling_drops_them(
    options: dict[str, Any], loses: bool
) -> None:
    assert loses_loops(unet_form(arguments(**options))) is loses


def test_names_of_the_authors_lead_to_ours() -> None:
    model = GraphUNet(3, 4, 2, preset="authors", task="graph")
    rooms = {name.split(".")[0] for name in model.state_dict()}
    targets = {new.split(".")[0] for _, new in authors_names(3) if new}
    assert targets == rooms - {"pools"}
