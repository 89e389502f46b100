"""Options of graph parsing: their ranges, and what they make of edge attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from pyg_pool.core.parsing import Multiplier
from pyg_pool.errors import check_choice
from pyg_pool.kernels import segment_reduce
from pyg_pool.typing import OptTensor

__all__ = ["CoarseEdges", "check_options", "coarse_attr", "scored_attr"]

OWNER = "GraphParsingPooling"
CoarseEdges = Literal["binary", "count", "sum", "mean", "max"]
LEAST = {
    "in_channels": 1,
    "score_layers": 1,
    "deepsets_layers": 0,
    "edge_channels": 1,
    "max_cluster_size": 1,
}


def check_options(given: Mapping[str, Any]) -> None:
    """Raises ``ValueError`` for an option out of range.

    Args:
        given: The arguments of the constructor by name.
    """
    check_choice(OWNER, "multiplier", given["multiplier"], get_args(Multiplier))
    check_choice(OWNER, "edge_reduce", given["edge_reduce"], get_args(CoarseEdges))
    for name, low in LEAST.items():
        value = given[name]
        if value is not None and value < low:
            raise ValueError(
                f"{OWNER} got {name}={value}, expected an int of at least {low}; "
                f"choose one."
            )
    for name in ("dropout", "dropout_parsing", "score_round"):
        value = given[name]
        if value is not None and not 0.0 <= value < 1.0:
            raise ValueError(
                f"{OWNER} got {name}={value}, expected a float in [0, 1); choose a "
                f"smaller one."
            )


def scored_attr(edge_attr: OptTensor, edge_channels: int | None) -> OptTensor:
    """The attributes that are scored, ``[E, D]``, or ``None`` where none are.

    Raises:
        ValueError: If there are not as many as the scorer reads.
    """
    if edge_channels is None:
        return None
    found = "None" if edge_attr is None else f"shape {list(edge_attr.shape)}"
    if edge_attr is not None and edge_attr.dim() == 1:
        edge_attr = edge_attr.unsqueeze(-1)
    if edge_attr is None or edge_attr.size(-1) != edge_channels:
        raise ValueError(
            f"{OWNER} got edge_attr of {found}, expected [E, {edge_channels}] with "
            f"edge_channels={edge_channels}; pass the attributes of all edges."
        )
    return edge_attr


def coarse_attr(
    edge_attr: OptTensor, place: Tensor, size: int, how: CoarseEdges
) -> OptTensor:
    """Attributes of coarse edges.

    Args:
        edge_attr: Those of the edges.
        place: Coarse edge of each edge, ``size`` for none. Ones do not need it.
        size: Number of coarse edges.
        how: Reduction.

    Shapes:
        edge_attr: ``[E]``, ``[E, 1]`` or ``[E, D]``; place: ``[E]`` int64; the
        first has ``size`` rows in what is returned.

    Raises:
        ValueError: If ones or counts cannot stand for the attributes.
    """
    if edge_attr is None:
        if how != "count":
            return None
        return torch.bincount(place, minlength=size + 1)[:size].to(torch.float32)
    if how not in ("binary", "count"):
        # Edges inside clusters are merged into a last one, which is left out.
        word: Any = how
        merged = segment_reduce(edge_attr, place, dim_size=size + 1, reduce=word)
        return merged.narrow(0, 0, size)
    if edge_attr.dim() > 1 and edge_attr.size(-1) > 1:
        raise ValueError(
            f"{OWNER} got edge_attr of shape {list(edge_attr.shape)}, expected [E] or "
            f"[E, 1] with edge_reduce={how!r}; choose edge_reduce='sum', 'mean' or "
            f"'max'."
        )
    ones = edge_attr.new_ones(size, *edge_attr.shape[1:])
    if how == "binary":
        return ones
    number = torch.bincount(place, minlength=size + 1)[:size]
    return number.to(ones.dtype).view_as(ones)
