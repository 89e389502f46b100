"""gUnpool: pooled rows back at their old places, zeros elsewhere."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_pool.core import Selection
from pyg_pool.kernels import put_rows

__all__ = ["GUnpool"]


class GUnpool(torch.nn.Module):
    r"""Puts pooled rows back at their old places and zeros elsewhere (gUnpool).

    .. math::
        \mathbf{X} = \mathbf{0}, \qquad \mathbf{X}_{\mathbf{i}} = \mathbf{X}'

    Shapes:
        x: ``[K, *]``; returns ``[N, *]``.

    Raises:
        ValueError: If ``x`` has not one row per cluster of the selection.

    Note:
        The gate is not applied again. The gradient is a gather.

    Source:
        Gao and Ji, "Graph U-Nets", ICML 2019, equation 5.

    Example:
        >>> import torch
        >>> from pyg_pool import GUnpool, Selection
        >>> kept = Selection.from_nodes(torch.tensor([2, 0]), 3)
        >>> GUnpool()(torch.tensor([[5.0], [7.0]]), kept).view(-1)
        tensor([7., 0., 5.])
    """

    def forward(self, x: Tensor, selection: Selection) -> Tensor:
        """Returns the rows of ``x`` at the nodes they were taken from.

        Args:
            x: Rows of the pooled graph.
            selection: The one-to-one selection of the pooling step.
        """
        if x.dim() == 0 or x.size(0) != selection.num_clusters:
            raise ValueError(
                f"GUnpool got x of shape {list(x.shape)} for a selection of "
                f"{selection.num_clusters} kept nodes, expected one row for each; "
                f"pass the selection of the pooling step that gave this level."
            )
        if not selection.is_one_to_one:
            raise ValueError(
                f"GUnpool got {selection}, expected a one-to-one selection of kept "
                f"nodes; use pyg_pool.core.lift for clusters."
            )
        rows = x.index_select(0, selection.cluster_index)
        return put_rows(rows, selection.node_index, selection.num_nodes)
