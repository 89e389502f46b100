from __future__ import annotations

import pytest
import torch

from pyg_pool.kernels import current_backend, topk
from pyg_pool.testing import Watch, as_on_device


def test_reads_are_seen() -> None:
    x = torch.arange(4.0)
    with Watch() as watch:
        x + 1
    assert watch.reads == []
    with Watch() as watch:
        float(x.sum())
        bool(x.any())
        torch.equal(x, x)
    assert watch.reads == ["_local_scalar_dense", "_local_scalar_dense", "equal"]


def test_largest_tensor_counts_memory_not_views() -> None:
    x = torch.zeros(10, 1)
    with Watch() as watch:
        x.expand(10, 1000).t()
    assert watch.largest == 40
    with Watch() as watch:
        x.expand(10, 1000) + 1
    assert watch.largest == 40_000


def test_calls_are_counted() -> None:
    with Watch() as watch:
        torch.ones(3).add(1).add(1)
    assert watch.calls["add"] == 2
    assert watch.total == 3


def test_value_checks_are_off_as_on_a_device() -> None:
    score, batch = torch.rand(3), torch.tensor([0, 0, 1])
    with Watch() as watch:
        topk(score, 0.5, batch=batch, batch_size=2)
    assert watch.reads
    with as_on_device(), Watch() as watch:
        assert current_backend() == "native"
        topk(score, 0.5, batch=batch, batch_size=2)
    assert watch.reads == []
    with pytest.raises(ValueError, match="graph ids"):
        topk(score, 0.5, batch=batch, batch_size=1)
