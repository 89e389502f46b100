"""Graphs side by side with their colours, and the copies that a test makes of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData

from pyg_pool.errors import check_edges
from pyg_pool.relational.copies import Copies, edge_deletions, expand_copies
from pyg_pool.relational.domains import Ground
from pyg_pool.relational.refine_options import Setup
from pyg_pool.relational.tuples import TupleSet, find_tuples, lay_ground

__all__ = ["Colored", "copies_of", "gather_graphs"]


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
    device = _device_of(graphs)
    edges = [_edges_of(*pair, device) for pair in zip(graphs, sizes, strict=True)]
    start = [0, *itertools.accumulate(sizes)]
    shifted = [part + first for part, first in zip(edges, start, strict=False)]
    node = _tints("node_colors", graphs, node_tints, sizes, device)
    edge_sizes = [part.size(1) for part in edges]
    edge = _tints("edge_colors", graphs, edge_tints, edge_sizes, device)
    ids = torch.arange(len(sizes), device=device)
    empty = torch.empty((2, 0), dtype=torch.long, device=device)
    return Colored(
        torch.cat([empty, *shifted], dim=1),
        ids.repeat_interleave(
            torch.tensor(sizes, dtype=torch.long, device=device), output_size=start[-1]
        ),
        sizes,
        torch.zeros(start[-1], dtype=torch.long, device=device)
        if node is None
        else node,
        edge,
    )


def _size_of(graph: Any) -> int:
    if isinstance(graph, (Batch, HeteroData)) or not hasattr(graph, "num_nodes"):
        raise TypeError(
            f"kl_wl got a graph of type {type(graph).__name__}, expected PyG Data; "
            f"convert it, graph6 for instance with from_graph6, a batch with "
            f"batch.to_data_list()."
        )
    return int(graph.num_nodes or 0)


def _device_of(graphs: Sequence[Any]) -> torch.device:
    """The device of all graphs."""
    held = [
        value.device
        for graph in graphs
        for value in (getattr(graph, "edge_index", None), getattr(graph, "x", None))
        if isinstance(value, Tensor)
    ]
    if len(set(held)) > 1:
        raise ValueError(
            f"kl_wl got graphs on {sorted(map(str, set(held)))}, expected one device; "
            f"move them, for instance with graph.to('cpu')."
        )
    return held[0] if held else torch.device("cpu")


def _edges_of(graph: Any, size: int, device: torch.device) -> Tensor:
    if getattr(graph, "edge_index", None) is not None:
        return check_edges("kl_wl", graph.edge_index, None, size)
    if getattr(graph, "adj_t", None) is not None:
        raise ValueError(
            "kl_wl got a graph with adj_t and no edge_index, expected edge ids of "
            "shape [2, E]; leave the transform ToSparseTensor out, or put "
            "torch_geometric.utils.to_edge_index(adj_t)[0].flip(0) there."
        )
    return torch.empty((2, 0), dtype=torch.long, device=device)


def _tints(
    option: str,
    graphs: Sequence[Any],
    tints: Any,
    sizes: list[int],
    device: torch.device,
) -> Tensor | None:
    """Colours from an attribute or from tensors, numbered over all graphs."""
    if tints is None:
        return None
    if isinstance(tints, str):
        tints = [getattr(graph, tints, None) for graph in graphs]
    tints = [_tensor_of(option, each) for each in _listed(option, tints)]
    shapes = [None if t is None else list(t.shape) for t in tints]
    lengths = [t.size(0) if t is not None and t.dim() else None for t in tints]
    widths = {t[0].numel() for t in tints if t is not None and t.dim() and t.size(0)}
    if lengths != sizes or len(widths) > 1:
        raise ValueError(
            f"kl_wl got {option} with rows {lengths[:5]} (shapes {shapes[:5]}), "
            f"expected {sizes[:5]}; give a tensor per graph with one row per node or "
            f"edge, all of one width, or the name of such an attribute."
        )
    filled = [t for t in tints if t.numel()]
    if len({t.is_floating_point() for t in filled}) > 1:
        raise ValueError(
            f"kl_wl got {option} of dtypes {sorted({str(t.dtype) for t in filled})}, "
            f"expected whole numbers for all graphs or for none, since others are "
            f"rounded to be compared; convert them."
        )
    if any(bool(t.isnan().any()) for t in filled):
        raise ValueError(
            f"kl_wl got {option} with NaN, expected values that can be equal; fill "
            f"them, for instance with torch.nan_to_num."
        )
    if not filled:
        return torch.zeros(sum(sizes), dtype=torch.long, device=device)
    rows = torch.cat([t.reshape(t.size(0), -1).to(device) for t in filled])
    return torch.unique(rows, dim=0, return_inverse=True)[1].view(-1)


def _listed(option: str, tints: Any) -> list[Any]:
    """What is given for each graph."""
    if not isinstance(tints, (Sequence, Tensor)):
        raise TypeError(
            f"kl_wl got {option} of type {type(tints).__name__}, expected a list of "
            f"tensors, one per graph, or the name of an attribute; put one into a list."
        )
    return list(tints)


def _tensor_of(option: str, value: Any) -> Tensor | None:
    """Colours as a tensor of numbers that can be sorted."""
    out = value
    try:
        if value is not None and not isinstance(value, Tensor):
            out = torch.as_tensor(value, device="cpu")
    except (TypeError, ValueError, RuntimeError):
        out = torch.empty(0, dtype=torch.complex64, device="cpu")
    if out is not None and out.is_complex():
        raise TypeError(
            f"kl_wl got {option} of type {type(value).__name__} that are no real "
            f"numbers, expected whole or floating point ones; number the colours."
        )
    return out


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
