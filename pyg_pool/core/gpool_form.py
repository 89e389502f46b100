"""The known forms of gPool, and the options in force for one of them."""

from __future__ import annotations

from typing import Any, get_args

import torch
from torch_geometric.nn.resolver import activation_resolver

from pyg_pool.errors import check_choice
from pyg_pool.kernels.gate import GATES
from pyg_pool.kernels.topk import check_ratio
from pyg_pool.typing import Activation, Augment, Rounding

__all__ = ["INCREASING", "PRESETS", "gate_function", "options_of"]

# Increasing gates: ranking on the projection ranks on the gate as well.
INCREASING = (*GATES, "softmax")
PRESETS: dict[str | None, dict[str, Any]] = {
    None: {
        "nonlinearity": "sigmoid",
        "normalize": True,
        "bias": False,
        "rounding": "ceil",
        "min_nodes": 1,
        "augment": "none",
    },
    "paper": {"augment": "square"},
    "authors": {
        "normalize": False,
        "bias": True,
        "rounding": "floor",
        "min_nodes": 2,
        "augment": "binary",
    },
    "pyg": {"nonlinearity": "tanh"},
}


def options_of(ratio: float, preset: str | None, own: dict[str, Any]) -> dict[str, Any]:
    """The options in force: those given, then the preset's, then the defaults."""
    check_ratio("GPool", ratio)
    if preset is not None:
        check_choice("GPool", "preset", preset, [p for p in PRESETS if p])
    chosen = {name: value for name, value in own.items() if value is not None}
    options = {**PRESETS[None], **PRESETS[preset], **chosen}
    check_choice("GPool", "augment", options["augment"], get_args(Augment))
    check_choice("GPool", "rounding", options["rounding"], get_args(Rounding))
    return options


def gate_function(nonlinearity: Activation) -> Any:
    """The function behind a gate's name."""
    known = {"sigmoid": torch.sigmoid, "tanh": torch.tanh}
    if nonlinearity in INCREASING:
        return known.get(str(nonlinearity), torch.nn.Identity())
    return activation_resolver(nonlinearity)
