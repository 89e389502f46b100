"""What ``pyg-pool info`` prints."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from pyg_pool.cli.app import app
from pyg_pool.kernels import crossover


def test_backends_are_listed() -> None:
    found = CliRunner().invoke(app, ["info"])
    assert found.exit_code == 0
    assert "in force" in found.output
    assert "torch_scatter" in found.output
    assert "faster from" not in found.output


def test_crossovers_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        crossover.Crossover("segment_reduce", 4096, 1024, 7.25),
        crossover.Crossover("topk", None, 1024, 0.5),
    ]
    monkeypatch.setattr(crossover, "measure_crossovers", lambda: rows)
    found = CliRunner().invoke(app, ["info", "--bench"])
    assert found.exit_code == 0
    assert "4,096" in found.output
    assert "7.2x" in found.output
    assert "never" in found.output
