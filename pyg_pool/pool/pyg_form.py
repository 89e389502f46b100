"""Results in the form of PyG's own poolings, for code written for them."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from pyg_pool.core import PoolOutput
from pyg_pool.typing import OptTensor

__all__ = ["as_pyg_tuple"]


class PygTopKOutput(NamedTuple):
    """The six values that PyG's ``TopKPooling`` returns, in its order."""

    x: Tensor
    edge_index: Tensor
    edge_attr: OptTensor
    batch: Tensor
    perm: Tensor
    score: OptTensor


def as_pyg_tuple(out: PoolOutput) -> PygTopKOutput:
    """Returns a result in the form of PyG's ``TopKPooling``.

    Args:
        out: Result of a pooling operator that keeps single nodes.

    Returns:
        ``x, edge_index, edge_attr, batch, perm, score``; ``perm[c]`` is the row of
        the input that became row ``c``.

    Raises:
        ValueError: If clusters hold several nodes, so that there is no ``perm``.

    Example:
        >>> import torch
        >>> from pyg_pool import GPool, as_pyg_tuple
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> x, edge_index, _, _, perm, score = as_pyg_tuple(
        ...     GPool(2, ratio=1)(torch.ones(2, 2), edges))
        >>> perm
        tensor([0])
    """
    return PygTopKOutput(
        out.x,
        out.edge_index,
        out.edge_attr,
        out.batch,
        out.selection.perm,
        out.score,
    )
