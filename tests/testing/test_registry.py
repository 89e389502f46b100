"""All operators of the library keep the contract."""

from __future__ import annotations

import pytest
import torch

import pyg_pool.pool
from pyg_pool import Pooling
from pyg_pool.testing import (
    POOLING_CHECKS,
    READOUT_CHECKS,
    check_pooling,
    check_readout,
    poolings,
    readouts,
)
from pyg_pool.testing.registry import pooling_spec

POOLINGS = {spec.label: spec for spec in poolings()}
READOUTS = {spec.label: spec for spec in readouts()}
# Compilation takes seconds and is tested as fault P37.
COMPILES = {"compile", "compile_gradients"}


@pytest.mark.parametrize(
    ("name", "check"),
    [(n, c) for n in POOLINGS for c in sorted(set(POOLING_CHECKS) - COMPILES)],
)
def test_pooling_keeps_the_contract(name: str, check: str) -> None:
    spec = POOLINGS[name]
    report = check_pooling(spec, only=[check])
    reason = spec.exceptions.get(check)
    assert report == {check: "passed" if reason is None else f"skipped: {reason}"}


@pytest.mark.parametrize(
    ("name", "check"),
    [(n, c) for n in READOUTS for c in sorted(set(READOUT_CHECKS) - COMPILES)],
)
def test_readout_keeps_the_contract(name: str, check: str) -> None:
    spec = READOUTS[name]
    report = check_readout(spec, only=[check])
    reason = spec.exceptions.get(check)
    assert report == {check: "passed" if reason is None else f"skipped: {reason}"}


def test_every_pooling_of_the_room_is_registered() -> None:
    public = [getattr(pyg_pool.pool, name) for name in pyg_pool.pool.__all__]
    wanted = {c for c in public if isinstance(c, type) and issubclass(c, Pooling)}
    assert wanted
    assert {type(spec.build()) for spec in POOLINGS.values()} == wanted
    assert len(POOLINGS) == len(poolings())


def test_new_operator_joins_by_its_public_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class NewPooling(Pooling):
        pass

    monkeypatch.setattr(pyg_pool.pool, "NewPooling", NewPooling, raising=False)
    names = [*pyg_pool.pool.__all__, "NewPooling"]
    monkeypatch.setattr(pyg_pool.pool, "__all__", names)
    assert "NewPooling()" in [spec.label for spec in poolings()]


def test_operator_that_cannot_be_built_is_refused() -> None:
    class Demanding(Pooling):
        def __init__(self, in_channels: int, secret: int) -> None:
            super().__init__()

    with pytest.raises(TypeError, match="give its other arguments defaults"):
        pooling_spec(Demanding, {})


@pytest.mark.parametrize(
    ("augment", "wanted"),
    [
        ("square", [[1.0, 2.0], [0.0, 1.0]]),
        ("binary", [[1.0, 1.0], [0.0, 1.0]]),
        ("weighted", [[0.0, 2.0], [0.0, 0.0]]),
    ],
)
def test_documented_matrices(augment: str, wanted: list[list[float]]) -> None:
    spec = pooling_spec(pyg_pool.pool.GPool, {"augment": augment})
    assert spec.adjacency is not None
    found = spec.adjacency(torch.tensor([[1.0, 1.0], [0.0, 1.0]]))
    assert found.tolist() == wanted
