"""Pooling, readout and coarsening of graphs for PyTorch Geometric."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from pyg_pool.core import Hierarchy, Pooling, PoolOutput, Selection
from pyg_pool.pool import (
    GPool,
    GraphParsingPooling,
    GUnpool,
    PrimalDualPooling,
    PrimalDualUnpooling,
    as_pyg_tuple,
)
from pyg_pool.readout import GLOTAggregation, GNPAggregation, HistographAggregation

if TYPE_CHECKING:
    from pyg_pool.register import Registered

__version__ = "0.1.0"

# Rooms that bring heavier imports: loaded when first used.
_LAZY = (
    "coarsen",
    "mesh",
    "models",
    "relational",
    "train",
    "transforms",
    "view",
    "testing",
)

__all__ = [
    "GLOTAggregation",
    "GNPAggregation",
    "GPool",
    "GUnpool",
    "GraphParsingPooling",
    "Hierarchy",
    "HistographAggregation",
    "PoolOutput",
    "Pooling",
    "PrimalDualPooling",
    "PrimalDualUnpooling",
    "Selection",
    "as_pyg_tuple",
    "register",
    "unregister",
]


def register() -> Registered:
    """Makes the readouts, heads and stages of this library known to PyG.

    See :func:`pyg_pool.register.register`.
    """
    # Loading the module of this name puts it in this function's place; it can be
    # called just the same.
    module = importlib.import_module("pyg_pool.register")
    done: Registered = module.register()
    return done


def unregister() -> None:
    """Takes back what :func:`register` did.

    See :func:`pyg_pool.register.unregister`.
    """
    importlib.import_module("pyg_pool.register").unregister()


def __getattr__(name: str) -> ModuleType:
    """Loads a room on first use."""
    if name in _LAZY:
        return importlib.import_module(f"pyg_pool.{name}")
    raise AttributeError(f"module 'pyg_pool' has no attribute {name!r}")
