"""What is told of a run."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from pyg_pool.coarsen import coarsen
from pyg_pool.coarsen.multilevel import multilevel
from pyg_pool.coarsen.progress import Progress
from pyg_pool.coarsen.state import state_of
from pyg_pool.coarsen.threads import Threads
from tests.coarsen.made_graphs import blocks, graph


def test_levels_sweeps_and_objective_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "pyg_pool.coarsen.progress"):
        coarsen(blocks(1000), ratio=0.1)
    text = caplog.text
    for word in ("level 1", "sweep 1", "'J'", "edges_per_second", "moved"):
        assert word in text


def test_bar_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    coarsen(blocks(1000), ratio=0.1, progress=True)
    assert "%" in capsys.readouterr().err


def test_objective_falls_and_last_labels_are_whole() -> None:
    watch = Progress()
    with Threads(1) as threads:
        multilevel(state_of(graph(3000)), 100, threads=threads, progress=watch)
    values = [entry["objective"] for entry in watch.history]
    assert values == sorted(values, reverse=True)
    label = watch.last_labels()
    assert label is not None
    assert label.shape == (3000,)
    assert len(np.unique(label)) == 100
