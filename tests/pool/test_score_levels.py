"""Levels of a graph that is parsed by given scores."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.kernels import connected_components
from pyg_pool.pool import parse_levels
from pyg_pool.pool.graph_parsing import parse


def random_graph(seed: int, size: int = 60):
    chance = torch.Generator().manual_seed(seed)
    ends = torch.combinations(torch.arange(size)).t()
    pairs = ends[:, torch.rand(ends.size(1), generator=chance) < 0.05]
    # Two graphs: nothing between the lower and the upper half.
    pairs = pairs[:, (pairs[0] < size // 2) == (pairs[1] < size // 2)]
    score = torch.rand(pairs.size(1), generator=chance)
    return torch.cat([pairs, pairs.flip(0)], 1), score.repeat(2)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "count", "binary"])
def test_each_level_is_the_parse_of_the_one_below(reduce, backend: str) -> None:
    edges, score = random_graph(0)
    batch = (torch.arange(60) >= 30).long()
    found = parse_levels(edges, score, 60, batch, reduce=reduce)
    for fine, coarse, selection in zip(
        found.levels, found.levels[1:], found.selections, strict=False
    ):
        graph = (fine.edge_index, fine.edge_attr, fine.num_nodes)
        cluster = parse(*graph, fine.batch)
        assert torch.equal(selection.cluster, cluster)
        dense = torch.zeros(coarse.num_nodes, coarse.num_nodes)
        ends = cluster[fine.edge_index]
        between = ends[:, ends[0] != ends[1]]
        values = fine.edge_attr[ends[0] != ends[1]]
        number = dense.index_put(
            tuple(between), torch.ones_like(values), accumulate=True
        )
        total = dense.index_put(tuple(between), values, accumulate=True)
        wanted = {
            "sum": total,
            "mean": total / number.clamp(min=1),
            "count": number,
            "binary": number.clamp(max=1),
        }
        given = dense.index_put(tuple(coarse.edge_index), coarse.edge_attr)
        if reduce in wanted:
            torch.testing.assert_close(given, wanted[reduce])
        assert torch.equal(coarse.batch[cluster], fine.batch)
    top = found.levels[-1]
    assert top.edge_index.numel() == 0
    whole = connected_components(edges, 60)
    assert torch.equal(found.selection(0, len(found) - 1).cluster, whole)


def test_limits_and_nothing() -> None:
    edges, score = random_graph(1)
    full = parse_levels(edges, score, 60)
    assert len(full) > 2
    assert len(parse_levels(edges, score, 60, max_levels=1)) == 2
    assert len(parse_levels(edges, score, 60, min_nodes=60)) == 1
    none = edges[:, :0]
    assert len(parse_levels(none, score[:0], 5)) == 1
    assert len(parse_levels(none, score[:0], 0)) == 1
    with pytest.raises(ValueError, match=r"shape \[71\] for 72 edges"):
        parse_levels(edges, score[1:], 60)
