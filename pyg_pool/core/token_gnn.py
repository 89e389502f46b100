"""Message passing on a graph of similar rows, and what is made of its layers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import dropout as drop

from pyg_pool.kernels.pairs import pair_logits
from pyg_pool.kernels.segment import segment_reduce, segment_softmax
from pyg_pool.kernels.similarity import unit_rows
from pyg_pool.typing import OptTensor

__all__ = ["edge_numbers", "refine", "shares"]

JUMPS = ("cat", "max", "mean", "last")


def refine(
    convs: Iterable[Any],
    x: Tensor,
    edge_index: Tensor,
    edge_attr: Tensor,
    *,
    jk: str = "cat",
    dropout: float = 0.0,
) -> Tensor:
    """Applies convolutions one after the other, ReLU behind each, and joins them.

    Args:
        convs: Convolutions, called with ``(x, edge_index, edge_attr)``.
        x: Rows.
        edge_index: Edges.
        edge_attr: A number for each edge.
        jk: ``"cat"`` joins the rows and all layers, ``"max"`` and ``"mean"`` combine
            the layers, ``"last"`` takes the last. Without layers, the rows come back.
        dropout: Dropout behind each layer.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; edge_attr: ``[E, 1]``; returns
        ``[N, F + L C]`` for ``"cat"``, else ``[N, C]``.

    Example:
        >>> import torch
        >>> from pyg_pool.core.token_gnn import refine
        >>> edges = torch.tensor([[0], [1]])
        >>> refine([], torch.ones(2, 3), edges, torch.ones(1, 1)).shape
        torch.Size([2, 3])
    """
    h, layers = x, []
    for conv in convs:
        h = drop(_called(conv, h, edge_index, edge_attr).relu(), dropout)
        layers.append(h)
    if not layers or jk == "cat":
        return torch.cat([x, *layers], 1)
    if jk == "last":
        return h
    stacked = torch.stack(layers)
    return stacked.amax(0) if jk == "max" else stacked.mean(0)


def _called(conv: Any, x: Tensor, edge_index: Tensor, attr: Tensor) -> Tensor:
    """Calls a convolution in the type of ``x``, whatever type its weights have."""
    weights = dict(conv.named_parameters())
    if all(weight.dtype == x.dtype for weight in weights.values()):
        return conv(x, edge_index, attr)
    cast = {name: weight.to(x.dtype) for name, weight in weights.items()}
    return functional_call(conv, cast, (x, edge_index, attr))


def edge_numbers(x: Tensor, edge_index: Tensor, kind: str = "binary") -> Tensor:
    """Returns 1 for each edge, or with ``"cosine"`` the similarity of its ends.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; returns ``[E, 1]``.

    Example:
        >>> import torch
        >>> from pyg_pool.core.token_gnn import edge_numbers
        >>> x = torch.tensor([[3.0, 4.0], [1.0, 0.0]])
        >>> edge_numbers(x, torch.tensor([[0], [1]]), "cosine")
        tensor([[0.6000]])
    """
    if kind == "binary":
        # Expanded, which tells convolutions that all are the same.
        return x.new_ones(1, 1).expand(edge_index.size(1), 1)
    ones = x.new_ones(x.size(1))
    return pair_logits(unit_rows(x), edge_index, ones).unsqueeze(1)


def shares(score: Tensor, index: Tensor, num_groups: int) -> Tensor:
    """Softmax of scores in each group, whose gradient is exact among equal rows.

    Shapes:
        score: ``[N]``; index: ``[N]`` int64; returns ``[N]``.

    Example:
        >>> import torch
        >>> from pyg_pool.core.token_gnn import shares
        >>> shares(torch.zeros(3), torch.tensor([0, 0, 1]), 2)
        tensor([0.5000, 0.5000, 1.0000])
    """
    weight = segment_softmax(score, index, dim_size=num_groups)
    if weight.requires_grad and not torch.compiler.is_compiling():
        rows = torch.arange(index.size(0), device=index.device)
        first = segment_reduce(rows, index, dim_size=num_groups, reduce="min")
        weight.register_hook(partial(_less_first, first.index_select(0, index)))
    return weight


def _less_first(first: Tensor, grad: OptTensor) -> OptTensor:
    """Gradients of shares, less that of the group's first; a softmax takes no notice.

    It keeps rounding errors of large numbers out where the gradient is 0.
    """
    if grad is None:  # in second derivatives
        return None
    return grad - grad.index_select(0, first)
