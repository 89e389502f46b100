r"""Two-hop adjacency between kept nodes only.

.. math::
    \tilde{A}_{\mathbf{i}, \mathbf{i}} =
    (A + I)_{\mathbf{i}, :}\, (A + I)_{:, \mathbf{i}}

The full square is never formed: rows and columns of dropped nodes are left out
before multiplying.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_pool.core.select import Selection
from pyg_pool.errors import check_choice
from pyg_pool.kernels import incident_edges, sparse_product, take_rows
from pyg_pool.typing import Augment, OptTensor

__all__ = ["augmented"]


def augmented(
    selection: Selection,
    edge_index: Tensor,
    edge_weight: OptTensor = None,
    *,
    how: Augment = "weighted",
    max_edges: int | None = None,
    dtype: torch.dtype | None = None,
) -> tuple[Tensor, OptTensor]:
    r"""Connects kept nodes that are at most two hops apart.

    Args:
        selection: One-to-one selection of the kept nodes.
        edge_index: Edges.
        edge_weight: Their weights, 1 where ``None``. Parallel edges count as their
            sum.
        how: ``"binary"``: pattern of ``B B`` with ``B = 1[A != 0]``, loops as they
            come (without loops in the input, direct links vanish); ``"weighted"``:
            :math:`(A_0 + I)^2` without its diagonal, where :math:`A_0` is A without
            loops; ``"square"``: ``A A``.
        max_edges: Refuse a result with more edges.
        dtype: Type of the weights where ``edge_weight`` is ``None``.

    Returns:
        The edges between clusters, sorted, and their weights; for ``"binary"``
        ones, or ``None`` where no weights were given.

    Shapes:
        edge_index: ``[2, E]``; edge_weight: ``[E]`` or ``[E, 1]``, whose form is
        kept.

    Raises:
        ValueError: If the attributes are no weights, or there are too many edges.

    Note:
        Direction is respected. Gradients reach the weights, except for
        ``"binary"``.

    Source:
        Gao and Ji, "Graph U-Nets", ICML 2019, section 3.4.

    Example:
        >>> import torch
        >>> from pyg_pool import Selection
        >>> from pyg_pool.core.augment import augmented
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> ends = Selection.from_nodes(torch.tensor([0, 2]), 3)
        >>> augmented(ends, path, how="weighted")
        (tensor([[0, 1],
                [1, 0]]), tensor([1., 1.]))
    """
    check_choice("augmented", "how", how, ("binary", "weighted", "square"))
    flat = _flat_weight(edge_weight)
    if how == "binary" and flat is not None:
        present = (flat != 0).nonzero().view(-1)
        edge_index, flat = edge_index.index_select(1, present), None
    elif how != "binary" and flat is None:
        dtype = torch.get_default_dtype() if dtype is None else dtype
        flat = torch.ones_like(edge_index[0], dtype=dtype)
    left, left_weight, right, right_weight = _factors(
        selection, edge_index, flat, with_loops=how == "weighted"
    )
    size = selection.num_clusters
    index, weight = sparse_product(
        left,
        left_weight,
        right,
        right_weight,
        (size, selection.num_nodes, size),
        drop_diagonal=how == "weighted",
        max_entries=max_edges,
    )
    if how == "binary" and edge_weight is not None:
        weight = torch.ones_like(index[0], dtype=edge_weight.dtype)
    if weight is not None and edge_weight is not None:
        weight = weight.view([-1] + [1] * (edge_weight.dim() - 1))
    return index, weight


def _flat_weight(edge_weight: OptTensor) -> OptTensor:
    """The weights as ``[E]``."""
    if edge_weight is None or edge_weight.dim() == 1:
        return edge_weight
    if edge_weight.dim() == 2 and edge_weight.size(1) == 1:
        return edge_weight.view(-1)
    raise ValueError(
        f"a two-hop adjacency got edge_attr of shape {list(edge_weight.shape)}, "
        f"expected one weight per edge ([E] or [E, 1]), as attributes cannot be "
        f"multiplied along a path; reduce them to a weight or use augment='none'."
    )


def _factors(
    selection: Selection, edge_index: Tensor, weight: OptTensor, with_loops: bool
) -> tuple[Tensor, OptTensor, Tensor, OptTensor]:
    """Rows of the kept nodes, and columns of the kept nodes."""
    left, out_ids, right, in_ids = incident_edges(
        edge_index, selection.perm, selection.num_nodes, swap_loops=with_loops
    )
    if weight is None:
        return left, None, right, None
    ones = weight.new_ones(selection.num_clusters if with_loops else 0)
    left_weight = torch.cat([take_rows(weight, out_ids), ones])
    right_weight = torch.cat([take_rows(weight, in_ids), ones])
    return left, left_weight, right, right_weight
