from __future__ import annotations

import pytest
import torch
from torch_geometric.nn.aggr import MeanAggregation

from pyg_pool import GPool
from pyg_pool.testing import (
    POOLING_CHECKS,
    READOUT_CHECKS,
    PoolingSpec,
    ReadoutSpec,
    check_pooling,
    check_readout,
)
from pyg_pool.testing.contract import all_same, expect, listed, run_checks, same, total


def test_every_promise_has_a_check() -> None:
    shared = {
        "dtypes",
        "autocast",
        "device",
        "permutation",
        "batch_independence",
        "nan",
        "gradcheck",
        "state_dict",
        "copies",
        "compile",
        "compile_gradients",
        "repr",
        "backends",
        "parameters",
        "options",
        "host_waits",
    }
    pooling = {"gallery", "single_graph", "groups", "ties", "adjacency", "lift"}
    readout = {"forms", "empty", "extremes", "counts", "dims", "hosts", "reset"}
    assert shared | pooling <= set(POOLING_CHECKS)
    assert shared | readout <= set(READOUT_CHECKS)


def test_report_names_what_was_skipped_and_why() -> None:
    report = check_pooling(
        GPool, only=["ties", "nan"], skip={"nan": "it is being repaired"}
    )
    assert report == {"ties": "passed", "nan": "skipped: it is being repaired"}


def test_documented_exceptions_show_in_the_report() -> None:
    spec = ReadoutSpec(lambda _: MeanAggregation(), exceptions={"nan": "by design"})
    assert check_readout(spec, only=["nan"]) == {"nan": "skipped: by design"}


def test_unknown_checks_and_missing_reasons_are_refused() -> None:
    with pytest.raises(ValueError, match="expected some of"):
        check_pooling(GPool, only=["tie"])
    with pytest.raises(ValueError, match="expected some of"):
        check_readout(lambda _: MeanAggregation(), skip={"tie": "a reason"})
    with pytest.raises(ValueError, match="document the exception"):
        check_pooling(GPool, skip={"ties": " "})


def test_failure_names_check_and_operator() -> None:
    table: dict = {}

    @listed("colour", table)
    def check_colour(spec: PoolingSpec) -> None:
        raise RuntimeError("too blue")

    spec = PoolingSpec(lambda channels: GPool(channels))
    with pytest.raises(AssertionError, match=r"GPool fails the check 'colour'.*blue"):
        run_checks(table, spec, None, None)
    assert table["colour"] is check_colour


def test_operators_are_built_alike_and_leave_the_generator_alone() -> None:
    spec = PoolingSpec(GPool)
    state = torch.get_rng_state()
    first, second = spec.build(), spec.build()
    assert torch.equal(first.weight, second.weight)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(spec.build(seed=1).weight, first.weight)
    assert not first.training
    assert first.weight.dtype == torch.float64


def test_comparisons_can_fail() -> None:
    one = torch.ones(1)
    same(one, one, "equal")
    for other in (one + 1e-6, one.double(), torch.ones(2), one * torch.nan):
        with pytest.raises(AssertionError, match="unequal"):
            same(other, one, "unequal")
    with pytest.raises(AssertionError, match="expected"):
        all_same({"a": one}, {"a": one, "b": one}, "names")
    with pytest.raises(AssertionError, match="no"):
        expect(False, "no")


def test_total_depends_on_every_entry() -> None:
    x = torch.ones(3, 2, requires_grad=True)
    (grad,) = torch.autograd.grad(total({"x": 1 * x, "n": torch.ones(2).long()}), x)
    assert len(grad.unique()) == 6
