"""All operators of the library with what they promise, found by reading the rooms."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn.aggr import Aggregation

from pyg_pool.core import Pooling
from pyg_pool.testing.contract import PoolingSpec, ReadoutSpec

__all__ = ["poolings", "readouts"]

# Further forms of an operator that take another path through it.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "GPool": [
        {"preset": "paper"},
        {"preset": "authors"},
        {"preset": "pyg"},
        {"ratio": 3},
        {"ratio": 1.0, "augment": "weighted"},
        {"nonlinearity": "softmax"},
        {"nonlinearity": "softplus"},
        {"nonlinearity": "identity", "bias": True, "multiplier": 2.0},
        {"min_score": 0.2},
    ],
    "GraphParsingPooling": [
        {"edge_reduce": "sum", "self_loops": True, "score_round": 2**-20},
        {"edge_reduce": "mean", "score_layers": 2, "multiplier": "mean"},
        {"edge_reduce": "max", "deepsets_layers": 0},
        {"edge_reduce": "sum", "deepsets_layers": 2, "self_loops": True},
        {"edge_reduce": "mean", "scorer": "cosine", "score_round": 2**-20},
    ],
    "HistographAggregation": [
        {"layer_attention": "signed_abs", "node_attention": "induced"},
        {"layer_attention": "softmax", "norm": None, "pool": "sum"},
        {"node_attention": False, "positional": "learned", "pool": "max"},
    ],
    "GLOTAggregation": [
        {"conv": "gcn", "edge_weight": "cosine", "jk": "last", "num_layers": 1},
        {"heads": 2, "max_neighbors": 3, "chunk_size": 64, "num_layers": 1},
    ],
}
TWO_HOPS = {
    "host_waits": "the blocks of a two-hop product are cut by the number of its terms"
}
# Widths that keep differences with respect to every weight affordable.
NARROW: dict[str, dict[str, Any]] = {
    "HistographAggregation": {
        "in_channels": [2, 2],
        "hidden_channels": 4,
        "heads": 2,
    },
    "GLOTAggregation": {"hidden_channels": 4, "scorer_channels": 2},
}
# What readouts are documented not to keep, and why.
TOKEN_GRAPH = "the number of similar pairs depends on the values, and is quadratic"
READOUT_EXCEPTIONS: dict[str, dict[str, str]] = {
    "GLOTAggregation": dict.fromkeys(("host_waits", "memory"), TOKEN_GRAPH),
}
# Parameters that add one number to all scores in front of a softmax.
READOUT_INERT: dict[str, tuple[str, ...]] = {"GLOTAggregation": ("score_layer.2.bias",)}
WIDTHS = ("in_channels", "channels")


def poolings() -> list[PoolingSpec]:
    """Returns every pooling operator of ``pyg_pool.pool``, in every form to be tested.

    An operator joins by being listed in the room's ``__all__`` and deriving from
    ``Pooling``.

    Example:
        >>> from pyg_pool.testing import poolings
        >>> poolings()[0].label
        'GPool()'
    """
    room = importlib.import_module("pyg_pool.pool")
    return [
        pooling_spec(cls, options)
        for cls in _classes(room, Pooling)
        for options in ({}, *VARIANTS.get(cls.__name__, []))
    ]


def readouts() -> list[ReadoutSpec]:
    """Returns every readout of ``pyg_pool.readout``, in every form to be tested.

    A readout joins by being listed in the room's ``__all__`` and deriving from PyG's
    ``Aggregation``.
    """
    if importlib.util.find_spec("pyg_pool.readout") is None:
        return []
    room = importlib.import_module("pyg_pool.readout")
    return [
        ReadoutSpec(
            _maker(cls, {**NARROW.get(cls.__name__, {}), **options}),
            _name(cls, options),
            exceptions=READOUT_EXCEPTIONS.get(cls.__name__, {}),
            inert=READOUT_INERT.get(cls.__name__, ()),
        )
        for cls in _classes(room, Aggregation)
        for options in ({}, *VARIANTS.get(cls.__name__, []))
    ]


def pooling_spec(cls: type[Module], options: Mapping[str, Any]) -> PoolingSpec:
    """A pooling class with options, and the adjacency that these stand for."""
    build = _maker(cls, options)
    augment = getattr(build(4), "augment", "none")
    merge = getattr(build(4), "edge_reduce", "sum")
    return PoolingSpec(
        build,
        _name(cls, options),
        exceptions={} if augment == "none" else TWO_HOPS,
        adjacency=None if augment == "none" else partial(two_hops, augment),
        takes_attributes=augment == "none" and merge != "binary",
        sums_edges=merge == "sum",
    )


def _classes(room: ModuleType, kind: type) -> Sequence[type[Any]]:
    found = [getattr(room, name) for name in room.__all__]
    return [cls for cls in found if inspect.isclass(cls) and issubclass(cls, kind)]


def _maker(
    cls: Callable[..., Module], options: Mapping[str, Any]
) -> Callable[[int], Module]:
    """The function ``in_channels -> operator`` of a class."""
    width = next((w for w in WIDTHS if w in inspect.signature(cls).parameters), None)

    def build(in_channels: int) -> Module:
        named = {} if width is None else {width: in_channels}
        try:
            return cls(**{**named, **options})
        except TypeError as error:
            raise TypeError(
                f"the registry of operators got {cls}, expected a class that is built "
                f"from in_channels alone; give its other arguments defaults ({error})."
            ) from error

    return build


def _name(cls: type, options: Mapping[str, Any]) -> str:
    words = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f"{cls.__name__}({words})"


def two_hops(how: str, adjacency: Tensor) -> Tensor:
    """The documented two-hop matrix of a dense adjacency."""
    if how == "square":
        return adjacency @ adjacency
    if how == "binary":
        binary = (adjacency != 0).to(adjacency)
        return ((binary @ binary) != 0).to(adjacency)
    eye = torch.eye(adjacency.size(0), dtype=adjacency.dtype, device=adjacency.device)
    loopless = adjacency * (1 - eye)
    return ((loopless + eye) @ (loopless + eye)) * (1 - eye)
