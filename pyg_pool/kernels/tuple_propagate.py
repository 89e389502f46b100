"""Messages between pairs of nodes along the edges of one node, with no list of them.

The pairs of a graph with n nodes are its n² rows in lexicographic order, so that the
row of a pair follows from the graph's offsets. An edge moves one coordinate and leaves
the other as it is: it stands for n messages, none of which is written down.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor

from pyg_pool.errors import check_edges, reads_values
from pyg_pool.kernels.dispatch import chosen, is_traced, runs_numba

__all__ = ["pair_ptr", "tuple_propagate"]

# Messages that the native form holds at once.
CHUNK = 1 << 20


def pair_ptr(ptr: Tensor) -> Tensor:
    """First row of the pairs of each graph, and their number in the end.

    Shapes:
        ptr: ``[B + 1]`` offsets of the nodes; returns ``[B + 1]``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.tuple_propagate import pair_ptr
        >>> pair_ptr(torch.tensor([0, 3, 5]))
        tensor([ 0,  9, 13])
    """
    size = ptr.diff().square()
    return torch.cat([size.new_zeros(1), size.cumsum(0)])


def tuple_propagate(
    x: Tensor, edge_index: Tensor, ptr: Tensor, *, axis: int = 1
) -> Tensor:
    r"""Adds up the rows of all pairs that differ by an edge in one coordinate.

    .. math::
        y_{uv} = \sum_{w \to v} x_{uw} \quad (\text{axis } 1), \qquad
        y_{uv} = \sum_{w \to u} x_{wv} \quad (\text{axis } 0)

    Args:
        x: A row per ordered pair of nodes of the same graph. With n nodes from p on
            and pairs from row r on, the pair (u, v) is row r + (u - p) n + v - p.
        edge_index: Edges, in any order; each inside one graph.
        ptr: Offsets of the graphs' nodes.
        axis: The coordinate that an edge moves, 0 or 1.

    Returns:
        Sums in the order and type of ``x``.

    Shapes:
        x: ``[R, F]`` with R the sum of the squared sizes of the graphs; edge_index:
        ``[2, E]`` int64; ptr: ``[B + 1]`` int64; returns ``[R, F]``.

    Raises:
        ValueError: If shapes do not fit, or an edge joins two graphs.

    Note:
        Half precision is added up in float32. Deterministic. Memory is that of the
        result; native torch holds a block of messages more, all of them in a traced
        graph. The gradient is the same sum against the edges. Cost: O(n E F).

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.tuple_propagate import tuple_propagate
        >>> x = torch.tensor([[1.0], [2.0], [3.0], [4.0]])  # (0,0) (0,1) (1,0) (1,1)
        >>> edge, ptr = torch.tensor([[0], [1]]), torch.tensor([0, 2])
        >>> tuple_propagate(x, edge, ptr).view(-1)
        tensor([0., 1., 0., 3.])
        >>> tuple_propagate(x, edge, ptr, axis=0).view(-1)
        tensor([0., 0., 1., 2.])
    """
    if axis not in (0, 1) or x.dim() != 2 or ptr.dim() != 1 or ptr.numel() == 0:
        raise ValueError(
            f"tuple_propagate got x of shape {list(x.shape)}, ptr of shape "
            f"{list(ptr.shape)} and axis={axis}, expected [R, F], [B + 1] and 0 or 1; "
            f"flatten features, and pass the offsets of all graphs."
        )
    edge_index = check_edges("tuple_propagate", edge_index, None, None).contiguous()
    if reads_values(ptr):
        _check_rows(x, edge_index, ptr)
    if is_traced():
        return _native(x, edge_index, ptr, axis)
    out: Tensor = _Propagate.apply(x, edge_index, ptr, axis)
    return out


def _check_rows(x: Tensor, edge_index: Tensor, ptr: Tensor) -> None:
    """Raises ``ValueError`` unless rows, edges and offsets belong together."""
    rows = int(ptr.diff().square().sum())
    ends = torch.searchsorted(ptr, edge_index, right=True)
    inside = int(edge_index.max()) < int(ptr[-1]) if edge_index.numel() > 0 else True
    if rows != x.size(0) or not inside or not torch.equal(ends[0], ends[1]):
        raise ValueError(
            f"tuple_propagate got {x.size(0)} rows and edges up to node "
            f"{int(edge_index.max()) if edge_index.numel() > 0 else None} for graphs "
            f"with {rows} pairs of {int(ptr[-1])} nodes, expected a row per pair and "
            f"edges inside one graph; check ptr."
        )


class _Propagate(torch.autograd.Function):
    """The sum; its gradient is the same one against the edges."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, edge_index: Tensor, ptr: Tensor, axis: int
    ) -> Tensor:
        ctx.save_for_backward(edge_index, ptr)
        ctx.axis = axis
        return _chosen(x, edge_index, ptr, axis)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        edge_index, ptr = ctx.saved_tensors
        out: Tensor = _Propagate.apply(grad, edge_index.flip(0), ptr, ctx.axis)
        return out, None, None, None


def _chosen(x: Tensor, edge_index: Tensor, ptr: Tensor, axis: int) -> Tensor:
    """The sum by the backend in force."""
    if x.is_floating_point() and chosen("tuple_propagate", x, edge_index, ptr):
        from pyg_pool.kernels import tuple_propagate_triton

        found: Tensor = tuple_propagate_triton.propagate(x, edge_index, ptr, axis)
        return found
    known = x.dtype in (torch.float32, torch.float64)
    if known and runs_numba("tuple_propagate", x.numel(), x, edge_index, ptr):
        from pyg_pool.kernels import tuple_propagate_numba

        rows = x.detach().contiguous()
        out = torch.zeros_like(rows)
        tuple_propagate_numba.propagate(
            rows.numpy(), edge_index.contiguous().numpy(), ptr.contiguous().numpy(),
            axis, out.numpy(),
        )  # fmt: skip
        return out
    return _native(x, edge_index, ptr, axis)


def _native(x: Tensor, edge_index: Tensor, ptr: Tensor, axis: int) -> Tensor:
    """Blocks of messages, in torch's own operations."""
    graph = torch.searchsorted(ptr, edge_index[0], right=True) - 1
    size = ptr.diff().index_select(0, graph)
    first = ptr.index_select(0, graph)
    base = pair_ptr(ptr).index_select(0, graph)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    out = torch.zeros_like(wide)
    parts = (slice(None),) if is_traced() else _blocks(size)
    for part in parts:
        number, n = size[part], size[part].repeat_interleave(size[part])
        place = torch.arange(n.numel(), device=x.device)
        place = place - (number.cumsum(0) - number).repeat_interleave(number)
        start = base[part].repeat_interleave(number)
        source, target = (
            (edge_index[i][part] - first[part]).repeat_interleave(number)
            for i in (0, 1)
        )
        if axis == 0:
            source, target = (start + end * n + place for end in (source, target))
        else:
            source, target = (start + place * n + end for end in (source, target))
        out = out.index_add(0, target, wide.index_select(0, source))
    return out.to(x.dtype)


def _blocks(size: Tensor) -> list[slice]:
    """Spans of edges with a bounded number of messages, an edge at least."""
    block = size.cumsum(0).sub(1).div(CHUNK, rounding_mode="floor")
    count = torch.unique_consecutive(block, return_counts=True)[1]
    ends = [0, *count.cumsum(0).tolist()]
    return [slice(a, b) for a, b in itertools.pairwise(ends)]
