"""Scorers without weights, and those of the user."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cosine_similarity

from pyg_pool.core.pair_scorer import CosineScorer, DotScorer, OwnScorer, PairScorer

PAIRS = torch.tensor([[0, 1, 2], [3, 4, 2]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dot_and_cosine(dtype: torch.dtype) -> None:
    x = torch.randn(5, 4, dtype=dtype, requires_grad=True)
    for scorer, plain in (
        (DotScorer(4), lambda a, b: (a * b).sum(1)),
        (CosineScorer(4), cosine_similarity),
    ):
        found, wanted = scorer(x, PAIRS), plain(x[PAIRS[0]], x[PAIRS[1]])
        torch.testing.assert_close(found, wanted)
        slopes = [torch.autograd.grad(each.sum(), x)[0] for each in (found, wanted)]
        torch.testing.assert_close(*slopes)
        assert scorer.dtype is None
        assert not scorer.state_dict()
    assert CosineScorer(2)(torch.zeros(5, 2), PAIRS).tolist() == [0.0] * 3


def test_mean_scores_of_both_ways() -> None:
    x, scorer = torch.randn(5, 4), DotScorer(4)
    cluster = torch.tensor([0, 0, 1, 0, 1])
    logit = scorer(x, PAIRS)
    found = scorer.mean_scores(x, PAIRS, logit, cluster, 2, again=True)
    wanted = scorer.mean_scores(x, PAIRS, logit, cluster, 2, again=False)
    for ours, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, other)
    # The pair (0, 3) counts twice, the loop of node 2 once; (1, 4) is between.
    assert found[1].tolist() == [2.0, 1.0]


def test_own_scorer() -> None:
    attr = torch.tensor([[1.0], [2.0], [3.0]])
    scorer = OwnScorer(lambda x, pairs, attr: attr.view(-1))
    assert scorer(torch.ones(5, 1), PAIRS, attr).tolist() == [1.0, 2.0, 3.0]
    wrong = OwnScorer(lambda x, pairs: x)
    with pytest.raises(ValueError, match=r"\[5, 1\] for 3 pairs, expected .*\[3\]"):
        wrong(torch.ones(5, 1), PAIRS)
    module = torch.nn.Bilinear(2, 2, 1)
    assert len(list(OwnScorer(module).parameters())) == 2
    with pytest.raises(NotImplementedError, match="does not say how it scores"):
        PairScorer()(torch.ones(5, 1), PAIRS)
