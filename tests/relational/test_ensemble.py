"""Medians over several samples of tuples."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.models import IDMPNN, KLGNN
from pyg_pool.relational import sampled_median

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 5, 6], [1, 0, 2, 1, 3, 2, 6, 5]])
BATCH = torch.tensor([0] * 5 + [1] * 2)


@pytest.mark.parametrize("reduce", ["median", "mean"])
def test_equals_the_draws_one_by_one(reduce: str) -> None:
    torch.manual_seed(1)
    model = KLGNN(2, 6, 3, 2, num_samples=2).train()
    x = torch.randn(7, 2)
    generator = torch.Generator().manual_seed(3)
    got = sampled_median(
        model, x, EDGES, batch=BATCH, batch_size=2, draws=3, reduce=reduce,
        generator=generator,
    )  # fmt: skip
    assert model.training
    assert model.network.training
    assert not model.network.sample_in_eval
    generator.manual_seed(3)
    model.eval()
    model.network.sample_in_eval = True
    with torch.no_grad():
        outputs = [
            model(x, EDGES, batch=BATCH, batch_size=2, generator=generator)
            for _ in range(3)
        ]
    stack = torch.stack(outputs)
    want = stack.sort(0).values[1] if reduce == "median" else stack.mean(0)
    torch.testing.assert_close(got, want)
    assert not torch.allclose(outputs[0], outputs[1])


def test_two_streams_and_refusals() -> None:
    x = torch.randn(7, 2)
    model = IDMPNN(2, 6, 1, num_samples=2)
    assert sampled_median(model, x, EDGES, batch=BATCH, draws=2).shape == (2, 1)
    with pytest.raises(ValueError, match="with 0 parts that"):
        sampled_median(KLGNN(2, 6, 1), x, EDGES)
    with pytest.raises(ValueError, match="draws=0"):
        sampled_median(model, x, EDGES, draws=0)
    with pytest.raises(ValueError, match="did you mean 'median'"):
        sampled_median(model, x, EDGES, reduce="medium")
