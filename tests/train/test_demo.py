from __future__ import annotations

from pathlib import Path

import pytest

from pyg_pool.train import Demo
from pyg_pool.train.demo import MODELS, SHARED

pytest.importorskip("lightning")
pytest.importorskip("datamol")


def test_demo_in_small(tmp_path: Path) -> None:
    result = Demo.prepare(tmp_path / "demo", epochs=1).run()
    assert [row.name for row in result.rows] == [name for name, _, _ in MODELS]
    assert 0 < result.majority < 0.6
    for row in result.rows:
        assert 0 <= row.test_score <= 1
        assert row.seconds > 0
    names = [str(path.relative_to(tmp_path / "demo")) for path in result.pictures]
    assert names == [
        "hierarchical/curves.png",
        "hierarchical/levels.png",
        "gcn/curves.png",
    ]
    assert all(path.exists() for path in result.pictures)
    # A finished demonstration is only read.
    again = Demo.prepare(tmp_path / "demo", epochs=1).run()
    assert again.rows == result.rows


def test_both_models_get_the_same_budget() -> None:
    budget = {"epochs", "batch_size", "hidden", "levels", "lr", "patience", "seeds"}
    for _, _, own in MODELS:
        assert not budget & set(own)
    assert {"epochs", "batch_size", "lr"} <= set(SHARED)


@pytest.mark.slow
def test_demo_keeps_its_promise(tmp_path: Path) -> None:
    result = Demo.prepare(tmp_path / "demo").run()
    pooled, plain = result.rows
    assert pooled.test_score >= result.majority + 0.15
    assert pooled.test_score >= plain.test_score - 0.03
