"""Features of the clusters back to the fine nodes."""

from __future__ import annotations

from typing import get_args

import torch
from torch import Tensor

from pyg_pool.core.select import Selection
from pyg_pool.errors import check_choice
from pyg_pool.kernels import put_rows, segment_reduce
from pyg_pool.typing import Lift

__all__ = ["lift"]


def lift(
    x: Tensor, selection: Selection, how: Lift = "transpose", *, weighted: bool = False
) -> Tensor:
    r"""Brings cluster features back to the nodes of the finer graph.

    .. math::
        X = S X', \qquad X = D^{-1} S X', \qquad X = (S_w^\top)^{+} X'

    Args:
        x: Features of the clusters.
        selection: Nodes to clusters.
        how: ``"transpose"`` gives each node the sum of its clusters' rows (its
            cluster's row where it has one); ``"mean"`` their mean, so that constant
            features stay constant; ``"pinv"`` the pseudo-inverse of
            ``reduce(..., "weighted")``: the smallest features that pool to ``x``.
        weighted: Whether ``"transpose"`` and ``"mean"`` use the weights of the
            selection instead of membership 0/1.

    Returns:
        Features of the fine nodes; a dropped node gets zeros.

    Shapes:
        x: ``[num_clusters, *]``; returns ``[num_nodes, *]``.

    Raises:
        ValueError: If ``x`` has not one row per cluster or ``how`` is unknown.

    Note:
        ``"pinv"`` of a soft selection forms the dense matrix S and costs
        O(N K^2); of a hard one it costs O(N).

    Example:
        >>> import torch
        >>> from pyg_pool import Selection
        >>> from pyg_pool.core import lift
        >>> kept = Selection.from_nodes(torch.tensor([2, 0]), 4)
        >>> lift(torch.tensor([[1.0], [2.0]]), kept).view(-1)
        tensor([2., 0., 1., 0.])
    """
    check_choice("lift", "how", how, get_args(Lift))
    if x.dim() == 0 or x.size(0) != selection.num_clusters:
        raise ValueError(
            f"lift got x of shape {list(x.shape)} for a selection of "
            f"{selection.num_clusters} clusters, expected one row per cluster; pass "
            f"the features of the level that this selection leads to."
        )
    if how == "pinv":
        return _pseudo_inverse(x, selection)
    rows = x.index_select(0, selection.cluster_index)
    node, size = selection.node_index, selection.num_nodes
    if weighted and selection.weight is not None:
        weight = selection.weight.view([-1] + [1] * (x.dim() - 1))
        rows = (rows * weight).to(x.dtype)
        if how == "mean":
            total = segment_reduce(selection.weight, node, dim_size=size)
            total = total.index_select(0, node).view_as(weight)
            rows = rows / total.masked_fill(total == 0, 1.0).to(x.dtype)
            how = "transpose"
    if selection._kind in ("one_to_one", "hard"):
        return put_rows(rows, node, size)
    word = "sum" if how == "transpose" else "mean"
    return segment_reduce(rows, node, dim_size=size, reduce=word)  # type: ignore[arg-type]


def _pseudo_inverse(x: Tensor, selection: Selection) -> Tensor:
    """Least-norm solution of ``S_w' X = x``."""
    if not selection.is_hard:
        dense = selection.to_dense(weighted=True)
        wide = torch.promote_types(
            torch.promote_types(dense.dtype, x.dtype), torch.float
        )
        dense = dense.to(wide)
        out = torch.linalg.pinv(dense.t()) @ x.reshape(x.size(0), -1).to(dense.dtype)
        return out.view([selection.num_nodes, *x.shape[1:]]).to(x.dtype)
    weight = selection.weight
    if weight is None:
        weight = torch.ones_like(selection.node_index, dtype=x.dtype)
    # Squares of half precision weights would underflow.
    weight = weight.to(torch.promote_types(weight.dtype, torch.float))
    index = selection.cluster_index
    total = segment_reduce(weight * weight, index, dim_size=selection.num_clusters)
    share = weight / total.masked_fill(total == 0, 1.0).index_select(0, index)
    share = share.view([-1] + [1] * (x.dim() - 1))
    rows = (x.index_select(0, index) * share).to(x.dtype)
    return put_rows(rows, selection.node_index, selection.num_nodes)
