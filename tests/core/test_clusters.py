"""Cluster ids per node: numbering and checks."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyg_pool.core.clusters import both_weights, entries_of_clusters, kind_of


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 2)), max_size=8))
def test_ids_per_graph_are_numbered_by_graph_and_id(
    pairs: list[tuple[int, int]],
) -> None:
    cluster = torch.tensor([p[0] for p in pairs]).long()
    batch = torch.tensor([p[1] for p in pairs]).long()
    nodes, ids, count = entries_of_clusters(cluster, None, batch, None, True)
    kept = [i for i, p in enumerate(pairs) if p[0] >= 0]
    known = sorted({(pairs[i][1], pairs[i][0]) for i in kept})
    assert nodes.tolist() == kept
    assert ids.tolist() == [known.index((pairs[i][1], pairs[i][0])) for i in kept]
    assert count == len(known)


@pytest.mark.parametrize(
    ("nodes", "clusters", "sizes", "kind"),
    [
        ([2, 0], [0, 1], (3, 2), "one_to_one"),
        ([2, 0], [1, 0], (3, 2), "one_to_one"),
        ([2, 0], [0, 1], (3, 3), "hard"),  # a cluster without members
        ([2, 0], [0, 0], (3, 2), "hard"),
        ([2, 2], [0, 1], (3, 2), "soft"),
        ([], [], (3, 0), "one_to_one"),
        ([], [], (3, 1), "hard"),
    ],
)
def test_kind(
    nodes: list[int], clusters: list[int], sizes: tuple[int, int], kind: str
) -> None:
    index = torch.tensor(nodes).long(), torch.tensor(clusters).long()
    assert kind_of(*index, *sizes) == kind


def test_missing_weights_are_ones() -> None:
    a, left = torch.tensor([2.0, 3.0]), torch.tensor([1, 0, 1])
    b, right = torch.tensor([5.0]), torch.tensor([0, 0, 0])
    assert both_weights(None, left, None, right) is None
    for pair, wanted in [
        ((a, left, None, right), [3.0, 2.0, 3.0]),
        ((None, left, b, right), [5.0, 5.0, 5.0]),
        ((a, left, b, right), [15.0, 10.0, 15.0]),
    ]:
        out = both_weights(*pair)
        assert out is not None
        assert out.tolist() == wanted
