"""The forms of the hierarchical classifier, and how options override them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyg_pool.errors import check_choice
from pyg_pool.models.conv_factory import Conv
from pyg_pool.models.layers import Words, is_one
from pyg_pool.models.pool_stack import per_level
from pyg_pool.pool import GPool

__all__ = [
    "FORMS",
    "ClassifierForm",
    "classifier_form",
    "combined_width",
    "example_names",
    "readout_words",
]

OWNER = "HierarchicalClassifier"


@dataclass(frozen=True)
class ClassifierForm:
    """The parts of the classifier, all of them decided."""

    conv: Conv = "gcn"
    conv_options: Mapping[str, Any] | None = None
    pool_options: Mapping[str, Any] | None = None
    readout: Words | Sequence[Words] = ("mean", "max")
    head_widths: tuple[int, ...] = (1,)  # divisors of hidden_channels
    dropout: float = 0.0
    drops_once: bool = False


FORMS: dict[str | None, ClassifierForm] = {
    None: ClassifierForm(),
    "paper": ClassifierForm("mean_skip", pool_options={"nonlinearity": "tanh"}),
    "pyg_example": ClassifierForm(
        "graph",
        pool_options={"preset": "pyg"},
        readout=("max", "mean"),
        head_widths=(1, 2),
        dropout=0.5,
        drops_once=True,
    ),
}


def classifier_form(given: Mapping[str, Any]) -> ClassifierForm:
    """Fills the options that the caller left open from the preset."""
    preset = given["preset"]
    check_choice(OWNER, "preset", preset or "paper", [word for word in FORMS if word])
    check_choice(OWNER, "combine", given["combine"], ("sum", "cat"))
    form = FORMS[preset]
    own = dict(given["pool_options"] or {})
    if given["pool"] == "gpool" or given["pool"] is GPool:
        own = {**(form.pool_options or {}), **own}
    names = ("conv", "conv_options", "readout", "dropout")
    chosen = {name: given[name] for name in names if given[name] is not None}
    return replace(form, **chosen, pool_options=own)


def readout_words(readout: Any, num_levels: int) -> list[Words]:
    """The readouts of each level."""
    if is_one(readout) or all(is_one(word) for word in readout):
        return [readout] * num_levels
    return per_level(OWNER, "readout", list(readout), num_levels)


def combined_width(widths: Sequence[int], combine: str) -> int:
    """Width of the readouts of all levels together."""
    if combine == "cat":
        return sum(widths)
    if len(set(widths)) > 1:
        raise ValueError(
            f"{OWNER} got readouts of widths {list(widths)} with combine='sum', "
            f"expected equal widths; set combine='cat' or use the same readouts at "
            f"every level."
        )
    return widths[0]


def example_names(num_levels: int, num_layers: int) -> list[tuple[str, str]]:
    """Renames the weights of PyG's example to ours."""
    parts = {"conv": "convs.", "pool": "pools."}
    rules = [
        (rf"{old}{i + 1}\.", f"{new}{i}.")
        for old, new in parts.items()
        for i in range(num_levels)
    ]
    lins = [(rf"lin{i + 1}\.", f"head.lins.{i}.") for i in range(num_layers)]
    return rules + lins
