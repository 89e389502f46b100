"""How a base network is called, and whether it may run on a part of the copies."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from torch import Tensor
from torch.nn import Dropout, Module
from torch.nn.modules.batchnorm import _BatchNorm

from pyg_pool.errors import PygPoolWarning
from pyg_pool.typing import OptTensor

__all__ = ["call_base", "check_chunks"]


def call_base(
    base: Module,
    x: Tensor,
    edge_index: Tensor,
    edge_attr: OptTensor,
    batch: Tensor,
    batch_size: int,
) -> Tensor:
    """Calls a PyG module with those of the arguments that it takes."""
    names = inspect.signature(base.forward).parameters
    given: dict[str, Any] = {}
    for name in ("edge_attr", "edge_weight"):
        if name in names and edge_attr is not None:
            given[name] = edge_attr
            break
    sizes: dict[str, Any] = {"batch": batch, "batch_size": batch_size}
    given.update({name: value for name, value in sizes.items() if name in names})
    out: Tensor = base(x, edge_index, **given)
    return out


def check_chunks(base: Module, chunk_size: int | None, *, training: bool) -> None:
    """Refuses or warns of layers whose result depends on the chunks.

    Raises:
        ValueError: If the copies of the base read each other.
    """
    if getattr(base, "mixes_copies", False):
        raise ValueError(
            f"RelationalPooling got chunk_size={chunk_size} and a base whose copies "
            f"read each other, expected all copies at once; leave chunk_size out, or "
            f"take a smaller domain or num_samples."
        )
    if not training:
        return
    for module in base.modules():
        is_random = isinstance(module, Dropout) and module.p > 0
        if isinstance(module, _BatchNorm) or is_random:
            warnings.warn(
                f"RelationalPooling got chunk_size={chunk_size} and a base with "
                f"{type(module).__name__} in training, expected layers that treat "
                f"every chunk alike; take a layer norm and no dropout, or leave "
                f"chunk_size out.",
                PygPoolWarning,
                stacklevel=3,
            )
            return
