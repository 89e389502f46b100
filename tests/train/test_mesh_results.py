"""The table of what mesh training gave."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pyg_pool.train import MeshRun, MeshSummary

RUN = MeshRun(
    name="Cup-seed0", dataset="Cup", seed=0, epochs=9, tested_epoch=9, train_loss=0.1,
    test_score=0.8, area_weighted=0.7, majority=0.5, num_faces=7500,
    epoch_seconds=1.25, peak_memory_mb=500.0,
)  # fmt: skip


def summary(*runs: MeshRun, task: str = "segmentation") -> MeshSummary:
    return MeshSummary(Path("out"), task, runs, 77256)


def test_categories_weigh_the_same() -> None:
    hand = replace(RUN, dataset="Hand", test_score=0.4, area_weighted=0.1, num_faces=5)
    found = summary(RUN, hand)
    assert found.test_mean == pytest.approx(0.6)
    lines = found.to_text().splitlines()
    assert lines[0] == "segmentation: share of right faces of the test, in percent"
    assert lines[1] == "weights of epoch 9; 77,256 weights"
    assert lines[3].split()[:2] == ["category", "accuracy"]
    assert " ".join(lines[4].split()) == "Cup 80.00 70.00 50.00 7,500 1 9 1.25"
    assert " ".join(lines[6].split()).startswith("mean of 2 60.00 40.00 50.00")
    assert len({len(line) for line in lines[3:]}) == 1
    plain = found.to_dict()
    assert [row["name"] for row in plain["categories"]] == ["Cup", "Hand"]
    assert plain["area_weighted"] == pytest.approx(0.4)


def test_seeds_of_a_category_share_a_row() -> None:
    found = summary(RUN, replace(RUN, seed=1, test_score=0.9))
    (row,) = found.categories
    assert (row.seeds, row.test_score) == (2, pytest.approx(0.85))
    assert row.deviation == pytest.approx(0.05)
    (head, line) = found.to_text().splitlines()[3:]
    assert head.split()[2] == "+-"
    assert line.split()[:3] == ["Cup", "85.00", "5.00"]


def test_whole_meshes_have_no_area() -> None:
    text = summary(replace(RUN, area_weighted=None), task="classification").to_text()
    assert "right meshes" in text
    assert "area" not in text
    assert "mean of" not in text
