"""The steps of a parse: attributes of pairs, and what validation refuses."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.core.pair_scorer import CosineScorer, DotScorer, OwnScorer
from pyg_pool.core.parse_steps import ParseRules, make_scorer, parse_steps

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 3], [1, 0, 2, 1, 3, 2, 3, 2]])
X = torch.ones(4, 2)


def own(x, pairs, attr):
    return attr[:, 0]


def test_both_directions_and_repeats_are_averaged() -> None:
    seen = []

    def scorer(x, pairs, attr):
        seen.append((pairs.tolist(), attr.tolist()))
        return attr[:, 0]

    attr = torch.tensor([1.0, 3.0, 5.0, 5.0, 7.0, 8.0, 100.0, 9.0]).view(-1, 1)
    rules = ParseRules(self_loops=True)
    with torch.no_grad():
        found = parse_steps(OwnScorer(scorer).eval(), X, EDGES, attr, rules)
    # The given loop of node 3 is left out; own loops have no attributes.
    pairs = [[0, 1, 2, 0, 1, 2, 3], [1, 2, 3, 0, 1, 2, 3]]
    assert seen == [(pairs, [[2.0], [5.0], [8.0], [0.0], [0.0], [0.0], [0.0]])]
    assert found.selection.cluster.tolist() == [0, 0, 0, 0]


def test_attributes_follow_dropped_edges() -> None:
    torch.manual_seed(0)
    attr = torch.arange(8.0).view(-1, 1)
    for _ in range(20):
        rules = ParseRules(dropout=0.5)
        found = parse_steps(OwnScorer(own), X, EDGES, attr, rules)
        assert found.kept is not None
        ends = EDGES[:, found.kept]
        cluster = found.selection.cluster
        inside = ends[:, (cluster[ends[0]] == cluster[ends[1]]) & (ends[0] != ends[1])]
        if inside.numel() == 0:
            assert found.score.tolist() == [1.0] * 4


def test_validation() -> None:
    rules = ParseRules(validate=True)
    scorer = DotScorer(2)
    parse_steps(scorer, X, EDGES, None, rules)
    with pytest.raises(ValueError, match="1 edges without their opposite"):
        parse_steps(scorer, X, EDGES[:, 1:], None, rules)
    x = X.clone()
    x[3] = torch.nan
    with pytest.raises(ValueError, match=r"nan for 1 of 3 edges, .* nodes \[2, 3\]"):
        parse_steps(scorer, x, EDGES, None, rules)
    assert parse_steps(scorer, x, EDGES, None, ParseRules()).selection is not None


def test_scorers_by_name() -> None:
    assert isinstance(make_scorer("cosine", 3, 1, 0.0, None), CosineScorer)
    assert isinstance(make_scorer(own, 3, 1, 0.0, 2), OwnScorer)
    assert make_scorer("product", 3, 2, 0.0, 2).mlp[0].in_features == 5
    with pytest.raises(ValueError, match="did you mean 'cosine'"):
        make_scorer("cosin", 3, 1, 0.0, None)
    with pytest.raises(ValueError, match="scorer='dot' with edge_channels=2"):
        make_scorer("dot", 3, 1, 0.0, 2)


def test_rules_that_do_nothing() -> None:
    assert ParseRules().is_plain
    assert not ParseRules(max_cluster_size=3).is_plain
