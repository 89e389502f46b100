"""Options of the graph parsing network: their ranges and what they mean together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pyg_pool.errors import check_choice

__all__ = ["OWNER", "BlockLayers", "check_options", "layer_counts"]

OWNER = "GraphParsingNetwork"
BlockLayers = int | Literal["share", "follow"]
LEAST = {
    "in_channels": 1,
    "hidden_channels": 1,
    "out_channels": 1,
    "num_layers": 0,
    "mlp_layers": 1,
    "input_layers": 0,
    "max_levels": 0,
    "min_nodes": 1,
}


def layer_counts(given: Mapping[str, Any]) -> tuple[int, int, int]:
    """Convolutions in each of the three blocks.

    Example:
        >>> from pyg_pool.models.gpn_forms import layer_counts
        >>> layer_counts({"num_layers": 2, "feature_layers": 3, "up_layers": "follow"})
        (2, 3, 3)
    """
    first, second, third = (
        given[name] for name in ("num_layers", "feature_layers", "up_layers")
    )
    second = second if isinstance(second, int) else first
    return first, second, third if isinstance(third, int) else second


def check_options(given: Mapping[str, Any]) -> None:
    """Raises ``ValueError`` for an option out of range.

    Args:
        given: The arguments of the constructor by name.

    Raises:
        ValueError: If a word is unknown, a number too small, or two do not fit.
    """
    check_choice(OWNER, "task", given["task"], ("graph", "node"))
    check_choice(OWNER, "readout", given["readout"], ("last", "levels"))
    for name in ("feature_layers", "up_layers"):
        value = given[name]
        if not isinstance(value, int):
            check_choice(OWNER, name, value, ("share", "follow"))
    for name, least in {**LEAST, "feature_layers": 0, "up_layers": 0}.items():
        value = given[name]
        if isinstance(value, int) and value < least:
            raise ValueError(
                f"{OWNER} got {name}={value}, expected an int of at least {least}; "
                f"choose one."
            )
    if given["input_layers"] == 0 and given["in_channels"] != given["hidden_channels"]:
        raise ValueError(
            f"{OWNER} got input_layers=0 with in_channels={given['in_channels']} and "
            f"hidden_channels={given['hidden_channels']}, expected equal widths "
            f"without an input MLP; make them equal or give it a layer."
        )
