"""GIN layers on copies that see more than their own neighbours.

The layers of subgraph networks differ in what a node of a copy reads beside its
neighbours: the root of its copy, its whole copy, itself in all copies, or itself in
the copies of neighbouring roots.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Linear, Module, ModuleDict, ModuleList

from pyg_pool.errors import check_choice
from pyg_pool.kernels.copy_sum import copy_sum
from pyg_pool.kernels.dispatch import is_traced
from pyg_pool.kernels.gather_sum import gather_sum
from pyg_pool.kernels.segment import segment_reduce
from pyg_pool.kernels.tuple_propagate import tuple_propagate
from pyg_pool.relational.blocks import copy_groups
from pyg_pool.relational.checks import check_whole
from pyg_pool.relational.copies import Copies
from pyg_pool.relational.gin import NORMS, gin_mlp
from pyg_pool.relational.neighbours import Lists, join_lists
from pyg_pool.relational.settings import check_attributes
from pyg_pool.typing import OptTensor

__all__ = ["CONTEXTS", "ContextGIN", "edges_between_roots"]

CONTEXTS = ("root", "copy", "node", "across")


def edges_between_roots(copies: Copies, edge_index: Tensor) -> Tensor:
    """Lists for each edge from w to u the step from (w, v) to (u, v).

    Args:
        copies: Copies with one label each, every node the root of one copy.
        edge_index: Edges of the graphs themselves.

    Returns:
        Pairs of pairs, ``[2, M]``, for all nodes v that both copies hold.

    Raises:
        ValueError: If the copies do not belong to one root each.
    """
    roots = copies.tuples.index
    if roots.size(1) != 1:
        raise ValueError(
            f"ContextGIN got context='across' with {roots.size(1)} labels, expected "
            f"one label per copy; take l=1, or another context."
        )
    ids = torch.arange(roots.size(0), device=roots.device)
    place = roots.new_full((copies.num_nodes,), -1)
    place = place.index_copy(0, roots[:, 0], ids)
    source, target = place[edge_index[0]], place[edge_index[1]]
    kept = (source >= 0) & (target >= 0)
    lists = Lists(copies.pair_ptr, copies.pair_node)
    edge, node, begin = join_lists(lists, source[kept])
    end = copies.find(target[kept].index_select(0, edge), node)
    both = torch.stack([begin, end])
    return both[:, end >= 0]


class ContextGIN(Module):
    r"""GIN on copies, with further terms in each layer.

    .. math::
        H'(t, u) = \mathrm{ReLU}\Big( \mathrm{GIN}(H)(t, u) + \sum_c W_c\, g_c(t, u)
        \Big)

    ============ ===========================================================
    context      :math:`g_c(t, u)`
    ============ ===========================================================
    ``root``     :math:`H(t, t_1)`
    ``copy``     mean of :math:`H(t, w)` over the nodes w of the copy
    ``node``     mean of :math:`H(s, u)` over all copies s with u
    ``across``   sum of :math:`H(s, u)` over the copies s of neighbours of the root
    ============ ===========================================================

    Args:
        in_channels: Width of the input.
        hidden_channels: Width of all layers.
        num_layers: Number of layers.
        context: Words of the table.
        edge_channels: Width of ``edge_attr``; 0 for none.
        norm: ``"batch"``, ``"layer"`` or ``"none"``.

    Source:
        B. Bevilacqua et al. Equivariant Subgraph Aggregation Networks. ICLR 2022.
        F. Frasca et al. Understanding and Extending Subgraph GNNs by Rethinking Their
        Symmetries. NeurIPS 2022. B. Zhang et al. ICML 2023.

    Example:
        >>> from pyg_pool.relational import ContextGIN
        >>> ContextGIN(2, 4, 3, ("root", "node")).context
        ('root', 'node')
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        context: tuple[str, ...],
        *,
        edge_channels: int = 0,
        norm: str = "batch",
    ) -> None:
        super().__init__()
        for word in context:
            check_choice("ContextGIN", "context", word, CONTEXTS)
        check_choice("ContextGIN", "norm", norm, NORMS)
        widths = {"in_channels": in_channels, "hidden_channels": hidden_channels}
        check_whole("ContextGIN", 1, num_layers=num_layers, **widths)
        check_whole("ContextGIN", edge_channels=edge_channels)
        self.context, self.edge_channels = tuple(context), edge_channels
        self.mlps, self.edges, self.terms = ModuleList(), ModuleList(), ModuleList()
        for layer in range(num_layers):
            width = hidden_channels if layer else in_channels
            self.mlps.append(gin_mlp(width, hidden_channels, norm))
            each = {word: Linear(width, hidden_channels) for word in context}
            self.terms.append(ModuleDict(each))
            if edge_channels:
                self.edges.append(Linear(edge_channels, width))

    @property
    def mixes_copies(self) -> bool:
        """Whether a copy reads others, so that chunks of them will not do."""
        return bool({"node", "across"} & set(self.context))

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        for module in self.modules():
            draw: Any = getattr(module, "reset_parameters", None)
            if module is not self and draw is not None:
                draw()

    def forward(self, x: Tensor, copies: Copies, edge_attr: OptTensor = None) -> Tensor:
        """Returns the rows of the last layer.

        Args:
            x: ``[P, F]`` rows of the copies.
            copies: The copies.
            edge_attr: ``[E, D]`` attributes of the edges of the graphs.
        """
        return self.on_copies(x, copies, edge_attr)

    def on_copies(
        self,
        x: Tensor,
        copies: Copies,
        edge_attr: OptTensor = None,
        *,
        listed: bool = False,
    ) -> Tensor:
        """The same; ``listed`` writes down all messages, as it must for balls.

        With a whole copy for every node the row of a pair follows from the nodes'
        numbers, so that edges between copies need no list.
        """
        is_square = not (listed or is_traced()) and is_square_table(copies)
        ground, between, groups = copies.ground, None, []
        edges, width = ground.edge_index, self.edge_channels
        edge_attr = check_attributes("ContextGIN", edges, edge_attr, width)
        has_edges = self.edge_channels > 0 and edge_attr is not None
        if not is_square or has_edges:
            groups = copy_groups(copies)
        if "across" in self.context and not is_square:
            between = edges_between_roots(copies, ground.edge_index)
        for layer, mlp in enumerate(self.mlps):
            if has_edges:
                edge = self.edges[layer](edge_attr)
                total = copy_sum(x, groups, edge=edge, own=True)
            elif is_square:
                total = x + tuple_propagate(x, ground.edge_index, ground.start)
            else:
                total = copy_sum(x, groups, own=True)
            out = mlp(total)
            terms: Any = self.terms[layer]
            for word in self.context:
                if word == "across" and is_square:
                    term = tuple_propagate(x, edges, ground.start, axis=0)
                else:
                    term = _context(word, x, copies, between)
                out = out + terms[word](term)
            x = out.relu()
        return x


def is_square_table(copies: Copies) -> bool:
    """Whether each node is the only label of one whole copy, in order.

    Example:
        >>> import torch
        >>> from pyg_pool.relational import expand_copies, find_tuples, lay_ground
        >>> from pyg_pool.relational.context import is_square_table
        >>> path = torch.tensor([[0, 1], [1, 2]])
        >>> tuples = find_tuples(path, None, 1, "distinct")
        >>> is_square_table(expand_copies(lay_ground(path, None), tuples))
        True
    """
    roots = copies.tuples.index
    if not copies.is_full or roots.size(1) != 1 or len(roots) != copies.num_nodes:
        return False
    return torch.equal(roots[:, 0], torch.arange(len(roots), device=roots.device))


def _context(word: str, x: Tensor, copies: Copies, between: OptTensor) -> Tensor:
    """What a word of the table stands for, a row per pair."""
    number = len(copies.tuples)
    if word == "root":
        ids = torch.arange(number, device=x.device)
        row = copies.find(ids, copies.tuples.index[:, 0])
        return x.index_select(0, row.clamp(min=0)).index_select(0, copies.pair_tuple)
    if word == "copy":
        pooled = segment_reduce(x, copies.pair_tuple, dim_size=number, reduce="mean")
        return pooled.index_select(0, copies.pair_tuple)
    if word == "node":
        size = copies.num_nodes
        pooled = segment_reduce(x, copies.pair_node, dim_size=size, reduce="mean")
        return pooled.index_select(0, copies.pair_node)
    if between is None:
        return torch.zeros_like(x)
    return gather_sum(x, between, x.size(0))
