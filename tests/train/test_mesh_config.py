"""Options of mesh training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyg_pool.train import MeshConfig, OptionError
from pyg_pool.train.mesh_config import mesh_options_for_run, write_mesh_config


def test_open_options_follow_the_task() -> None:
    whole = MeshConfig(data="a")
    assert (whole.model, whole.channels, whole.heads) == ("classifier", (64, 128), 3)
    assert (whole.keep, whole.lr) == (0.8, 2e-4)
    parts = MeshConfig(data="a", task="segmentation")
    assert (parts.model, parts.keep, parts.lr) == ("unet", 0.7, 1e-3)
    clusters = MeshConfig(data="a", task="segmentation", model="segmenter", heads=2)
    assert (clusters.channels, clusters.heads) == ((64, 96), 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "painting"}, "one of classification, segmentation"),
        ({"model": "unet"}, "model.*task='classification'"),
        ({"task": "segmentation", "model": "classifier"}, "unet or segmenter"),
        ({"keep": 1.5}, "from 0 to 1"),
        ({"epochs": 0}, "at least 1"),
        ({"epochs": "many"}, "option 'epochs'"),
        ({"graphs": "D"}, "one of A, B, C"),
        ({"val_share": 1.0}, "below 1"),
        ({"matmul": "low"}, "highest, high, medium"),
        ({"layout": "coseg"}, "layout.*task='classification', expected auto, shrec"),
        ({"layout": "shrek"}, "one of auto, shrec"),
        ({"versions": 20}, "versions.*set slide=0.2 and flip=0.2"),
        ({"versions": 1, "slide": 0.2}, "versions.*got 1 with slide=0.2"),
        ({"flip": 2}, "from 0 to 1"),
        ({"polygons": "cut"}, "one of error, fan"),
        ({"chanels": 3}, "did you mean 'channels'"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        MeshConfig.from_dict({"data": "a", **options})


def test_changes_ask_for_versions() -> None:
    assert MeshConfig(data="a").versions == 1
    assert MeshConfig(data="a", slide=0.2).versions == 20
    assert MeshConfig(data="a", flip=0.1, versions=3).versions == 3


def test_options_of_an_older_run_are_read() -> None:
    new = ("layout", "download", "polygons", "cache", "workers")
    new += ("versions", "slide", "flip", "scale")
    options = MeshConfig(data="a").to_dict()
    for name in new:
        del options[name]
    assert MeshConfig.from_dict(options) == MeshConfig(data="a")


def test_data_is_needed() -> None:
    with pytest.raises(OptionError, match="no option 'data'"):
        MeshConfig.from_dict({})


def test_resume_takes_more_epochs_and_nothing_else(tmp_path: Path) -> None:
    write_mesh_config(MeshConfig(data="a", channels="8,16"), tmp_path / "config.yaml")
    with pytest.raises(OptionError, match="already holds a run"):
        mesh_options_for_run({}, tmp_path)
    more = mesh_options_for_run({"epochs": 300, "data": "b"}, tmp_path, resume=True)
    assert (more.epochs, more.data, more.channels) == (300, "b", (8, 16))
    elsewhere = {"cache": "none", "workers": 2, "layout": "shrec"}
    assert mesh_options_for_run(elsewhere, tmp_path, resume=True).workers == 2
    with pytest.raises(OptionError, match=r"versions \(1 in the folder, 20 now\)"):
        mesh_options_for_run({"slide": 0.2, "versions": 20}, tmp_path, resume=True)
    with pytest.raises(OptionError, match=r"lr \(0.0002 in the folder"):
        mesh_options_for_run({"lr": 0.1}, tmp_path, resume=True)
    falling = MeshConfig(data="a", constant_epochs=3)
    write_mesh_config(falling, tmp_path / "config.yaml")
    with pytest.raises(OptionError, match="rate depends on it"):
        mesh_options_for_run({"epochs": 300}, tmp_path, resume=True)


def test_foreign_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(OptionError, match="other files"):
        mesh_options_for_run({"data": "a"}, tmp_path)
