"""Batch norm as plain arithmetic beside torch's, and in traced graphs."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor
from torch.nn import BatchNorm1d
from torch.testing import assert_close

from pyg_pool.models.layers import NodeNorm
from pyg_pool.models.pd_norms import RowBatchNorm
from pyg_pool.models.traced_norm import is_open, plain_batch_norm


def drawn(affine: bool = True) -> BatchNorm1d:
    norm = BatchNorm1d(3, affine=affine)
    for values in (*norm.parameters(), norm.running_mean, norm.running_var):
        torch.nn.init.uniform_(values, 0.5, 2.0)
    return norm


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_like_torch(training: bool, affine: bool) -> None:
    norm = drawn(affine).train(training)
    other, x = copy.deepcopy(norm), torch.randn(5, 3)
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    found, wanted = plain_batch_norm(a, norm), other(b)
    assert_close(found, wanted)
    (found * x).sum().backward()
    (wanted * x).sum().backward()
    assert_close(a.grad, b.grad)
    assert_close(norm.state_dict(), other.state_dict())


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows_leave_the_statistics_alone(rows: int) -> None:
    norm, x = drawn(), torch.randn(rows, 3)
    before = copy.deepcopy(norm.state_dict())
    found = plain_batch_norm(x, norm)
    assert_close(norm.state_dict(), before)
    assert_close(found, norm.eval()(x))


def test_half_rows_keep_their_type() -> None:
    assert plain_batch_norm(torch.randn(4, 3).half(), drawn()).dtype == torch.half


def test_only_traced_graphs_take_it() -> None:
    assert not is_open(drawn())


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", [RowBatchNorm, NodeNorm])
def test_compiles_after_a_step_that_depends_on_the_data(
    kind: type, training: bool
) -> None:
    norm = kind(3) if kind is RowBatchNorm else kind("batch_norm", 3)
    norm = norm.train(training)
    other = copy.deepcopy(norm)

    def call(module: torch.nn.Module, x: Tensor) -> Tensor:
        rows = x.index_select(0, (x[:, 0] > 0).nonzero().view(-1))
        return module(rows) if kind is RowBatchNorm else module(rows, None, 1)

    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend="eager")
    for size in (9, 20):
        x = torch.randn(size, 3)
        assert_close(compiled(norm, x), call(other, x))
    assert_close(norm.state_dict(), other.state_dict())
