"""2-FWL networks on pairs of nodes, dense or with a largest distance, with labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Linear, Module, ModuleList
from torch.nn.functional import silu

from pyg_pool.errors import check_batch, check_choice, check_features
from pyg_pool.kernels.join_product import join_product
from pyg_pool.kernels.segment import segment_reduce
from pyg_pool.relational.checks import check_whole
from pyg_pool.relational.copies import expand_copies
from pyg_pool.relational.cost import Cost, check_cost
from pyg_pool.relational.domains import Domain, Ground
from pyg_pool.relational.labels import label_features, label_width
from pyg_pool.relational.pairs import (
    PairSet,
    find_pairs_and_joins,
    repeat_pairs,
    square_groups,
)
from pyg_pool.relational.pooling import REDUCTIONS
from pyg_pool.relational.settings import check_attributes, check_pairs
from pyg_pool.relational.tuples import find_tuples, lay_ground
from pyg_pool.typing import OptTensor

__all__ = ["FWLConv", "FWLNet", "multiply_pairs"]


def multiply_pairs(a: Tensor, b: Tensor, pairs: PairSet) -> Tensor:
    r"""Matrix product of pair features, channel by channel.

    .. math::
        y_{uv} = \sum_w a_{uw} \odot b_{wv}

    With a list of joins only pairs of the set take part; without one, graphs of the
    same size are multiplied together as dense matrices.

    Shapes:
        a, b: ``[Q, F]``; returns ``[Q, F]``.

    Example:
        >>> import torch
        >>> from pyg_pool.relational.fwl import multiply_pairs
        >>> from pyg_pool.relational.pairs import find_pairs_and_joins
        >>> from pyg_pool.relational.tuples import lay_ground
        >>> ground = lay_ground(torch.tensor([[0], [1]]), None)
        >>> ones = torch.ones(4, 1)
        >>> multiply_pairs(ones, ones, find_pairs_and_joins(ground, None)).view(-1)
        tensor([2., 2., 2., 2.])
    """
    if pairs.joins is not None:
        return join_product(a, b, pairs.joins, a.size(0))
    out = torch.zeros_like(a)
    squares = square_groups(pairs) if pairs.squares is None else pairs.squares
    for size, index in squares:
        flat = index.view(-1)
        shape = (-1, size, size, a.size(1))
        left = a.index_select(0, flat).view(shape).movedim(3, 1)
        right = b.index_select(0, flat).view(shape).movedim(3, 1)
        product = (left @ right).movedim(1, 3).reshape(-1, a.size(1))
        out = out.index_copy(0, flat, product)
    return out


class FWLConv(Module):
    r"""One layer of a 2-FWL network.

    .. math::
        Y_{uv} = \sum_w s(W_a X_{uw} + b_a) \odot s(W_b X_{wv} + b_b), \qquad
        X'_{uv} = s(W_c [X_{uv}, Y_{uv}] + b_c)

    with :math:`s` = SiLU.

    Args:
        channels: Width of the pair features.

    Shapes:
        x: ``[Q, F]``; returns ``[Q, F]``.

    Source:
        H. Maron et al. Provably Powerful Graph Networks. NeurIPS 2019.

    Example:
        >>> from pyg_pool.relational import FWLConv
        >>> FWLConv(8)
        FWLConv(8)
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.left = Linear(channels, channels)
        self.right = Linear(channels, channels)
        self.join = Linear(2 * channels, channels)

    def reset_parameters(self) -> None:
        """Draws the weights anew."""
        for linear in (self.left, self.right, self.join):
            linear.reset_parameters()

    def forward(self, x: Tensor, pairs: PairSet) -> Tensor:
        """Returns new pair features."""
        product = multiply_pairs(silu(self.left(x)), silu(self.right(x)), pairs)
        return silu(self.join(torch.cat([x, product], dim=-1)))

    def __repr__(self) -> str:
        """The call that builds it."""
        return f"FWLConv({self.channels})"


class _Plan(NamedTuple):
    """Pairs of all copies, nodes and labels of the copies, and where pairs end."""

    pairs: PairSet
    node: Tensor
    label: Tensor
    ends: tuple[Tensor, Tensor]
    edge: Tensor
    graph: Tensor


class FWLNet(Module):
    r"""A 2-FWL network on labelled copies: k,l-FWL with k=2.

    .. math::
        X^0_{uv} = s(W_0 [x_u, m_u, x_v, m_v, A_{uv}, [u = v]] + b_0), \qquad
        y = \mathop{\mathrm{mean}}_t \Big( \sum_u W_d X_{uu}
        + \sum_{u \ne v} W_o X_{uv} \Big)

    Args:
        in_channels: Number of node features.
        hidden_channels: Width of the pair features.
        out_channels: Size of each output row.
        num_layers: Number of layers.
        l: Number of labels.
        domain: Tuples that get labels.
        ordered: Whether labels are told apart.
        encoding: Label features, see :func:`label_features`.
        dmax: Largest distance of ``encoding="spd"``.
        edge_channels: Width of ``edge_attr``, which then stands beside ``A``.
        max_distance: Only pairs within this distance, and joins inside that set.
        tuple_pool: ``"mean"``, ``"sum"``, ``"max"`` or ``"min"`` over tuples.
        memory_limit: Bytes that may be needed; ``None`` for 80 % of what is free.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; returns ``[B, out_channels]``.

    Note:
        Cost: dense n^2 features and n^3 multiplications per copy; with a distance the
        number of pairs and joins, of which no table is kept.

    Source:
        H. Maron et al. Provably Powerful Graph Networks. NeurIPS 2019.
        C. Zhou, X. Wang, M. Zhang. ICML 2023 (labels on top).

    Example:
        >>> import torch
        >>> from pyg_pool.relational import FWLNet
        >>> model = FWLNet(2, 8, 4, num_layers=2, max_distance=2)
        >>> model(torch.ones(3, 2), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([1, 4])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        num_layers: int = 3,
        l: int = 0,  # noqa: E741
        domain: str = "distinct",
        ordered: bool = True,
        encoding: str = "mark",
        dmax: int = 5,
        edge_channels: int = 0,
        max_distance: int | None = None,
        tuple_pool: str = "mean",
        memory_limit: int | None = None,
    ) -> None:
        super().__init__()
        Domain.parse(domain)
        check_choice("FWLNet", "tuple_pool", tuple_pool, REDUCTIONS)
        widths = {"in_channels": in_channels, "hidden_channels": hidden_channels}
        check_whole("FWLNet", 1, out_channels=out_channels, **widths)
        sizes = {"num_layers": num_layers, "edge_channels": edge_channels, "dmax": dmax}
        check_whole("FWLNet", l=l, max_distance=max_distance, **sizes)
        self.l, self.domain, self.ordered = l, domain, ordered
        self.encoding, self.dmax = encoding, dmax
        self.max_distance, self.tuple_pool = max_distance, tuple_pool
        self.memory_limit, self.edge_channels = memory_limit, edge_channels
        self.in_channels, self.hidden_channels = in_channels, hidden_channels
        width = in_channels + label_width(l, encoding, ordered=ordered, dmax=dmax)
        self.input = Linear(2 * width + 2 + edge_channels, hidden_channels)
        self.convs = ModuleList(FWLConv(hidden_channels) for _ in range(num_layers))
        self.diagonal = Linear(hidden_channels, out_channels, bias=False)
        self.other = Linear(hidden_channels, out_channels, bias=False)

    def reset_parameters(self) -> None:
        """Draws the weights anew."""
        for module in (self.input, *self.convs, self.diagonal, self.other):
            reset: Any = module.reset_parameters
            reset()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: OptTensor = None,
        *,
        batch: OptTensor = None,
        batch_size: int | None = None,
        pairs: PairSet | None = None,
    ) -> Tensor:
        """Returns a row per graph."""
        x = check_features("FWLNet", x, self.in_channels)
        batch_size = check_batch("FWLNet", batch, batch_size, x.size(0))
        ground = lay_ground(edge_index, batch, batch_size, x.size(0))
        width = self.edge_channels
        edge_attr = check_attributes("FWLNet", ground.edge_index, edge_attr, width)
        plan = self._plan(ground, edge_attr, pairs, x)
        every = plan.pairs
        rows = torch.cat([x[plan.node], plan.label.to(x.dtype)], dim=-1)
        first, second = (rows.index_select(0, ends) for ends in plan.ends)
        loop = every.is_loop.to(x.dtype).view(-1, 1)
        state = silu(self.input(torch.cat([first, second, plan.edge, loop], dim=-1)))
        for conv in self.convs:
            state = conv(state, every)
        value = torch.where(loop > 0, self.diagonal(state), self.other(state))
        by_copy = segment_reduce(value, every.batch, dim_size=every.size)
        word: Any = self.tuple_pool
        return segment_reduce(by_copy, plan.graph, dim_size=batch_size, reduce=word)

    # Lists, whose lengths depend on the data.
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _plan(
        self, ground: Ground, edge_attr: OptTensor, pairs: PairSet | None, x: Tensor
    ) -> _Plan:
        """Lists the copies and their pairs."""
        edge_index, batch = ground.edge_index, ground.batch
        batch_size = ground.start.numel() - 1
        tuples = find_tuples(
            edge_index, batch, self.l, self.domain, batch_size=batch_size
        )
        if pairs is None:
            pairs = find_pairs_and_joins(ground, self.max_distance)
        check_pairs("FWLNet", pairs, ground)
        self._check(pairs, tuples.batch, x)
        every, source = repeat_pairs(pairs, tuples.batch)
        if every.joins is None:
            every = replace(every, squares=square_groups(every))
        copies = expand_copies(ground, tuples)
        label = label_features(
            ground, copies, self.encoding, ordered=self.ordered, dmax=self.dmax
        )
        first, second = (copies.find(every.batch, every.pair[i]) for i in range(2))
        edge = self._edges(edge_index, edge_attr, pairs, x).index_select(0, source)
        return _Plan(
            every, copies.pair_node, label, (first, second), edge, tuples.batch
        )

    def _edges(
        self, edge_index: Tensor, edge_attr: OptTensor, pairs: PairSet, x: Tensor
    ) -> Tensor:
        """Adjacency and edge attributes of each pair, ``[Q, 1 + D]``."""
        out = x.new_zeros((pairs.batch.numel(), 1 + self.edge_channels))
        radix = max(x.size(0), 1)
        known = pairs.pair[0] * radix + pairs.pair[1]
        key = edge_index[0] * radix + edge_index[1]
        if known.numel() == 0 or key.numel() == 0:
            return out
        place = torch.searchsorted(known, key).clamp_(max=known.numel() - 1)
        hit = (known.index_select(0, place) == key).nonzero().view(-1)
        place = place.index_select(0, hit)
        out = out.index_fill(0, place, 0.0)
        out[place, 0] = 1.0
        if edge_attr is None:
            return out
        attr = edge_attr.view(edge_attr.size(0), -1).to(x.dtype).index_select(0, hit)
        filled = torch.cat([x.new_zeros((attr.size(0), 1)), attr], dim=-1)
        return out.index_add(0, place, filled)

    def _check(self, pairs: PairSet, graph: Tensor, x: Tensor) -> None:
        """Raises ``ValueError`` before more memory is taken than there is."""
        count = pairs.batch.new_zeros(pairs.size)
        count.scatter_add_(0, pairs.batch, torch.ones_like(pairs.batch))
        total = int(count.index_select(0, graph).sum())
        num_bytes = 4 * self.hidden_channels * total * 6 * max(len(self.convs), 1)
        cost = Cost(graph.numel(), total, 0, num_bytes)
        check_cost("FWLNet", cost, x.device, self.memory_limit)
