"""One compiled call against the steps it is made of."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from pyg_pool.kernels import use_backend
from pyg_pool.kernels.scored_clusters import scored_clusters

BACKENDS = pytest.mark.parametrize("backend", ["native", "numba"])


def random_input(seed, dtype, levels=None):
    torch.manual_seed(seed)
    ends = torch.randint(40, (2, 90))
    x = torch.randn(40, 5, dtype=dtype)
    if levels is not None:  # many equal scores
        x = torch.randint(levels, (40, 5)).to(dtype)
    weight, bias = torch.randn(5, dtype=dtype), torch.randn(1, dtype=dtype)
    return [x, torch.cat([ends, ends.flip(0)], 1), weight, bias]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rests", [False, True])
def test_compiled_call_equals_the_steps(rests, dtype, seed):
    parts = random_input(seed, dtype, levels=3 if seed % 2 else None)
    for place in (0, 2, 3):
        parts[place].requires_grad_()
    resting = torch.rand(40) < 0.3 if rests else None
    found = []
    for backend in ("native", "numba"):
        with use_backend(backend):
            cluster, mean, count = scored_clusters(*parts, resting)
            loss = (mean * torch.arange(mean.size(0))).sum()
            leaves = [parts[0], parts[2], parts[3]]
            found.append([cluster, mean, count, *torch.autograd.grad(loss, leaves)])
    for native, compiled in zip(*found, strict=True):
        assert_close(native, compiled)
    if rests:
        sizes = torch.bincount(found[0][0])
        assert (sizes[found[0][0]][resting] == 1).all()


@BACKENDS
def test_second_derivatives(backend):
    x, edges, weight, bias = random_input(0, torch.float64)
    leaves = [each.requires_grad_() for each in (x, weight, bias)]

    def means(x, weight, bias):
        return scored_clusters(x, edges, weight, bias)[1]

    with use_backend(backend):
        assert torch.autograd.gradcheck(means, leaves)
        assert torch.autograd.gradgradcheck(means, leaves)


@BACKENDS
def test_nothing_to_join(backend):
    none, one = torch.empty(2, 0, dtype=torch.int64), torch.ones(1)
    with use_backend(backend):
        cluster, mean, count = scored_clusters(torch.randn(3, 1), none, one, one)
        assert scored_clusters(torch.empty(0, 1), none, one, one)[0].shape == (0,)
    assert cluster.tolist() == [0, 1, 2]
    assert mean.tolist() == count.tolist() == [1, 1, 1]
