"""Runs PyG layers on whole copies without listing the edges of each copy.

The rows of all copies stay one flat table, so that norms, linear maps and everything
else between the messages see what they always see. Only the messages change: all
copies of a graph send theirs along the one list of its edges.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.modules.batchnorm import _BatchNorm
from torch_geometric.nn import GCNConv, GINEConv, MessagePassing
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from pyg_pool.kernels.copy_sum import CopyGroup, copy_sum
from pyg_pool.kernels.dispatch import is_traced
from pyg_pool.relational.calls import call_base
from pyg_pool.typing import OptTensor

__all__ = ["run_shared", "shares_edges"]

FORMS = ("sum", "edge")
HOOKS = (
    "_propagate_forward_pre_hooks",
    "_propagate_forward_hooks",
    "_message_forward_pre_hooks",
    "_message_forward_hooks",
    "_aggregate_forward_pre_hooks",
    "_aggregate_forward_hooks",
)
#: What a network may raise that is given rows and edges of different number.
MISFITS = (RuntimeError, ValueError, IndexError, TypeError, AssertionError)
#: Edges of the trial, one way only, with a loop and a parallel edge.
TRIAL = ((0, 1, 1, 2, 3, 3, 2), (1, 0, 2, 3, 3, 1, 3))


class _UnsharedError(RuntimeError):
    """A layer whose messages cannot take the edges of the graphs."""


class _Sharing:
    """Sends the messages of a network's layers along the edges of the graphs."""

    def __init__(self, groups: Sequence[CopyGroup], edge_index: Tensor) -> None:
        self.groups, self.edge_index = groups, edge_index
        self.forms: dict[int, str] = {}
        self.normed: dict[int, Any] = {}  # layers that normalise, by their id
        self.known: dict[Any, tuple[list[CopyGroup], Tensor]] = {}
        self.degrees: OptTensor = None

    def propagate(
        self, conv: Any, edge_index: Tensor, size: Any = None, **given: Any
    ) -> Tensor:
        """What ``conv.propagate`` gives on listed edges."""
        if edge_index is not self.edge_index or size is not None:
            raise _UnsharedError
        form = self.forms.get(id(conv))
        if form is None:
            form = self.forms[id(conv)] = _form(conv)
        x, weight = given.pop("x"), given.pop("edge_weight", None)
        attr = given.pop("edge_attr", None)
        x = x[0] if isinstance(x, tuple) else x
        if given or x.dim() != 2 or form not in FORMS:
            raise _UnsharedError
        if form == "edge":
            edge = attr if conv.lin is None else conv.lin(attr)
            if weight is not None or edge.size(-1) != x.size(-1):
                raise _UnsharedError
            return self._scaled(conv, copy_sum(x, self.groups, edge=edge))
        if attr is not None:
            raise _UnsharedError
        groups: Sequence[CopyGroup] = self.groups
        if id(conv) in self.normed:
            groups, weight = self._normalised(conv, weight, x)
        elif weight is not None and weight.numel() != edge_index.size(1):
            raise _UnsharedError
        return self._scaled(conv, copy_sum(x, groups, weight=weight))

    def _scaled(self, conv: Any, total: Tensor) -> Tensor:
        """Means from sums, where the layer takes means."""
        if conv.aggr != "mean":
            return total
        if self.degrees is None:
            parts = [torch.zeros(0, dtype=torch.long, device=total.device)]
            for group in self.groups:
                ends = group.edge_index[1]
                count = ends.new_zeros(group.size)
                count.scatter_add_(0, ends, torch.ones_like(ends))
                parts.append(count.clamp(min=1).repeat(group.count))
            self.degrees = torch.cat(parts).view(-1, 1)
        return total / self.degrees.to(total.dtype)

    def _normalised(
        self, conv: Any, weight: OptTensor, x: Tensor
    ) -> tuple[list[CopyGroup], Tensor]:
        """Groups and weights with the layer's own loops and degrees."""
        options = conv.improved, conv.add_self_loops, conv.flow, x.dtype
        key = id(weight), *options
        if key in self.known:
            return self.known[key]
        groups: list[CopyGroup] = []
        parts, first = [x.new_zeros(0)], 0
        for group in self.groups:
            own = None if weight is None else weight[group.edge_id]
            edges, factor = gcn_norm(group.edge_index, own, group.size, *options)
            ids = torch.arange(first, first + factor.numel(), device=x.device)
            spans = group.start, group.count, group.size
            groups.append(CopyGroup(*spans, edges, ids))
            parts.append(factor.view(-1))
            first += factor.numel()
        return self.known.setdefault(key, (groups, torch.cat(parts)))


def _form(conv: Any) -> str:
    """Which messages a layer sends, by a look at its parts and a trial of them."""
    kind = type(conv)
    is_plain = (
        conv.aggr in ("add", "sum", "mean")
        and conv.node_dim == -2
        and conv.flow == "source_to_target"
        and conv.decomposed_layers == 1
        and not conv.explain
        and not any(getattr(conv, name, None) for name in HOOKS)
        and kind.aggregate is MessagePassing.aggregate
        and kind.update is MessagePassing.update
        and not (isinstance(conv, GCNConv) and conv.cached)
    )
    if not is_plain:
        return "none"
    if kind.message is GINEConv.message:
        return "edge"
    names = set(inspect.signature(conv.message).parameters)
    if not {"x_j"} <= names <= {"x_j", "edge_weight"}:
        return "none"
    x = torch.arange(1.0, 7.0).view(2, 3)
    if not torch.equal(conv.message(**dict.fromkeys(names - {"x_j"}), x_j=x), x):
        return "none"
    if "edge_weight" in names:
        weight = torch.tensor([2.0, -3.0])
        if not torch.equal(conv.message(x, weight), weight.view(-1, 1) * x):
            return "none"
    return "sum"


@contextmanager
def _shared(base: Module, sharing: _Sharing) -> Iterator[None]:
    """Puts the messages of all layers into other hands for one call."""
    layers: list[Any] = [m for m in base.modules() if isinstance(m, MessagePassing)]
    normed = [m for m in layers if isinstance(m, GCNConv) and m.normalize]
    sharing.normed = {id(layer): layer for layer in normed}
    for layer in layers:
        layer.__dict__["propagate"] = partial(sharing.propagate, layer)
    for layer in normed:
        layer.normalize = False  # degrees are those of the graph, not of all rows
    try:
        yield
    finally:
        for layer in layers:
            del layer.__dict__["propagate"]
        for layer in normed:
            layer.normalize = True


def run_shared(
    base: Module,
    x: Tensor,
    edge_index: Tensor,
    edge_attr: OptTensor,
    groups: Sequence[CopyGroup],
    batch: Tensor,
    batch_size: int,
) -> Tensor:
    """Calls a network on the rows of whole copies with the edges of their graphs.

    Args:
        base: A network for which :func:`shares_edges` holds.
        x: ``[P, F]`` rows of all copies.
        edge_index: ``[2, E]`` edges of the graphs.
        edge_attr: Attributes or weights of these edges.
        groups: See :func:`pyg_pool.relational.blocks.copy_groups`.
        batch: ``[P]`` copy of each row.
        batch_size: Number of copies.
    """
    with _shared(base, _Sharing(groups, edge_index)):
        return call_base(base, x, edge_index, edge_attr, batch, batch_size)


@torch.no_grad()
def shares_edges(base: Module, x: Tensor, edge_attr: OptTensor = None) -> bool:
    """Whether a network's layers can send messages along shared edges.

    The network runs twice in evaluation on two copies of a small graph, once with
    shared and once with listed edges; both must agree. So it does for layers that
    add up or average neighbours' rows, weighted or not (GIN, GraphSAGE, GraphConv,
    GCN), and for GINE; not for attention, for maxima, nor for networks that use the
    edges outside their layers.

    Args:
        base: The network.
        x: Rows like those it will get.
        edge_attr: Attributes like those it will get.
    """
    has_layers = any(isinstance(m, MessagePassing) for m in base.modules())
    is_usual = has_layers and x.dim() == 2 and x.size(0) > 0 and not is_traced()
    if not is_usual or (edge_attr is not None and edge_attr.size(0) == 0):
        return False
    edges, attr = torch.tensor(TRIAL, device=x.device), None
    number = edges.size(1)
    place = torch.arange(8, device=x.device)
    some = x.index_select(0, place % x.size(0))
    if some.is_floating_point():
        some = some + (place.view(-1, 1) + some).to(some.dtype).sin()
    if edge_attr is not None:
        ids = torch.arange(number, device=x.device) % edge_attr.size(0)
        attr = edge_attr.index_select(0, ids)
    group = CopyGroup(0, 2, 4, edges, torch.arange(number, device=x.device))
    every = torch.cat([edges, edges + 4], dim=1)
    twice = None if attr is None else torch.cat([attr, attr])
    modes = [(module, module.training) for module in base.modules()]
    watches = [m.register_forward_pre_hook(_watch) for m, _ in modes if _is_norm(m)]
    base.eval()
    try:
        want = call_base(base, some, every, twice, place // 4, 2)
        got = run_shared(base, some, edges, attr, [group], place // 4, 2)
    except MISFITS:
        return False
    finally:
        for module, mode in modes:
            module.training = mode
        for watch in watches:
            watch.remove()
    slack = 1e-9 if want.dtype == torch.float64 else 1e-4
    return got.shape == want.shape and torch.allclose(got, want, rtol=slack, atol=slack)


def _is_norm(module: Module) -> bool:
    return isinstance(module, _BatchNorm)


def _watch(module: Module, given: tuple[Tensor, ...]) -> None:
    """Statistics of edges would weigh graphs differently: rows only."""
    if given[0].size(0) != 8:
        raise _UnsharedError
