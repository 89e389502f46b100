"""From the raw features of a data set to vectors a network can use.

OGB's molecules carry integers (atom number, charge, bond type, ...), each of which
needs an embedding; TU sets carry floats, for which a linear map does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor
from torch.nn import functional

from pyg_pool.errors import check_choice

if TYPE_CHECKING:
    from pyg_pool.train.data import GraphDataset

__all__ = ["ATOM_SIZES", "BOND_SIZES", "EdgeEncoder", "NodeEncoder", "encoders"]

ATOM_SIZES = (119, 5, 12, 12, 10, 6, 6, 2, 2)
"""Values of each of OGB's nine atom features; `ogb.utils.features` has the same."""

BOND_SIZES = (5, 6, 2)
"""Values of each of OGB's three bond features."""


class CategoryEmbedding(torch.nn.Module):
    r"""Sum of one embedding per integer column.

    .. math::
        \mathbf{h}_i = \sum_{f} \mathbf{W}^{(f)}_{x_{if}}

    All tables lie below each other in one weight, so that one call looks up all.
    The values are those of OGB's ``AtomEncoder``, for equal tables.

    Args:
        sizes: Number of values of each column.
        channels: Width of the result.

    Shapes:
        x: [N, len(sizes)] int64; result: [N, channels].

    Raises:
        TypeError: If the features are not integers.
        ValueError: If the number of columns differs.
    """

    offset: Tensor

    def __init__(self, sizes: tuple[int, ...], channels: int) -> None:
        super().__init__()
        self.sizes = sizes
        self.channels = channels
        self.weight = torch.nn.Parameter(torch.empty(sum(sizes), channels))
        start = torch.tensor((0, *sizes[:-1])).cumsum(0)
        self.register_buffer("offset", start, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw each table anew (Glorot's uniform rule, as OGB does)."""
        with torch.no_grad():
            for table in torch.split(self.weight, list(self.sizes)):
                torch.nn.init.xavier_uniform_(table)

    def forward(self, x: Tensor) -> Tensor:
        """Embed the rows of ``x``."""
        if x.is_floating_point():
            raise TypeError(
                f"CategoryEmbedding got features of {x.dtype}, expected integers; use "
                "kind='float' for measured features."
            )
        if x.dim() != 2 or x.size(1) != len(self.sizes):
            raise ValueError(
                f"CategoryEmbedding got features of shape {list(x.shape)}, expected "
                f"[num_rows, {len(self.sizes)}]; pass OGB's features."
            )
        return functional.embedding_bag(x + self.offset, self.weight, mode="sum")

    def extra_repr(self) -> str:
        """Say the sizes."""
        return f"{self.sizes}, {self.channels}"


class NodeEncoder(torch.nn.Module):
    r"""Encode node features.

    Args:
        kind: "ogb" for OGB's nine atom features, "float" for measured ones.
        in_channels: Columns of ``x``.
        channels: Width of the result.

    Shapes:
        x: [N, in_channels] int64 ("ogb") or float; result: [N, channels].

    Raises:
        ValueError: If the kind is unknown, or "ogb" has not nine columns.

    Example:
        >>> NodeEncoder("float", 7, 16)(torch.ones(2, 7)).shape
        torch.Size([2, 16])
    """

    def __init__(
        self, kind: Literal["ogb", "float"], in_channels: int, channels: int
    ) -> None:
        super().__init__()
        check_choice("NodeEncoder", "kind", kind, ("ogb", "float"))
        self.lin: torch.nn.Module
        if kind == "ogb":
            self.lin = _categories("NodeEncoder", ATOM_SIZES, in_channels, channels)
        else:
            self.lin = torch.nn.Linear(in_channels, channels)

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        _reset(self.lin)

    def forward(self, x: Tensor) -> Tensor:
        """Encode the nodes."""
        encoded: Tensor = self.lin(x)
        return encoded


class EdgeEncoder(torch.nn.Module):
    r"""Encode edge features.

    Args:
        kind: "ogb" for OGB's three bond features, "float" for measured ones.
        in_channels: Columns of ``edge_attr``.
        channels: Width of the result.

    Shapes:
        edge_attr: [E, in_channels] int64 ("ogb") or float; result: [E, channels].

    Raises:
        ValueError: If the kind is unknown, or "ogb" has not three columns.
    """

    def __init__(
        self, kind: Literal["ogb", "float"], in_channels: int, channels: int
    ) -> None:
        super().__init__()
        check_choice("EdgeEncoder", "kind", kind, ("ogb", "float"))
        self.lin: torch.nn.Module
        if kind == "ogb":
            self.lin = _categories("EdgeEncoder", BOND_SIZES, in_channels, channels)
        else:
            self.lin = torch.nn.Linear(in_channels, channels)

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        _reset(self.lin)

    def forward(self, edge_attr: Tensor) -> Tensor:
        """Encode the edges."""
        encoded: Tensor = self.lin(edge_attr)
        return encoded


def encoders(
    dataset: GraphDataset, channels: int, *, edge_channels: int | None = None
) -> tuple[NodeEncoder, EdgeEncoder | None]:
    """Make the encoders that fit a data set.

    Args:
        dataset: The set.
        channels: Width of the encoded nodes.
        edge_channels: Width of the encoded edges; ``channels`` if left out.

    Returns:
        The node encoder and the edge encoder; ``None`` for a set without edge
        features.
    """
    nodes = NodeEncoder(dataset.feature_kind, dataset.in_channels, channels)
    if dataset.edge_channels == 0:
        return nodes, None
    width = channels if edge_channels is None else edge_channels
    return nodes, EdgeEncoder(dataset.feature_kind, dataset.edge_channels, width)


def _categories(
    owner: str, sizes: tuple[int, ...], in_channels: int, channels: int
) -> CategoryEmbedding:
    """Make the embedding, or say that the features are not OGB's."""
    if in_channels != len(sizes):
        raise ValueError(
            f"{owner} got in_channels={in_channels} with kind='ogb', expected "
            f"{len(sizes)}; use kind='float' for other features."
        )
    return CategoryEmbedding(sizes, channels)


def _reset(module: torch.nn.Module) -> None:
    """Draw weights anew; every module used here has the method."""
    module.reset_parameters()  # type: ignore[operator]
