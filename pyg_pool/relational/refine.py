"""The k,l-WL test: which graphs can a label-and-pool network tell apart?

All graphs of a list are refined side by side, so that their colours can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from pyg_pool.relational.colors import Colors, ExactColors, HashColors, rename
from pyg_pool.relational.refine_options import Mode, Setup, check_setup
from pyg_pool.relational.refine_setup import Colored, copies_of, gather_graphs
from pyg_pool.relational.refine_steps import pool_colors, refinement_of

__all__ = ["WLDetails", "kl_wl", "kl_wl_details"]

Tints = str | Sequence[Tensor] | None

#: Pairs of tuple and node that are refined at once where hashes allow less.
CHUNK = 6_000_000


@dataclass(frozen=True)
class WLDetails:
    """What the k,l-WL test found.

    Args:
        colors: ``[G]`` colour of each graph, 0, 1, ... in no particular order.
        num_classes: Number of different graph colours.
        stable_round: Rounds that still split a class of the refined items.
        item_classes: Number of stable classes of the refined items: nodes of copies
            for k=1, k-tuples of nodes of copies for k>1.
        tuple_index: ``[T, l]`` labelled tuples, in the numbers of the disjoint union.
        tuple_batch: ``[T]`` graph of each tuple.
        tuple_colors: ``[T]`` colour of the copy of each tuple.
        node_colors: Colours of the nodes of each graph, pooled over the tuples.
        graph_colors: Colours of the graphs after 0, 1, ... rounds.
    """

    colors: Tensor
    num_classes: int
    stable_round: int
    item_classes: int
    tuple_index: Tensor
    tuple_batch: Tensor
    tuple_colors: Tensor
    node_colors: list[Tensor]
    graph_colors: list[Tensor] = field(default_factory=list)

    def separating_round(self, a: int = 0, b: int = 1) -> int | None:
        """Number of rounds after which two graphs differ; ``None`` if they never do.

        Raises:
            ValueError: If there is no graph of that number.
        """
        number = self.colors.numel()
        if not all(each in range(-number, number) for each in (a, b)):
            raise ValueError(
                f"separating_round got a={a} and b={b} for {number} graph(s), expected "
                f"numbers below {number}; give two of the graphs of kl_wl_details."
            )
        for rounds, colors in enumerate(self.graph_colors):
            if colors[a] != colors[b]:
                return rounds
        return None


def kl_wl(
    graphs: Sequence[Any],
    k: int,
    l: int,  # noqa: E741
    *,
    folklore: bool = False,
    domain: str = "distinct",
    ordered: bool = True,
    pooling: str = "tuple",
    ego: int | None = None,
    ego_mode: str = "root",
    update: str | None = None,
    policy: str = "mark",
    cover: bool = False,
    mode: Mode = "exact",
    node_colors: Tints = None,
    edge_colors: Tints = None,
    rounds: int | None = None,
) -> Tensor:
    r"""Colours graphs by the k,l-WL test: equal colours are not told apart.

    Every tuple ``t`` of ``l`` nodes of a domain labels a copy of the graph, the copy
    is refined by k-WL, and the colours of the copies are pooled.

    .. math::
        \mathrm{colour}(G) = \{\!\!\{\, k\text{-WL}(G^t) : t \in \text{domain}
        \,\}\!\!\}

    Args:
        graphs: PyG graphs (``edge_index`` and ``num_nodes``).
        k: Power of the base test: 1 for colour refinement of nodes, 2 and more for
            k-tuples of nodes.
        l: Number of labels.
        folklore: Take k-FWL instead of oblivious k-WL; the same for ``k=1``.
        domain: Tuples that get labels, see :func:`enumerate_tuples`.
        ordered: Tell the first label from the second; otherwise nodes know only how
            many labels they carry.
        pooling: ``"tuple"`` pools each copy and then the copies, ``"node"`` pools over
            the copies for each node and then the nodes, ``"root"`` and ``"labelled"``
            read only the first or all labelled nodes, ``"nested"`` pools over the
            last position of the tuples first.
        ego: Radius of the balls that copies are cut to; ``None`` for whole graphs.
        ego_mode: Balls of ``"root"``, ``"union"`` or ``"intersection"``.
        update: For k=l=1, what a round sees of other copies: ``"SWL"``, ``"PSWL"``,
            ``"GSWL"``, ``"DSS"``, ``"SSWL"``, ``"LFWL"`` or ``"SLFWL"``.
        policy: ``"mark"`` labels nodes, ``"none"`` only cuts balls, ``"delete_node"``
            removes the root, ``"delete_edge"`` makes a copy per edge without it.
        cover: Add padded tuples for nodes in no tuple.
        mode: ``"exact"`` sorts and compares rows; ``"hash"`` mixes 64-bit hashes,
            faster and in pieces if need be, wrong with odds of about 2**-64 a pair.
        node_colors: Attribute name, or a tensor per graph, ``[N]`` or ``[N, D]``:
            colours to start from.
        edge_colors: The same for edges.
        rounds: Number of rounds; ``None`` goes on until all graphs are stable, or
            for twice the nodes of the largest graph where hashes go in pieces.

    Returns:
        The colour of each graph, ``[G]`` int64, comparable within this call.

    Raises:
        TypeError: If a number is not whole, or a graph is no single PyG graph.
        ValueError: If an option is unknown or does not fit the others, edges or
            colours have another shape or type, or the lists would not fit into memory.

    Note:
        Oblivious 2-WL is as strong as 1-WL, and k-FWL as oblivious (k+1)-WL. Messages
        follow the edges' direction; balls and tuples do not. Loops and parallel edges
        count in messages, with ``update="SLFWL"`` parallel ones once. Graphs without
        copies are one class: those without tuples where ``cover=False``, without edges
        for ``policy="delete_edge"``. Deterministic on every device. Cost: time and
        memory in pairs of tuple and node, O(n^(k+1)) per copy for k > 1.

    Source:
        C. Zhou, X. Wang, M. Zhang. From Relational Pooling to Subgraph GNNs: A
        Universal Framework for More Expressive Graph Neural Networks. ICML 2023.
        B. Zhang et al. A Complete Expressiveness Hierarchy for Subgraph GNNs via
        Subgraph Weisfeiler-Lehman Tests. ICML 2023 (``update``).

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from pyg_pool.relational import kl_wl
        >>> ring = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
        >>> triangles = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]])
        >>> pair = [
        ...     Data(edge_index=torch.cat([e, e.flip(0)], 1), num_nodes=6)
        ...     for e in (ring, triangles)
        ... ]
        >>> kl_wl(pair, 1, 0).tolist(), kl_wl(pair, 1, 1).unique().numel()
        ([0, 0], 2)
    """
    setup = Setup(
        k, l, folklore, domain, ordered, pooling, ego, ego_mode, update, policy, cover
    )
    check_setup(setup, mode, rounds)
    colored = gather_graphs(graphs, node_colors, edge_colors)
    pieces = _pieces(colored, setup) if mode == "hash" else [(0, len(graphs))]
    if len(pieces) > 1 and rounds is None:
        rounds = 2 * max(colored.sizes)
    found = [
        _run(colored.part(*piece), setup, mode, rounds, False)[0] for piece in pieces
    ]
    return rename(torch.cat(found)) if found else torch.empty(0, dtype=torch.long)


def kl_wl_details(
    graphs: Sequence[Any],
    k: int,
    l: int,  # noqa: E741
    *,
    folklore: bool = False,
    domain: str = "distinct",
    ordered: bool = True,
    pooling: str = "tuple",
    ego: int | None = None,
    ego_mode: str = "root",
    update: str | None = None,
    policy: str = "mark",
    cover: bool = False,
    mode: Mode = "exact",
    node_colors: Tints = None,
    edge_colors: Tints = None,
    rounds: int | None = None,
) -> WLDetails:
    """Colours graphs as :func:`kl_wl` does and tells how it came to it.

    Args and options are those of :func:`kl_wl`; all graphs are refined at once.

    Returns:
        Colours of graphs, copies and nodes, class counts and rounds.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from pyg_pool.relational import kl_wl_details
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> found = kl_wl_details([Data(edge_index=path, num_nodes=3)], 1, 0)
        >>> found.item_classes, found.stable_round
        (2, 1)
    """
    setup = Setup(
        k, l, folklore, domain, ordered, pooling, ego, ego_mode, update, policy, cover
    )
    check_setup(setup, mode, rounds)
    colored = gather_graphs(graphs, node_colors, edge_colors)
    return _run(colored, setup, mode, rounds, True)[1]


def _run(
    colored: Colored, setup: Setup, mode: str, rounds: int | None, traced: bool
) -> tuple[Tensor, WLDetails]:
    """Refines all graphs of a union together."""
    colors: Colors = ExactColors() if mode == "exact" else HashColors()
    copies, tuples = copies_of(colored, setup)
    state, step, view = refinement_of(colored, setup, copies, colors)

    def pooled(state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return pool_colors(colored, setup, copies, colors, view, state)

    count = colors.count(state)
    stable, number, trace = 0, 0, [pooled(state)[0]] if traced else []
    while number != rounds:
        after = step(state)
        more = colors.count(after)
        if rounds is None and more == count:
            break
        number += 1
        stable = number if more > count else stable
        state, count = after, more
        if traced:
            trace.append(pooled(state)[0])
    graph, tuple_colors, node_colors = pooled(state)
    final = rename(graph)
    details = WLDetails(
        final,
        int(torch.unique(final).numel()),
        stable,
        count,
        tuples.index,
        tuples.batch,
        rename(tuple_colors),
        list(rename(node_colors).split(colored.sizes)),
        [rename(each) for each in trace],
    )
    return graph, details


def _pieces(colored: Colored, setup: Setup) -> list[tuple[int, int]]:
    """Runs of graphs whose copies are not too many to be refined at once."""
    pieces, start, load = [], 0, 0
    for number, size in enumerate(colored.sizes):
        weight = size ** (setup.k + (setup.k > 1)) * max(size, 1) ** setup.l
        if number > start and load + weight > CHUNK:
            pieces.append((start, number))
            start, load = number, 0
        load += weight
    return [*pieces, (start, len(colored.sizes))] if colored.sizes else []
