"""Copies against loops over tuples, nodes and edges."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_pool.relational.copies import edge_deletions, expand_copies, subset_copies
from pyg_pool.relational.tuples import find_tuples, lay_ground


def expected(
    edges: torch.Tensor, rows: list[list[int]], nodes: list[set[int]]
) -> tuple[list[tuple[int, int]], list[tuple[int, int, int]]]:
    """Pairs and copied edges (tuple, edge number) by loops."""
    pairs, kept = [], []
    for number, _ in enumerate(rows):
        pairs += [(number, node) for node in sorted(nodes[number])]
        for edge, (i, j) in enumerate(edges.t().tolist()):
            if i in nodes[number] and j in nodes[number]:
                kept.append((number, edge, 0))
    return pairs, kept


@given(
    size=st.integers(1, 7),
    seed=st.integers(0, 999),
    ego=st.sampled_from([None, 0, 1, 2]),
    mode=st.sampled_from(["root", "union", "intersection"]),
    domain=st.sampled_from(["star", "distinct", "all"]),
)
def test_equals_loops(
    size: int, seed: int, ego: int | None, mode: str, domain: str
) -> None:
    # Directed edges with loops and doubles.
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(size, (2, 2 * size), generator=generator)
    edges = torch.cat([edges, edges[:, :2]], dim=1)
    batch = torch.zeros(size, dtype=torch.long)
    tuples = find_tuples(edges, batch, 2, domain)
    copies = expand_copies(lay_ground(edges, batch), tuples, ego=ego, ego_mode=mode)
    plain = nx.Graph(edges.t().tolist())
    plain.add_nodes_from(range(size))
    nodes = []
    for row in tuples.index.tolist():
        balls = [
            set(nx.single_source_shortest_path_length(plain, t, ego))
            for t in row
            if t >= 0
        ]
        chosen = {
            "root": balls[0],
            "union": set.union(*balls),
            "intersection": set.intersection(*balls),
        }[mode]
        nodes.append(set(range(size)) if ego is None else chosen)
    pairs, kept = expected(edges, tuples.index.tolist(), nodes)
    got = list(zip(copies.pair_tuple.tolist(), copies.pair_node.tolist(), strict=True))
    assert got == pairs
    owner = copies.pair_tuple[copies.edge_index[0]]
    assert list(zip(owner.tolist(), copies.edge_id.tolist(), strict=True)) == [
        (t, e) for t, e, _ in kept
    ]
    ends = copies.pair_node[copies.edge_index]
    assert torch.equal(ends, edges[:, copies.edge_id])
    assert torch.equal(copies.pair_tuple[copies.edge_index[1]], owner)


def test_part_of_the_copies() -> None:
    edges = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
    batch = torch.tensor([0, 0, 0, 1, 1])
    tuples = find_tuples(edges, batch, 1, "distinct")
    copies = expand_copies(lay_ground(edges, batch), tuples, ego=1)
    part = subset_copies(copies, 1, 4)
    assert part.tuples.index.tolist() == [[1], [2], [3]]
    assert part.pair_node.tolist() == [0, 1, 2, 1, 2, 3, 4]
    assert part.pair_ptr.tolist() == [0, 3, 5, 7]
    assert part.edge_id.tolist() == [0, 1, 2, 3, 2, 3, 4, 5]
    assert torch.equal(part.pair_node[part.edge_index], edges[:, part.edge_id])


def test_node_left_out_and_pairs_found() -> None:
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    tuples = find_tuples(edges, None, 1, "distinct")
    copies = expand_copies(lay_ground(edges, None), tuples, without=tuples.index[:, 0])
    assert copies.pair_node.tolist() == [1, 2, 0, 2, 0, 1]
    assert copies.edge_id.tolist() == [2, 3, 0, 1]
    assert not copies.is_full
    ids = torch.tensor([0, 0, 2, 2])
    assert copies.find(ids, torch.tensor([0, 2, 1, -1])).tolist() == [-1, 1, 5, -1]


def test_balls_need_labels() -> None:
    edges = torch.tensor([[0], [1]])
    tuples = find_tuples(edges, None, 0, "all")
    with pytest.raises(ValueError, match="leave ego out"):
        expand_copies(lay_ground(edges, None), tuples, ego=1)
    ground, one = lay_ground(edges, None), find_tuples(edges, None, 1, "all")
    with pytest.raises(TypeError, match=r"ego=1\.5 of type float, expected a whole"):
        expand_copies(ground, one, ego=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ego=-1, expected ego >= 0"):
        expand_copies(ground, one, ego=-1)
    with pytest.raises(ValueError, match="did you mean 'union'"):
        expand_copies(lay_ground(edges, None), tuples, ego_mode="unoin")


@pytest.mark.parametrize("ego", [None, 1])
@pytest.mark.parametrize("mode", ["root", "union", "intersection"])
def test_every_list_is_made_where_the_edges_are(ego: int | None, mode: str) -> None:
    edges = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
    batch = torch.tensor([0, 0, 0, 1, 1])
    # A list on the default device would not go together with the others.
    with torch.device("meta"):
        ground = lay_ground(edges, batch)
        tuples = find_tuples(edges, batch, 2, "star")
        gone = tuples.index[:, 0]
        for made in (
            expand_copies(ground, tuples, ego=ego, ego_mode=mode),
            expand_copies(ground, tuples, ego=ego, ego_mode=mode, without=gone),
            edge_deletions(ground),
        ):
            lists = made.pair_ptr, made.edge_index, made.edge_id, made.pair_graph
            part = subset_copies(made, 1, 2)
            for each in (*lists, part.pair_node, part.edge_index):
                assert each.device == torch.device("cpu")
