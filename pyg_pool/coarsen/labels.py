"""Cluster numbers: checked, made dense, composed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyg_pool.coarsen.group_numba import number_by_first
from pyg_pool.errors import PygPoolWarning

__all__ = ["checked", "compact"]

Array = NDArray[Any]


def compact(label: Array) -> Array:
    """Labels 0..n-1, numbered by first member."""
    out = np.empty(label.size, dtype=np.int64)
    number_by_first(label, int(label.max(initial=-1)) + 1, out)
    return out


def checked(owner: str, label: Any, num_nodes: int) -> tuple[Array, int]:
    """Labels of a caller as int64, without gaps, and their number.

    Raises:
        ValueError: If there is not one label >= 0 per node.
    """
    label = np.asarray(label)
    if label.shape != (num_nodes,) or label.dtype.kind not in "iu":
        raise ValueError(
            f"{owner} got labels of shape {list(label.shape)} and dtype {label.dtype}, "
            f"expected [{num_nodes}] integers; give one cluster per node."
        )
    if label.size and label.min() < 0:
        raise ValueError(
            f"{owner} got label {label.min()}, expected labels >= 0; give every node a "
            f"cluster."
        )
    used = np.unique(label)
    if used.size and used[-1] != used.size - 1:
        warnings.warn(
            f"{owner} got {used.size} labels up to {used[-1]}, which leaves "
            f"{used[-1] + 1 - used.size} clusters empty; they were renumbered.",
            PygPoolWarning,
            stacklevel=3,
        )
        return np.searchsorted(used, label), int(used.size)
    return label.astype(np.int64), int(used.size)
