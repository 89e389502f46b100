"""How dual nodes follow when faces merge."""

from __future__ import annotations

import torch

from pyg_pool import Selection
from pyg_pool.core.primal_dual import contract_duals, graph_of_pairs, shares

PAIRS = torch.tensor([[0, 0, 1, 2], [1, 2, 3, 3]])  # a square of faces
BOTH = torch.tensor([[0, 1, 3, 5], [2, 4, 6, 7]])


def merged(cluster: list[int]) -> Selection:
    return Selection.from_clusters(torch.tensor(cluster))


def test_merged_and_vanished_dual_nodes(backend: str) -> None:
    to_dual = torch.tensor([0, 1, 0, 2, 1, 3, 2, 3])
    found = contract_duals(PAIRS, BOTH, to_dual, 4, merged([0, 0, 1, 1]), "A")
    assert found.selection.cluster.tolist() == [-1, 0, 0, -1]
    assert found.edge_index.tolist() == [[0, 1], [1, 0]]
    assert found.edge_to_dual.tolist() == [0, 0]
    assert found.links("A", loops=True).tolist() == [[0], [0]]


def test_directions_are_kept_and_turned(backend: str) -> None:
    # Cluster 1 holds the lower face 0: upward edges lead down between the clusters.
    found = contract_duals(PAIRS, BOTH, torch.arange(8), 8, merged([1, 1, 0, 0]), "B")
    edges = [(0, 1), (0, 2), (1, 0), (1, 3), (2, 0), (2, 3), (3, 1), (3, 2)]
    for (i, j), new in zip(edges, found.selection.cluster.tolist(), strict=True):
        ends = [1 - i // 2, 1 - j // 2]
        if ends[0] == ends[1]:
            assert new == -1
        else:
            assert found.edge_index[:, new].tolist() == ends


def test_shares_of_empty_graphs_are_one() -> None:
    like = torch.zeros(1)
    owner = torch.tensor([0, 0, 2])
    got = shares((1, owner[:1]), (3, owner), 4, like)
    assert got.tolist() == [0.5, 1.0, 0.0, 1.0]
    assert shares((0, None), (0, None), 1, like).tolist() == [1.0]
    assert graph_of_pairs(None, PAIRS) is None
