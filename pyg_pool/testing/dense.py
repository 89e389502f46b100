"""Pooled graphs as small dense matrices, so that two of them can be compared."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_pool.core import PoolOutput
from pyg_pool.testing.contract import expect, same
from pyg_pool.testing.gallery import GraphSample
from pyg_pool.typing import OptTensor

__all__ = ["DenseView", "compare_views", "dense_adjacency", "dense_view"]


@dataclass(frozen=True, eq=False)
class DenseView:
    """A pooled graph; cluster ``c`` is column or row ``c`` of everything.

    Args:
        membership: ``[N, K]`` 0/1 assignment.
        weighted: ``[N, K]`` assignment with the selection's weights.
        rows: ``[K, F + 1]`` features and score.
        batch: ``[K]`` graph of each cluster.
        edges: ``[K, K, 1 + D]`` number of edges, and sums of their attributes.
    """

    membership: Tensor
    weighted: Tensor
    rows: Tensor
    batch: Tensor
    edges: Tensor


def dense_adjacency(edge_index: Tensor, edge_attr: OptTensor, num_nodes: int) -> Tensor:
    """Number of edges and sums of their attributes, ``[N, N, 1 + D]`` float64."""
    ones = torch.ones(edge_index.size(1), 1, dtype=torch.float64)
    values = ones.to(edge_index.device)
    if edge_attr is not None:
        wide = edge_attr.detach().double()
        wide = wide.unsqueeze(-1) if wide.dim() == 1 else wide
        values = torch.cat([values, wide], dim=1)
    out = values.new_zeros(num_nodes, num_nodes, values.size(1))
    return out.index_put((edge_index[0], edge_index[1]), values, accumulate=True)


def dense_view(
    out: PoolOutput, nodes: OptTensor = None, graph: int | None = None
) -> DenseView:
    """Turns a pooled graph into dense matrices.

    Args:
        out: The result of a pooling operator.
        nodes: Rows of the input to look at, in this order.
        graph: Only the clusters of this graph.
    """
    membership = out.selection.to_dense().detach()
    weighted = out.selection.to_dense(weighted=True).detach()
    score = out.x.new_zeros(out.x.size(0)) if out.score is None else out.score
    rows = torch.cat([out.x, score.unsqueeze(-1)], dim=1).detach()
    edges = dense_adjacency(out.edge_index, out.edge_attr, out.x.size(0))
    if nodes is not None:
        membership, weighted = membership[nodes], weighted[nodes]
    if graph is None:
        kept = torch.arange(out.batch.numel(), device=out.batch.device)
    else:
        kept = (out.batch == graph).nonzero().view(-1)
    return DenseView(
        membership[:, kept],
        weighted[:, kept],
        rows[kept],
        out.batch[kept],
        edges[kept][:, kept],
    )


def compare_views(
    actual: DenseView,
    expected: DenseView,
    what: str,
    *,
    with_batch: bool = True,
    rtol: float = 1e-7,
    atol: float = 1e-9,
) -> None:
    """Raises ``AssertionError`` unless two pooled graphs are the same.

    The clusters may be numbered differently; they are recognised by their members.
    """
    size, wanted = actual.rows.size(0), expected.rows.size(0)
    expect(size == wanted, f"{what}: got {size} clusters, expected {wanted}")
    order = _match(actual, expected, what)
    tolerance = {"rtol": rtol, "atol": atol}
    same(actual.weighted[:, order], expected.weighted, f"{what}, weights", **tolerance)
    same(actual.rows[order], expected.rows, f"{what}, features or score", **tolerance)
    if with_batch:
        same(actual.batch[order], expected.batch, f"{what}, batch")
    edges = actual.edges[order][:, order]
    same(edges, expected.edges, f"{what}, edges", **tolerance)


def _match(actual: DenseView, expected: DenseView, what: str) -> Tensor:
    """Cluster of ``actual`` that has the members of each of ``expected``."""
    mine = torch.cat([actual.membership, actual.weighted]).t().nan_to_num(nan=2.0)
    other = torch.cat([expected.membership, expected.weighted]).t().nan_to_num(nan=2.0)
    order, free = [], list(range(mine.size(0)))
    for cluster in range(other.size(0)):
        far = (mine[free] - other[cluster]).abs().sum(dim=1)
        best = int(far.argmin())
        nodes = expected.membership[:, cluster].nonzero().view(-1).tolist()
        expect(
            float(far[best]) < 1e-3,
            f"{what}: no cluster has the members (or weights) of the expected one with "
            f"nodes {nodes}",
        )
        order.append(free.pop(best))
    return torch.tensor(order, dtype=torch.long, device=mine.device)


def expected_edges(
    out: PoolOutput, sample: GraphSample, adjacency: Tensor
) -> tuple[Tensor, Tensor]:
    """Pooled adjacency as returned, and S'AS with the assignment as returned."""
    assignment = out.selection.to_dense().detach().double()
    found = dense_adjacency(out.edge_index, out.edge_attr, out.x.size(0))
    wanted = torch.einsum("nk,nmd,ml->kld", assignment, adjacency, assignment)
    return found, wanted
