"""Messages on several copies of a graph along the one list of its edges.

The rows of a copy lie side by side, and all copies of a graph have its edges, which
are listed once. With edge features the messages are those of GINE; none is written
down on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.dispatch import is_traced, runs_numba
from pyg_pool.kernels.gather_sum import gather_sum
from pyg_pool.typing import OptTensor

__all__ = ["CopyGroup", "copy_sum"]

#: Elements of the messages that native torch holds at once.
CHUNK = 1 << 22


@dataclass(frozen=True)
class CopyGroup:
    """Copies of one graph, one after the other.

    Args:
        start: First row of the first copy.
        count: Number of copies.
        size: Rows of each copy.
        edge_index: ``[2, e]`` edges of the graph, counted from its first node.
        edge_id: ``[e]`` row of each edge's weight or features.
    """

    start: int
    count: int
    size: int
    edge_index: Tensor
    edge_id: Tensor

    @property
    def rows(self) -> slice:
        """The rows of all copies."""
        return slice(self.start, self.start + self.count * self.size)


def copy_sum(
    x: Tensor,
    groups: Sequence[CopyGroup],
    *,
    weight: OptTensor = None,
    edge: OptTensor = None,
    own: bool = False,
) -> Tensor:
    r"""Adds up the messages that reach each row.

    .. math::
        y_{cv} = [\mathrm{own}]\, x_{cv} + \sum_{(u, v)} w_{uv}\, x_{cu}
        \qquad \text{or} \qquad
        y_{cv} = [\mathrm{own}]\, x_{cv} + \sum_{(u, v)} \mathrm{ReLU}(x_{cu} + e_{uv})

    Args:
        x: Rows of all copies.
        groups: Which rows are copies of one graph, and its edges; together they
            cover all rows in order.
        weight: Weight of each edge, for all columns or one for each; ones if left out.
        edge: Features of each edge, which make the second form.
        own: Add each row itself.

    Shapes:
        x: ``[P, F]``; weight: ``[E]`` or ``[E, F]``; edge: ``[E, F]``; returns
        ``[P, F]``.

    Raises:
        ValueError: If both weights and features are given.

    Note:
        Half precision is added up in float32. Deterministic on the CPU.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.copy_sum import CopyGroup, copy_sum
        >>> edge = torch.tensor([[0], [1]])
        >>> group = CopyGroup(0, 2, 2, edge, torch.tensor([0]))
        >>> copy_sum(torch.tensor([[1.0], [2.0], [3.0], [4.0]]), [group]).view(-1)
        tensor([0., 1., 0., 3.])
    """
    if weight is not None and edge is not None:
        raise ValueError(
            f"copy_sum got weight of shape {list(weight.shape)} and edge of shape "
            f"{list(edge.shape)}, expected one of them; multiply beforehand."
        )
    if weight is None and edge is None and len(groups) == 1 and groups[0].count == 1:
        return gather_sum(x, groups[0].edge_index, x.size(0), own=own)
    if weight is not None and weight.dim() == 1:
        weight = weight.unsqueeze(-1)
    if is_traced() or x.dtype not in (torch.float32, torch.float64):
        return _native(x, groups, weight, edge, own)
    values = edge if weight is None else weight
    values = x.new_empty((0, 0)) if values is None else values.to(x.dtype)
    number = x.numel() + values.numel()
    if not runs_numba("gather_sum", number, x, values):
        return _native(x, groups, weight, edge, own)
    kind = "edge" if edge is not None else ("sum" if weight is None else "weight")
    out: Tensor = _CopySum.apply(x, values, groups, kind, own)
    return out


class _CopySum(torch.autograd.Function):
    """The compiled form; the messages are computed again for the gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        values: Tensor,
        groups: Sequence[CopyGroup],
        kind: str,
        own: bool,
    ) -> Tensor:
        # A plain sum is linear: its gradient does not ask for the rows.
        rows = x if kind != "sum" and (kind == "edge" or values.requires_grad) else None
        ctx.save_for_backward(rows, values)
        ctx.groups, ctx.kind, ctx.own = groups, kind, own
        x, values = x.detach().contiguous(), values.detach().contiguous()
        out = x.clone() if own else torch.zeros_like(x)
        run = _compiled()
        for group in groups:
            here = _arrays(group, x, out)
            if kind == "edge":
                run.add_edges(*here, values.numpy(), group.count, group.size)
            else:
                run.add_rows(*here, values.numpy(), group.count, group.size)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        x, values = ctx.saved_tensors
        if torch.is_grad_enabled():
            return (*_again(ctx, x, values, grad), None, None, None)
        grad, values = grad.contiguous(), values.contiguous()
        first = grad.clone() if ctx.own else torch.zeros_like(grad)
        second = torch.zeros_like(values)
        rows = grad if x is None else x.contiguous()
        run = _compiled()
        for group in ctx.groups:
            ends = group.edge_index[0].numpy(), group.edge_index[1].numpy()
            ids, size = group.edge_id.numpy(), (group.count, group.size)
            span = group.rows
            here = grad[span].numpy(), first[span].numpy(), values.numpy()
            if ctx.kind == "edge":
                parts = rows[span].numpy(), *ends, ids, *here, second.numpy()
                run.back_edges(*parts, *size)
                continue
            run.add_rows(here[0], ends[1], ends[0], ids, here[1], here[2], *size)
            if x is not None:
                run.back_weights(
                    rows[span].numpy(), *ends, ids, here[0], second.numpy(), *size
                )
        return first, second, None, None, None


def _again(ctx: Any, x: OptTensor, values: Tensor, grad: Tensor) -> tuple[Tensor, ...]:
    """The gradient by torch's own operations, for second derivatives."""
    rows = torch.zeros_like(grad).requires_grad_() if x is None else x
    weight = values if ctx.kind == "weight" else None
    edge = values if ctx.kind == "edge" else None
    with torch.enable_grad():
        out = _native(rows, ctx.groups, weight, edge, ctx.own)
    wanted = [each for each in (rows, values) if each.requires_grad]
    found = torch.autograd.grad(out, wanted, grad, create_graph=True, allow_unused=True)
    first, *rest = found if rows.requires_grad else (None, *found)
    return first, rest[0] if rest else None  # type: ignore[return-value]


def _compiled() -> Any:
    from pyg_pool.kernels import copy_sum_numba

    return copy_sum_numba


def _arrays(group: CopyGroup, x: Tensor, out: Tensor) -> list[Any]:
    """Rows, ends and ids of the edges, and where the sums go."""
    span, ends = group.rows, group.edge_index
    parts = x[span], ends[0], ends[1], group.edge_id, out[span]
    return [part.numpy() for part in parts]


def _native(
    x: Tensor,
    groups: Sequence[CopyGroup],
    weight: OptTensor,
    edge: OptTensor,
    own: bool,
) -> Tensor:
    """A few copies at a time, in torch's own operations."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    done = [wide[:0]]
    for group in groups:
        rows = wide[group.rows].view(group.count, group.size, x.size(1))
        source, target = group.edge_index
        factor = None if weight is None else weight.index_select(0, group.edge_id)
        more = None if edge is None else edge.index_select(0, group.edge_id)
        each = max(source.numel() * x.size(1), 1)
        for part in rows.split(max(CHUNK // each, 1)):
            message = part.index_select(1, source)
            if factor is not None:
                message = message * factor.to(wide.dtype)
            if more is not None:
                message = (message + more.to(wide.dtype)).relu()
            start = part if own else torch.zeros_like(part)
            done.append(start.index_add(1, target, message).flatten(0, 1))
    return torch.cat(done).to(x.dtype)
