"""Primal-dual unpooling: features of clusters and dual nodes back where they were."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_pool.core import Selection

__all__ = ["PrimalDualUnpooling"]


class PrimalDualUnpooling(torch.nn.Module):
    r"""Gives each face the features of its cluster, each dual node those it went to.

    .. math::
        \mathbf{x}_i = \mathbf{x}'_{c(i)}, \qquad
        \mathbf{d}_e = \mathbf{d}'_{m(e)} \text{ or } \mathbf{v} \text{ if } e
        \text{ vanished}

    Args:
        dual_channels: Number of features Cd of a dual node.

    Shapes:
        x: ``[K, Cp]``; x_dual: ``[D', Cd]``; returns ``[F, Cp]`` and ``[D, Cd]``.

    Raises:
        ValueError: If rows do not fit the selections.

    Note:
        The vector v is learned and shared by all dual nodes that vanished. Sums are
        not divided again. Edges and batch vectors are those from before pooling.

    Source:
        Milano, Loquercio, Rosinol, Scaramuzza and Carlone, "Primal-Dual Mesh
        Convolutional Neural Networks", NeurIPS 2020.

    Example:
        >>> import torch
        >>> from pyg_pool import PrimalDualUnpooling, Selection
        >>> faces = Selection.from_clusters(torch.tensor([0, 0, 1]))
        >>> duals = Selection.from_clusters(torch.tensor([-1, 0]))
        >>> unpool = PrimalDualUnpooling(1)
        >>> x = torch.tensor([[2.0], [9.0]])
        >>> x, x_dual = unpool(x, torch.ones(1, 1), faces, duals)
        >>> x.view(-1), x_dual[1]
        (tensor([2., 2., 9.]), tensor([1.], grad_fn=<SelectBackward0>))
    """

    def __init__(self, dual_channels: int) -> None:
        super().__init__()
        self.dual_channels = dual_channels
        self.new_dual_feature = torch.nn.Parameter(torch.empty(1, dual_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the learned vector anew."""
        torch.nn.init.xavier_uniform_(self.new_dual_feature)

    def forward(
        self, x: Tensor, x_dual: Tensor, selection: Selection, selection_dual: Selection
    ) -> tuple[Tensor, Tensor]:
        """Returns features of the faces and of the dual nodes before pooling.

        Args:
            x: Features of the clusters.
            x_dual: Features of the dual nodes.
            selection: Faces to clusters, from the pooling step.
            selection_dual: Dual nodes to dual nodes, from the pooling step.
        """
        for name, rows, chosen in (
            ("x", x, selection),
            ("x_dual", x_dual, selection_dual),
        ):
            if rows.dim() != 2 or rows.size(0) != chosen.num_clusters:
                raise ValueError(
                    f"PrimalDualUnpooling got {name} of shape {list(rows.shape)} for "
                    f"{chosen}, expected one row per cluster; pass the selections of "
                    f"the pooling step that gave this level."
                )
        if x_dual.size(1) != self.dual_channels:
            raise ValueError(
                f"PrimalDualUnpooling got x_dual of shape {list(x_dual.shape)}, "
                f"expected {self.dual_channels} columns; build it with "
                f"dual_channels={x_dual.size(1)}."
            )
        cluster = selection_dual.cluster
        vanished = cluster < 0
        rows = torch.cat([x_dual, self.new_dual_feature.to(x_dual.dtype)])
        index = cluster.masked_fill(vanished, x_dual.size(0))
        return x.index_select(0, selection.cluster), rows.index_select(0, index)

    def extra_repr(self) -> str:
        """The width of a dual node."""
        return f"{self.dual_channels}"
