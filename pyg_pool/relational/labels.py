"""Features that tell the labelled nodes of a copy from the others."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from pyg_pool.errors import check_choice
from pyg_pool.kernels.components import connected_components
from pyg_pool.relational.copies import Copies
from pyg_pool.relational.domains import Ground
from pyg_pool.relational.neighbours import find_balls

__all__ = ["ENCODINGS", "label_features", "label_width"]

Encoding = Literal["mark", "spd", "resistance", "none"]
ENCODINGS = ("mark", "spd", "resistance", "none")


def label_width(
    length: int, encoding: str, *, ordered: bool = True, dmax: int = 5
) -> int:
    """Number of label features of a node.

    Example:
        >>> from pyg_pool.relational.labels import label_width
        >>> label_width(2, "spd", dmax=3), label_width(2, "mark", ordered=False)
        (10, 1)
    """
    check_choice("label_features", "encoding", encoding, ENCODINGS)
    if encoding == "none" or length == 0:
        return 0
    each = dmax + 2 if encoding == "spd" else 1
    return each * length if ordered else each


def label_features(
    ground: Ground,
    copies: Copies,
    encoding: str = "mark",
    *,
    ordered: bool = True,
    dmax: int = 5,
) -> Tensor:
    """Returns the label features of each pair of tuple and node.

    Args:
        ground: The graphs.
        copies: Their copies.
        encoding: ``"mark"``: one column per position, 1 at its node. ``"spd"``: one-hot
            distance to the node of each position in the whole graph, cut at ``dmax``,
            one more column for nodes that cannot be reached. ``"resistance"``: the
            resistance distance, -1 where there is none. ``"none"``: no columns.
        ordered: Columns per position, or their sum over all positions.
        dmax: Largest distance that ``"spd"`` tells apart.

    Shapes:
        returns ``[P, W]`` float; see :func:`label_width`.

    Note:
        A position of -1 labels nobody: its columns are zero. ``"resistance"`` inverts
        a dense matrix per graph; meant for small graphs.

    Example:
        >>> import torch
        >>> from pyg_pool.relational.copies import expand_copies
        >>> from pyg_pool.relational.labels import label_features
        >>> from pyg_pool.relational.tuples import find_tuples, lay_ground
        >>> path = torch.tensor([[0, 1], [1, 2]])
        >>> ground, tuples = lay_ground(path, None), find_tuples(path, None, 1, "star")
        >>> label_features(ground, expand_copies(ground, tuples)).view(3, 3)
        tensor([[1., 0., 0.],
                [0., 1., 0.],
                [0., 0., 1.]])
    """
    length = copies.tuples.index.size(1)
    width = label_width(length, encoding, ordered=ordered, dmax=dmax)
    if width == 0:
        return torch.zeros((copies.num_pairs, 0), device=copies.pair_node.device)
    index = copies.tuples.index.index_select(0, copies.pair_tuple)
    node = copies.pair_node.view(-1, 1)
    if encoding == "mark":
        columns = (index == node).float().unsqueeze(-1)
    elif encoding == "spd":
        columns = _distances(ground, index, node.expand_as(index), dmax)
    else:
        columns = _resistances(ground, index, node.expand_as(index)).unsqueeze(-1)
    columns = columns * (index >= 0).unsqueeze(-1)
    return columns.flatten(1) if ordered else columns.sum(1)


def _distances(ground: Ground, index: Tensor, node: Tensor, dmax: int) -> Tensor:
    """One-hot distance, ``[P, l, dmax + 2]``."""
    balls = find_balls(ground.lists, ground.num_nodes, dmax)
    source = index.clamp(min=0)
    far = balls.distances(source.reshape(-1), node.reshape(-1), dmax)
    part = connected_components(ground.edge_index, ground.num_nodes)
    is_apart = part.index_select(0, source.reshape(-1)) != part.index_select(
        0, node.reshape(-1)
    )
    far = far.masked_fill(is_apart, dmax + 1).view(index.shape)
    return torch.nn.functional.one_hot(far, dmax + 2).float()


def _resistances(ground: Ground, index: Tensor, node: Tensor) -> Tensor:
    """Resistance distance, ``[P, l]``, -1 between components."""
    out = torch.full(index.shape, -1.0, device=index.device)
    part = connected_components(ground.edge_index, ground.num_nodes)
    lists = ground.lists
    graph = ground.batch.index_select(0, node[:, 0]) if node.numel() else node[:, 0]
    for number, low in enumerate(ground.start[:-1].tolist()):
        size = int(ground.start[number + 1]) - low
        rows = (graph == number).nonzero().view(-1)
        if rows.numel() == 0:
            continue
        span = slice(int(lists.ptr[low]), int(lists.ptr[low + size]))
        count = lists.count[low : low + size]
        laplacian = torch.diag(count.double())
        source = torch.arange(size, device=count.device).repeat_interleave(count)
        laplacian[source, lists.value[span] - low] = -1.0
        inverse = torch.linalg.pinv(laplacian, hermitian=True)
        i, j = index[rows].clamp(min=low) - low, node[rows] - low
        own = inverse.diagonal()
        value = own[i] + own[j] - 2 * inverse[i, j]
        is_joined = part[i + low] == part[j + low]
        out[rows] = torch.where(is_joined, value, -1.0).to(out.dtype)
    return out
