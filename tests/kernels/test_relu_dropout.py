"""ReLU with dropout: shares, gradients, repeatability, and torch's own as oracle."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.kernels import use_backend
from pyg_pool.kernels.relu_dropout import relu_dropout

BACKENDS = pytest.mark.parametrize("backend", ["native", "numba"])


@BACKENDS
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("rate", [0.1, 0.4, 0.75])
def test_drops_its_share_and_scales_the_rest(rate, dtype, backend):
    torch.manual_seed(0)
    x = torch.ones(400, 100, dtype=dtype)
    x[200:] = -1
    with use_backend(backend):
        out = relu_dropout(x, rate)
    kept = out[:200] != 0
    # Four standard errors of a share of 20,000 draws; each row and column too.
    assert abs(kept.double().mean() - (1 - rate)) < 4 * (rate * (1 - rate) / 2e4) ** 0.5
    assert kept.double().mean(0).sub(1 - rate).abs().max() < 0.2
    assert kept.double().mean(1).sub(1 - rate).abs().max() < 0.3
    expected = torch.tensor(1 / (1 - rate), dtype=dtype)
    torch.testing.assert_close(out[:200][kept], expected.expand(int(kept.sum())))
    assert not out[200:].any()
    assert out.dtype == dtype


@BACKENDS
def test_the_gradient_is_that_of_its_own_mask(backend):
    x = torch.randn(30, 20, dtype=torch.float64, requires_grad=True)
    with use_backend(backend):

        def same(rows):
            torch.manual_seed(3)
            return relu_dropout(rows, 0.3)

        assert torch.autograd.gradcheck(same, x)
        assert torch.autograd.gradgradcheck(same, x)


@BACKENDS
def test_repeats_under_a_seed_and_changes_without(backend):
    x = torch.rand(64, 64)
    with use_backend(backend):
        torch.manual_seed(1)
        first, second = relu_dropout(x, 0.5), relu_dropout(x, 0.5)
        torch.manual_seed(1)
        assert torch.equal(relu_dropout(x, 0.5), first)
    # Independent masks agree on half of the entries.
    share = ((first == 0) == (second == 0)).double().mean()
    assert abs(share - 0.5) < 0.04


@BACKENDS
def test_neighbouring_entries_are_dropped_independently(backend):
    torch.manual_seed(0)
    with use_backend(backend):
        kept = (relu_dropout(torch.ones(100_000), 0.5) > 0).double() * 2 - 1
    for step in (1, 2, 64, 256):
        assert abs((kept[step:] * kept[:-step]).mean()) < 4 / 1e5**0.5


@BACKENDS
def test_without_training_or_rate_it_is_relu(backend):
    x = torch.randn(50, 50)
    with use_backend(backend):
        assert torch.equal(relu_dropout(x, 0.5, training=False), x.relu())
        assert torch.equal(relu_dropout(x, 0.0), x.relu())
        assert not relu_dropout(x, 1.0).any()
        assert relu_dropout(torch.empty(0, 3), 0.5).shape == (0, 3)


@BACKENDS
def test_nan_stays_visible_and_strides_do_not_matter(backend):
    torch.manual_seed(0)
    x = torch.rand(40, 60).t().requires_grad_()
    with use_backend(backend):
        out = relu_dropout(x, 0.5)
        out.sum().backward()
        assert torch.equal(x.grad, (out != 0) * 2.0)
        assert relu_dropout(torch.full((100,), torch.nan), 0.5).isnan().any()


def test_compiles_without_a_break():
    compiled = torch.compile(relu_dropout, backend="eager", fullgraph=True)
    assert (compiled(torch.ones(1000), 0.5) == 0).any()
