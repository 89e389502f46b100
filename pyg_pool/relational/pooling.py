"""Pooling over the nodes of copies, over copies, and over the labels' order.

The order of pooling matters: pooling each copy first cannot see what happens to one
node in all copies, pooling over copies first can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.nn.resolver import aggregation_resolver

from pyg_pool import readout as readouts
from pyg_pool.errors import check_choice
from pyg_pool.kernels.segment import segment_reduce
from pyg_pool.relational.copies import Copies

__all__ = ["READOUTS", "CopyPooling", "Pool"]

READOUTS = ("tuple", "node", "root", "root_node", "labelled", "nested")
REDUCTIONS = ("sum", "mean", "max", "min")
#: Reductions whose parts can be put together from chunks of copies.
MERGED = REDUCTIONS


class Pool(Module):
    """One pooling step by name: a reduction, a readout of this library or of PyG.

    Args:
        word: ``"sum"``, ``"mean"``, ``"max"``, ``"min"``, a readout name such as
            ``"gnp"``, an aggregation name of PyG, or an aggregation.
        options: Arguments of the aggregation, where it needs any.

    Shapes:
        x: ``[R, F]``; index: ``[R]`` int64 in any order; returns ``[size, F]``.

    Note:
        An empty group gives zeros, whatever the aggregation gives.

    Example:
        >>> import torch
        >>> from pyg_pool.relational.pooling import Pool
        >>> Pool("max")(torch.tensor([[-1.0], [-2.0]]), torch.tensor([1, 1]), 3)
        tensor([[ 0.],
                [-1.],
                [ 0.]])
    """

    def __init__(
        self, word: str | Module, options: dict[str, Any] | None = None
    ) -> None:
        super().__init__()
        self.word = word if isinstance(word, str) else type(word).__name__
        self.aggregation: Module | None = None
        if isinstance(word, Module):
            self.aggregation = word
        elif word not in REDUCTIONS:
            self.aggregation = _aggregation(word, options or {})

    def reset_parameters(self) -> None:
        """Draws the weights anew, if there are any."""
        if self.aggregation is not None:
            reset: Any = getattr(self.aggregation, "reset_parameters", None)
            if reset is not None:
                reset()

    def forward(self, x: Tensor, index: Tensor, size: int) -> Tensor:
        """Returns one row per group."""
        if self.aggregation is None:
            word: Any = self.word
            return segment_reduce(x, index, dim_size=size, reduce=word)
        index, order = torch.sort(index, stable=True)
        out = self.aggregation(x.index_select(0, order), index, dim_size=size)
        count = index.new_zeros(size).scatter_add_(0, index, torch.ones_like(index))
        shape = [-1] + [1] * (out.dim() - 1)
        return out.masked_fill((count == 0).view(shape), 0.0)

    def extra_repr(self) -> str:
        """The name."""
        return repr(self.word)


def _aggregation(word: str, options: dict[str, Any]) -> Module:
    """An aggregation by the name of its class, ours first."""
    for name in readouts.__all__:
        stem = name.removesuffix("Aggregation").lower()
        if name.endswith("Aggregation") and stem == word.lower():
            return getattr(readouts, name)(**options)
    try:
        return aggregation_resolver(word, **options)
    except ValueError as error:
        raise ValueError(
            f"Pool got word={word!r}, expected one of {list(REDUCTIONS)}, a readout of "
            f"this library or an aggregation of PyG; correct the name."
        ) from error


class CopyPooling(Module):
    r"""Pools the nodes of labelled copies to graphs or nodes.

    With :math:`H(t, u)` for node u in the copy of tuple t:

    ============== ===================================================== ===========
    readout        graph level                                           node level
    ============== ===================================================== ===========
    ``tuple``      pool over u, then over t                              t_1 = v
    ``node``       pool over t for each u, then over u                   first pool
    ``root``       pool :math:`H(t, t_1)` over t                         t_1 = v
    ``labelled``   pool :math:`H(t, t_i)` over i, then over t            t_1 = v
    ``nested``     as ``tuple``, the pool over t position by position    t_1 = v
    ============== ===================================================== ===========

    Args:
        readout: Order of pooling; ``"root_node"`` is ``"root"`` at node level.
        level: ``"graph"`` or ``"node"``.
        node_pool: Pooling over the nodes of a copy or a graph, see :class:`Pool`.
        tuple_pool: Pooling over tuples.
        nested: Pooling for each position, the outermost first; makes the readout
            ``"tuple"`` to ``"nested"``.
        middle: Network on the rows between the first pooling and the others. Without
            one two sums in either order are one sum over all pairs.

    Raises:
        ValueError: If an option is unknown or the numbers of positions differ.

    Note:
        Sums over a sample of tuples are scaled to all tuples; the mean needs no
        scaling, the max of a sample is biased.

    Example:
        >>> from pyg_pool.relational import CopyPooling
        >>> CopyPooling("node", tuple_pool="max")
        CopyPooling('node', level='graph', node_pool='sum', tuple_pool='max')
    """

    def __init__(
        self,
        readout: str = "tuple",
        *,
        level: str = "graph",
        node_pool: str | Module = "sum",
        tuple_pool: str | Module = "mean",
        nested: Sequence[str | Module] | None = None,
        middle: Module | None = None,
    ) -> None:
        super().__init__()
        check_choice("CopyPooling", "readout", readout, READOUTS)
        check_choice("CopyPooling", "level", level, ("graph", "node"))
        if (readout == "nested") and nested is None:
            raise ValueError(
                "CopyPooling got readout='nested' and nested=None, expected a pooling "
                "for each position; give nested=['sum', 'max'] for two labels."
            )
        if readout == "root_node":
            readout, level = "root", "node"
        self.readout = "nested" if nested is not None else readout
        self.level = level
        self.node_pool, self.tuple_pool = Pool(node_pool), Pool(tuple_pool)
        self.nested = ModuleList(Pool(word) for word in nested or ())
        self.middle = middle

    def reset_parameters(self) -> None:
        """Draws the weights of the aggregations anew, if there are any."""
        for pool in (self.node_pool, self.tuple_pool, *self.nested):
            pool.reset_parameters()
        for module in () if self.middle is None else self.middle.modules():
            reset: Any = getattr(module, "reset_parameters", None)
            if reset is not None:
                reset()

    def forward(self, x: Tensor, copies: Copies, batch: Tensor) -> Tensor:
        """Returns a row per graph or per node from ``x``, ``[P, F]``."""
        if self.readout == "node":
            return self.from_nodes(self.over_tuples(x, copies), copies, batch)
        return self.from_copies(self.over_nodes(x, copies), copies)

    def over_nodes(self, x: Tensor, copies: Copies) -> Tensor:
        """One row per copy, ``[T, F]``."""
        number = len(copies.tuples)
        if self.readout in ("tuple", "nested"):
            return self.node_pool(x, copies.pair_tuple, number)
        index = copies.tuples.index
        places = 1 if self.readout == "root" else index.size(1)
        ids = torch.arange(number, device=index.device)
        owner = ids.repeat_interleave(places)
        row = copies.find(owner, index[:, :places].reshape(-1))
        kept = (row >= 0).nonzero().view(-1)
        found = x.index_select(0, row.index_select(0, kept))
        owner = owner.index_select(0, kept)
        if self.readout == "root":
            return found.new_zeros((number, x.size(1))).index_copy(0, owner, found)
        return self.node_pool(found, owner, number)

    @property
    def row_pool(self) -> str | None:
        """How the rows of a copy are pooled, if that is a sum or mean of all."""
        word = self.node_pool.word
        is_plain = self.readout in ("tuple", "nested") and word in ("sum", "mean")
        return word if is_plain else None

    def over_tuples(self, x: Tensor, copies: Copies) -> Tensor:
        """One row per node of the graphs, ``[N, F]``."""
        out = self.tuple_pool(x, copies.pair_node, copies.num_nodes)
        return self.scaled_nodes(out, copies) if self.tuple_pool.word == "sum" else out

    def scaled_nodes(self, x: Tensor, copies: Copies) -> Tensor:
        """Sums over drawn tuples for each node, scaled to all tuples."""
        tuples = copies.tuples
        factor = tuples.scale(x.dtype)
        each = factor.index_select(0, copies.pair_graph)
        ones = torch.ones(copies.num_nodes, dtype=x.dtype, device=x.device)
        return x * ones.index_copy(0, copies.pair_node, each).view(-1, 1)

    def from_nodes(self, x: Tensor, copies: Copies, batch: Tensor) -> Tensor:
        """The result from rows of nodes."""
        if self.level == "node":
            return x
        x = x if self.middle is None else self.middle(x)
        return self.node_pool(x, batch, copies.tuples.batch_size)

    def from_copies(self, x: Tensor, copies: Copies) -> Tensor:
        """The result from rows of copies."""
        x = x if self.middle is None else self.middle(x)
        tuples = copies.tuples
        index, size, group = tuples.index, tuples.batch_size, tuples.batch
        if self.level == "node":
            size, group = copies.num_nodes, index[:, 0]
        if self.readout != "nested":
            out = self.tuple_pool(x, group, size)
            if self.tuple_pool.word != "sum" or self.level == "node":
                return out
            return out * tuples.scale(out.dtype).view(-1, 1)
        if len(self.nested) != index.size(1):
            raise ValueError(
                f"CopyPooling got nested with {len(self.nested)} poolings for tuples "
                f"of {index.size(1)} nodes, expected one per position; give as many."
            )
        rows = torch.cat([tuples.batch.view(-1, 1), index], dim=1)
        last = 0 if self.level == "graph" else 1
        for place in range(index.size(1) - 1, last - 1, -1):
            rows, where = torch.unique(rows[:, : place + 1], dim=0, return_inverse=True)
            x = self.nested[place](x, where, rows.size(0))
        target = rows[:, last]
        return x.new_zeros((size, x.size(1))).index_copy(0, target, x)

    def __repr__(self) -> str:
        """The call, without the nested poolings' weights."""
        words = f"level={self.level!r}, node_pool={self.node_pool.word!r}"
        more = f", nested={[p.word for p in self.nested]!r}" if len(self.nested) else ""
        return (
            f"CopyPooling({self.readout!r}, {words}, "
            f"tuple_pool={self.tuple_pool.word!r}{more})"
        )
