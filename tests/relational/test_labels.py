"""Label features against their definitions."""

from __future__ import annotations

import networkx as nx
import pytest
import torch

from pyg_pool.relational import (
    expand_copies,
    find_tuples,
    label_features,
    label_width,
    lay_ground,
)
from tests.relational.families import as_data

SOURCE = nx.disjoint_union(nx.path_graph(5), nx.cycle_graph(3))


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("encoding", ["mark", "spd", "resistance", "none"])
def test_equals_the_definition(encoding: str, ordered: bool) -> None:
    graph = as_data(SOURCE)
    batch = torch.zeros(8, dtype=torch.long)
    ground = lay_ground(graph.edge_index, batch)
    tuples = find_tuples(graph.edge_index, batch, 3, "star")  # ends get padding
    copies = expand_copies(ground, tuples)
    got = label_features(ground, copies, encoding, ordered=ordered, dmax=2)
    assert got.size(1) == label_width(3, encoding, ordered=ordered, dmax=2)
    if encoding == "none":
        return
    far = dict(nx.all_pairs_shortest_path_length(SOURCE))
    for row, (t, u) in enumerate(
        zip(copies.pair_tuple.tolist(), copies.pair_node.tolist(), strict=True)
    ):
        blocks = []
        for node in tuples.index[t].tolist():
            if encoding == "spd":
                block = torch.zeros(4)
                if node >= 0:
                    block[min(far[node][u], 2) if u in far[node] else 3] = 1
            elif encoding == "mark":
                block = torch.tensor([float(node == u)])
            else:
                block = torch.tensor([0.0])
                if node >= 0 and u not in far[node]:
                    block = torch.tensor([-1.0])
                elif node >= 0 and node != u:
                    block = torch.tensor([nx.resistance_distance(part(u), node, u)])
            blocks.append(block.float())
        want = torch.cat(blocks) if ordered else torch.stack(blocks).sum(0)
        torch.testing.assert_close(got[row], want, atol=1e-5, rtol=1e-5)


def part(node: int) -> nx.Graph:
    return SOURCE.subgraph(nx.node_connected_component(SOURCE, node))


def test_no_labels_and_unknown_encodings() -> None:
    edges = torch.tensor([[0], [1]])
    tuples = find_tuples(edges, None, 0, "all")
    copies = expand_copies(lay_ground(edges, None), tuples)
    for ordered in (True, False):
        got = label_features(lay_ground(edges, None), copies, ordered=ordered)
        assert got.shape == (2, 0)
    with pytest.raises(ValueError, match="did you mean 'mark'"):
        label_width(1, "marks")
