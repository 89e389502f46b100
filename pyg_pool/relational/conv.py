"""Runs any network on the labelled copies of graphs and pools the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn import Module
from torch.utils.checkpoint import checkpoint

from pyg_pool.errors import check_batch, check_choice, check_features
from pyg_pool.relational.calls import check_chunks
from pyg_pool.relational.copies import (
    Copies,
    edge_deletions,
    expand_copies,
    subset_copies,
)
from pyg_pool.relational.cost import check_cost, estimate_cost
from pyg_pool.relational.domains import Domain
from pyg_pool.relational.labeller import Labeller
from pyg_pool.relational.layouts import LAYOUTS, pool_in_base, run_copies
from pyg_pool.relational.merge import merge_over_tuples
from pyg_pool.relational.pooling import CopyPooling, Pool
from pyg_pool.relational.settings import check_attributes, check_copies, check_options
from pyg_pool.relational.tuples import find_tuples, lay_ground
from pyg_pool.typing import OptTensor

__all__ = ["RelationalPooling"]


class RelationalPooling(Module):
    r"""Labels nodes, runs a network on the copies, pools over the choices.

    .. math::
        y = \mathop{\mathrm{pool}}_{t}\ \mathop{\mathrm{pool}}_{u}\
        \mathrm{base}(G^t)_u

    Args:
        base: Network from ``[P, F + label_width]`` to ``[P, D]``: any PyG module that
            is called as ``base(x, edge_index)``, with ``edge_attr`` or
            ``edge_weight``, ``batch`` and ``batch_size`` if it names them.
        l: Number of labels; 0 is the base network itself.
        domain: Tuples that get labels, see :func:`enumerate_tuples`.
        ordered: Whether labels are told apart.
        encoding: Label features, see :func:`label_features`; ``"learned"`` for a
            learned row per label, ``"given"`` for the ``label`` of each call.
        dmax: Largest distance of ``encoding="spd"``.
        label_channels: Width of learned and given labels.
        label_join: ``"cat"``, ``"add"`` or ``"multiply"`` for these.
        ego: Radius of the balls that copies are cut to.
        ego_mode: ``"root"``, ``"union"`` or ``"intersection"``.
        readout: Order of pooling, see :class:`CopyPooling`.
        level: ``"graph"`` or ``"node"``.
        node_pool: Pooling over nodes.
        tuple_pool: Pooling over tuples.
        nested: Pooling for each position of the tuples.
        middle: Network on rows between the two poolings, see :class:`CopyPooling`.
        policy: ``"mark"`` labels nodes, ``"delete_node"`` removes the root,
            ``"delete_edge"`` makes a copy per edge without it; both label nothing.
        perms: Run every order of the labels and pool them node by node first.
        perm_pool: Pooling over the orders of the labels.
        drop_perm: Share of these orders that is left out by chance in training.
        cover: Add padded tuples for nodes in no tuple.
        num_samples: Tuples drawn of each graph in training.
        sample_in_eval: Draw in evaluation too.
        chunk_size: Tuples at a time, recomputed in the backward pass.
        memory_limit: Bytes that may be needed; ``None`` for 80 % of what is free.
        layout: ``"listed"`` lists the edges of each copy, ``"shared"`` sends messages
            of whole copies along the edges of their graph, ``"auto"`` shares where
            copies are large and the base can, which a trial on a small graph tells.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; batch: ``[N]`` ascending; returns
        ``[B, D]`` or ``[N, D]``.

    Raises:
        ValueError: If options or shapes do not fit, or the memory would not do.

    Note:
        The state dict does not depend on ``l``, except where the base's input does.
        With ``chunk_size``, batch norm in training sees one chunk at a time.

    Source:
        C. Zhou, X. Wang, M. Zhang. From Relational Pooling to Subgraph GNNs: A
        Universal Framework for More Expressive Graph Neural Networks. ICML 2023.

    Example:
        >>> import torch
        >>> from torch_geometric.nn import GCN
        >>> from pyg_pool.relational import RelationalPooling
        >>> model = RelationalPooling(GCN(3, 8, 2, 4), 1, ego=2)
        >>> model(torch.ones(3, 2), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([1, 4])
    """

    def __init__(
        self,
        base: Module,
        l: int = 1,  # noqa: E741
        *,
        domain: str = "distinct",
        ordered: bool = True,
        encoding: str = "mark",
        dmax: int = 5,
        label_channels: int = 0,
        label_join: str = "cat",
        ego: int | None = None,
        ego_mode: str = "root",
        readout: str = "tuple",
        level: str = "graph",
        node_pool: str | Module = "sum",
        tuple_pool: str | Module = "mean",
        nested: Sequence[str | Module] | None = None,
        middle: Module | None = None,
        policy: str = "mark",
        perms: bool = False,
        perm_pool: str | Module = "mean",
        drop_perm: float = 0.0,
        cover: bool = True,
        num_samples: int | None = None,
        sample_in_eval: bool = False,
        chunk_size: int | None = None,
        memory_limit: int | None = None,
        layout: str = "auto",
    ) -> None:
        check_options("RelationalPooling", locals())
        super().__init__()
        check_choice("RelationalPooling", "layout", layout, LAYOUTS)
        Domain.parse(domain)
        if policy != "mark":
            encoding = "none"
        self.policy = policy
        self.base, self.l, self.domain = base, l, domain
        marks: dict[str, Any] = {"ordered": ordered, "dmax": dmax, "perms": perms}
        marks.update(channels=label_channels, join=label_join, drop_perm=drop_perm)
        self.labeller = Labeller(l, encoding, **marks)
        self.ego, self.ego_mode, self.perms, self.cover = ego, ego_mode, perms, cover
        self.num_samples, self.sample_in_eval = num_samples, sample_in_eval
        self.chunk_size, self.memory_limit = chunk_size, memory_limit
        pools: dict[str, Any] = {"node_pool": node_pool, "tuple_pool": tuple_pool}
        pools.update(nested=nested, middle=middle, level=level)
        self.pooling = CopyPooling(readout, **pools)
        self.perm_pool = Pool(perm_pool)
        self.layout = layout
        self._can_share: dict[bool, bool] = {}

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        for module in (self.base, self.labeller, self.pooling, self.perm_pool):
            reset: Any = getattr(module, "reset_parameters", None)
            if reset is not None:
                reset()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: OptTensor = None,
        *,
        batch: OptTensor = None,
        batch_size: int | None = None,
        copies: Copies | None = None,
        generator: Generator | None = None,
        label: OptTensor = None,
    ) -> Tensor:
        """Returns a row per graph, or per node.

        ``copies`` are those of :class:`pyg_pool.transforms.KLTuples`; ``generator``
        draws tuples and orders; ``label`` is ``[P, label_channels]``, a row per pair.
        """
        x = check_features("RelationalPooling", x)
        batch_size = check_batch("RelationalPooling", batch, batch_size, x.size(0))
        ground = lay_ground(edge_index, batch, batch_size, x.size(0))
        edge_index, batch = ground.edge_index, ground.batch
        check_attributes("RelationalPooling", edge_index, edge_attr, None)
        if copies is None:
            copies = self.make_copies(edge_index, batch, batch_size, generator)
        else:
            options: dict[str, Any] = {"ego": self.ego, "policy": self.policy}
            check_copies("RelationalPooling", copies, ground, self.l, **options)
        marks = self.labeller.features(ground, copies, label, x)
        drops = self.training or self.sample_in_eval
        labels = self.labeller.orders(marks, copies, drops=drops, generator=generator)
        if self.chunk_size is None or len(copies.tuples) <= self.chunk_size:
            if self.pooling.readout != "node":
                rows = self._copy_rows(x, labels, edge_attr, copies)
                return self.pooling.from_copies(rows, copies)
            return self.pooling(
                self._states(x, labels, edge_attr, copies), copies, batch
            )
        check_chunks(self.base, self.chunk_size, training=self.training)
        return self._in_chunks(x, labels, edge_attr, copies, batch)

    # Lists, whose lengths depend on the data.
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def make_copies(
        self,
        edge_index: Tensor,
        batch: Tensor,
        batch_size: int,
        generator: Generator | None = None,
    ) -> Copies:
        """The copies of a batch, after a look at what they will cost."""
        number = self.num_samples if self.training or self.sample_in_eval else None
        ground = lay_ground(edge_index, batch, batch_size)
        deletes = self.policy == "delete_edge"
        sizes: dict[str, Any] = {"ego": self.ego, "num_samples": number}
        sizes.update(chunk_size=self.chunk_size, perms=self.perms, per_edge=deletes)
        cost = estimate_cost(ground, self.l, self.domain, **sizes)
        check_cost("RelationalPooling", cost, edge_index.device, self.memory_limit)
        if deletes:
            return edge_deletions(ground)
        tuples = find_tuples(
            edge_index,
            batch,
            self.l,
            self.domain,
            batch_size=batch_size,
            cover=self.cover,
            num_samples=number,
            generator=generator,
        )
        gone = tuples.index[:, 0] if self.policy == "delete_node" else None
        options: dict[str, Any] = {"ego": self.ego, "ego_mode": self.ego_mode}
        return expand_copies(ground, tuples, without=gone, **options)

    def _states(
        self,
        x: Tensor,
        labels: list[Tensor],
        edge_attr: OptTensor,
        copies: Copies,
    ) -> Tensor:
        """What the base makes of each pair, ``[P, D]``."""
        rows = x.index_select(0, copies.pair_node)
        parts = [self.labeller(rows, each) for each in labels]
        every = parts[0] if len(parts) == 1 else torch.cat(parts)
        options: dict[str, Any] = {"times": len(labels), "layout": self.layout}
        out = run_copies(
            self.base, every, copies, edge_attr, known=self._can_share, **options
        )
        if len(labels) == 1:
            return out
        place = torch.arange(len(rows), device=x.device)
        return self.perm_pool(out, place.repeat(len(labels)), len(rows))

    def _copy_rows(
        self, x: Tensor, labels: list[Tensor], edge_attr: OptTensor, copies: Copies
    ) -> Tensor:
        """One row per copy, ``[T, D]``; the base pools itself where it can."""
        base, pool = self.base, None
        if len(labels) == 1 and self.layout != "listed":
            pool = pool_in_base(base, self.pooling, copies)
        if pool is None:
            state = self._states(x, labels, edge_attr, copies)
            return self.pooling.over_nodes(state, copies)
        rows = self.labeller(x.index_select(0, copies.pair_node), labels[0])
        run: Any = base.on_copies
        out: Tensor = run(rows, copies, edge_attr, pool=pool)
        return out

    def _in_chunks(
        self,
        x: Tensor,
        labels: list[Tensor],
        edge_attr: OptTensor,
        copies: Copies,
        batch: Tensor,
    ) -> Tensor:
        """The same for a few tuples at a time."""
        step = self.chunk_size or len(copies.tuples)
        by_node = self.pooling.readout == "node"
        parts, pieces = [], []
        for start in range(0, len(copies.tuples), step):
            stop = min(start + step, len(copies.tuples))
            part = subset_copies(copies, start, stop)
            span = slice(int(copies.pair_ptr[start]), int(copies.pair_ptr[stop]))
            some = [label[span] for label in labels]
            out = checkpoint(self._chunk, x, some, edge_attr, part, use_reentrant=False)
            parts.append(out)
            pieces.append(part)
        if not by_node:
            return self.pooling.from_copies(torch.cat(parts), copies)
        merged = merge_over_tuples(self.pooling, parts, pieces, copies)
        return self.pooling.from_nodes(merged, copies, batch)

    def _chunk(
        self, x: Tensor, labels: list[Tensor], edge_attr: OptTensor, part: Copies
    ) -> Tensor:
        if self.pooling.readout != "node":
            return self._copy_rows(x, labels, edge_attr, part)
        state = self._states(x, labels, edge_attr, part)
        return self.pooling.tuple_pool(state, part.pair_node, part.num_nodes)

    def extra_repr(self) -> str:
        """The main options."""
        return f"l={self.l}, domain={self.domain!r}, ego={self.ego}"
