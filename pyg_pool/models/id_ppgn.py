"""ID-PPGN: labels on a 2-FWL network."""

from __future__ import annotations

from torch import Tensor
from torch.nn import Linear, Module, ReLU, Sequential

from pyg_pool.models.layers import reset
from pyg_pool.relational import FWLNet
from pyg_pool.typing import OptTensor

__all__ = ["IDPPGN"]


class IDPPGN(Module):
    r"""2-FWL network on labelled copies: stronger than 2-FWL and than 1,l networks.

    Args:
        in_channels: Number of node features.
        hidden_channels: Width of the pair features.
        out_channels: Size of each output row.
        num_layers: Number of layers.
        l: Number of labels.
        domain: Tuples that get labels.
        edge_channels: Width of ``edge_attr``; 0 for none.
        max_distance: Only pairs of nodes within this distance.
        tuple_pool: ``"mean"``, ``"sum"``, ``"max"`` or ``"min"``.
        memory_limit: Bytes that may be needed; ``None`` for 80 % of what is free.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; returns ``[B, out_channels]``.

    Note:
        Cost: the pairs of nodes of each graph, once per tuple.

    Source:
        C. Zhou, X. Wang, M. Zhang. From Relational Pooling to Subgraph GNNs: A
        Universal Framework for More Expressive Graph Neural Networks. ICML 2023.

    Example:
        >>> import torch
        >>> from pyg_pool.models import IDPPGN
        >>> IDPPGN(2, 8, 3)(torch.ones(3, 2), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([1, 3])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 3,
        *,
        l: int = 1,  # noqa: E741
        domain: str = "subset",
        edge_channels: int = 0,
        max_distance: int | None = None,
        tuple_pool: str = "mean",
        memory_limit: int | None = None,
    ) -> None:
        super().__init__()
        self.network = FWLNet(
            in_channels,
            hidden_channels,
            hidden_channels,
            num_layers=num_layers,
            l=l,
            domain=domain,
            edge_channels=edge_channels,
            max_distance=max_distance,
            tuple_pool=tuple_pool,
            memory_limit=memory_limit,
        )
        width = hidden_channels
        self.head = Sequential(
            Linear(width, width), ReLU(), Linear(width, out_channels)
        )

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        self.network.reset_parameters()
        for layer in self.head:
            reset(layer)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: OptTensor = None,
        *,
        batch: OptTensor = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """Returns one row per graph."""
        rows = self.network(
            x, edge_index, edge_attr, batch=batch, batch_size=batch_size
        )
        out: Tensor = self.head(rows)
        return out
