"""Features of the fine nodes to features of the clusters."""

from __future__ import annotations

from typing import get_args

import torch
from torch import Tensor
from torch_geometric.nn.aggr import Aggregation

from pyg_pool.core.select import Selection
from pyg_pool.errors import check_choice
from pyg_pool.kernels import segment_reduce, take_rows
from pyg_pool.typing import NodeReduce

__all__ = ["reduce"]


def reduce(
    x: Tensor, selection: Selection, how: NodeReduce | Aggregation = "sum"
) -> Tensor:
    r"""Pools node features into the clusters of a selection.

    .. math::
        X'_c = \mathop{\mathrm{reduce}}_{m:\ \mathrm{cluster}_m = c}
        X_{\mathrm{node}_m}
        \qquad\text{or}\qquad X' = S_w^\top X \ \ (\texttt{"weighted"})

    Args:
        x: Features of the fine nodes.
        selection: Nodes to clusters.
        how: ``"sum"``, ``"mean"``, ``"max"``, ``"min"`` over the members with
            membership 0/1; ``"weighted"``, the sum of members times their weight
            (the only place where a gate or an assignment weight acts); or any PyG
            ``Aggregation``, which gets the members cluster by cluster.

    Returns:
        Features of the clusters, row ``c`` for cluster ``c``; an empty cluster
        gives zeros.

    Shapes:
        x: ``[num_nodes, F]``; returns ``[num_clusters, F]`` (or what the
        aggregation returns).

    Raises:
        ValueError: If ``x`` has not one row per node or ``how`` is unknown.

    Example:
        >>> import torch
        >>> from pyg_pool import Selection
        >>> from pyg_pool.core import reduce
        >>> pairs = Selection.from_clusters(torch.tensor([0, 0, 1]))
        >>> reduce(torch.tensor([[1.0], [2.0], [5.0]]), pairs, "mean")
        tensor([[1.5000],
                [5.0000]])
    """
    if x.dim() == 0 or x.size(0) != selection.num_nodes:
        raise ValueError(
            f"reduce got x of shape {list(x.shape)} for a selection of "
            f"{selection.num_nodes} nodes, expected one row per node; pass the "
            f"features of the level that the selection was made on."
        )
    rows = gather(x, selection)
    index, size = selection.cluster_index, selection.num_clusters
    if isinstance(how, Aggregation):
        # Some aggregations (median, sort, LSTM) take ascending indices only.
        index, order = torch.sort(index, stable=True)
        return how(rows.index_select(0, order), index, dim_size=size)
    check_choice("reduce", "how", how, get_args(NodeReduce))
    if how == "weighted":
        if selection.weight is not None:
            weight = selection.weight.view([-1] + [1] * (x.dim() - 1))
            rows = (rows * weight).to(x.dtype)
        how = "sum"
    if selection._kind == "one_to_one":
        return put_in_order(rows, selection)
    return segment_reduce(rows, index, dim_size=size, reduce=how)


def gather(x: Tensor, selection: Selection) -> Tensor:
    """The fine row of each entry of the selection."""
    if selection._kind in ("one_to_one", "hard"):
        return take_rows(x, selection.node_index)
    return x.index_select(0, selection.node_index)


def put_in_order(rows: Tensor, selection: Selection) -> Tensor:
    """Rows of a one-to-one selection, row ``c`` for cluster ``c``."""
    return rows.new_zeros(rows.shape).index_copy(0, selection.cluster_index, rows)
