"""Graphs side by side with their colours, and the copies that a test makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_pool.errors import check_edges
from pyg_pool.relational.copies import Copies, edge_deletions, expand_copies
from pyg_pool.relational.domains import Ground
from pyg_pool.relational.tuples import TupleSet, find_tuples, lay_ground

__all__ = ["Colored", "Setup", "copies_of", "gather_graphs"]

POOLINGS = ("tuple", "node", "root", "labelled", "nested")
POLICIES = ("mark", "none", "delete_node", "delete_edge")
UPDATES = ("SWL", "PSWL", "GSWL", "DSS", "SSWL", "LFWL", "SLFWL")


@dataclass(frozen=True)
class Setup:
    """The options of a test, as :func:`kl_wl` explains them."""

    k: int
    l: int  # noqa: E741
    folklore: bool
    domain: str
    ordered: bool
    pooling: str
    ego: int | None
    ego_mode: str
    update: str | None
    policy: str
    cover: bool


@dataclass(frozen=True)
class Colored:
    """Graphs side by side.

    Args:
        edge_index: ``[2, E]`` edges of all graphs.
        batch: ``[N]`` graph of each node.
        sizes: Number of nodes of each graph.
        node: ``[N]`` colours of the nodes.
        edge: ``[E]`` colours of the edges, or ``None``.
    """

    edge_index: Tensor
    batch: Tensor
    sizes: list[int]
    node: Tensor
    edge: Tensor | None

    def part(self, start: int, stop: int) -> Colored:
        """The graphs from ``start`` to before ``stop``."""
        if (start, stop) == (0, len(self.sizes)):
            return self
        low, high = sum(self.sizes[:start]), sum(self.sizes[:stop])
        kept = (self.edge_index[0] >= low) & (self.edge_index[0] < high)
        return Colored(
            self.edge_index[:, kept] - low,
            self.batch[low:high] - start,
            self.sizes[start:stop],
            self.node[low:high],
            None if self.edge is None else self.edge[kept],
        )

    @property
    def ground(self) -> Ground:
        """The graphs with sorted neighbours."""
        return lay_ground(self.edge_index, self.batch, len(self.sizes))


def gather_graphs(graphs: Sequence[Any], node_tints: Any, edge_tints: Any) -> Colored:
    """Puts graphs side by side and names their colours by numbers."""
    if isinstance(graphs, (Data, str)) or not isinstance(graphs, Sequence):
        raise TypeError(
            f"kl_wl got graphs of type {type(graphs).__name__}, expected a list of PyG "
            f"Data; put one graph into a list, and take batch.to_data_list() of a "
            f"batch."
        )
    sizes = [_size_of(graph) for graph in graphs]
    edges = [_edges_of(*pair) for pair in zip(graphs, sizes, strict=True)]
    start = torch.tensor([0, *sizes]).cumsum(0)
    edge_index = [
        part + first for part, first in zip(edges, start.tolist(), strict=False)
    ]
    edge_sizes = [part.size(1) for part in edges]
    device = edges[0].device if edges else torch.device("cpu")
    node = _tints("node_colors", graphs, node_tints, sizes)
    edge = _tints("edge_colors", graphs, edge_tints, edge_sizes)
    ids = torch.arange(len(sizes), device=device)
    empty = torch.empty((2, 0), dtype=torch.long)
    total = int(start[-1])
    return Colored(
        torch.cat(edge_index, dim=1) if edge_index else empty,
        ids.repeat_interleave(torch.tensor(sizes, device=device)) if sizes else ids,
        sizes,
        torch.zeros(total, dtype=torch.long, device=device) if node is None else node,
        edge,
    )


def _size_of(graph: Any) -> int:
    if not hasattr(graph, "num_nodes"):
        raise TypeError(
            f"kl_wl got a graph of type {type(graph).__name__}, expected PyG Data; "
            f"convert it, graph6 for instance with from_graph6."
        )
    return int(graph.num_nodes or 0)


def _edges_of(graph: Any, size: int) -> Tensor:
    if getattr(graph, "edge_index", None) is not None:
        return check_edges("kl_wl", graph.edge_index, None, size)
    if getattr(graph, "adj_t", None) is not None:
        raise ValueError(
            "kl_wl got a graph with adj_t and no edge_index, expected edge ids of "
            "shape [2, E]; leave the transform ToSparseTensor out, or put "
            "torch_geometric.utils.to_edge_index(adj_t)[0].flip(0) there."
        )
    return torch.empty((2, 0), dtype=torch.long)


def _tints(
    option: str, graphs: Sequence[Any], tints: Any, sizes: list[int]
) -> Tensor | None:
    """Colours from an attribute or from tensors, numbered over all graphs."""
    if tints is None:
        return None
    if isinstance(tints, str):
        tints = [getattr(graph, tints, None) for graph in graphs]
    tints = [each if each is None else torch.as_tensor(each) for each in tints]
    shapes = [None if t is None else list(t.shape) for t in tints]
    lengths = [t.size(0) if t is not None and t.dim() else None for t in tints]
    widths = {t[0].numel() for t in tints if t is not None and t.dim() and t.size(0)}
    if lengths != sizes or len(widths) > 1:
        raise ValueError(
            f"kl_wl got {option} with rows {lengths[:5]} (shapes {shapes[:5]}), "
            f"expected {sizes[:5]}; give a tensor per graph with one row per node or "
            f"edge, all of one width, or the name of such an attribute."
        )
    if any(bool(t.isnan().any()) for t in tints):
        raise ValueError(
            f"kl_wl got {option} with NaN, expected values that can be equal; fill "
            f"them, for instance with torch.nan_to_num."
        )
    rows = torch.cat([t.reshape(t.size(0), -1) for t in tints if t.size(0)] or tints)
    return torch.unique(rows, dim=0, return_inverse=True)[1].view(-1)


def copies_of(colored: Colored, setup: Setup) -> tuple[Copies, TupleSet]:
    """The copies that a test refines, and their tuples."""
    ground = colored.ground
    if setup.policy == "delete_edge":
        copies = edge_deletions(ground)
        return copies, copies.tuples
    tuples = find_tuples(
        colored.edge_index,
        colored.batch,
        setup.l,
        setup.domain,
        batch_size=len(colored.sizes),
        cover=setup.cover,
    )
    without = tuples.index[:, 0] if setup.policy == "delete_node" else None
    copies = expand_copies(
        ground, tuples, ego=setup.ego, ego_mode=setup.ego_mode, without=without
    )
    return copies, tuples
