from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyg_pool.train.config import (
    OptionError,
    TrainConfig,
    near_names,
    options_for_run,
    parse_seeds,
    read_config,
    write_config,
)


def test_file_round_trip(tmp_path: Path) -> None:
    config = TrainConfig(
        model="unet", readout=("mean", "sum"), seeds=(3, 5), lr=1e-4, root="x"
    )
    write_config(config, tmp_path / "config.yaml")
    assert "format: 1" in (tmp_path / "config.yaml").read_text()
    assert TrainConfig.from_dict(read_config(tmp_path / "config.yaml")) == config


def test_hand_written_file(tmp_path: Path) -> None:
    # YAML 1.1 reads 1e-3 as text, and a list may be written as one word.
    path = tmp_path / "mine.yaml"
    path.write_text("lr: 1e-3\nreadout: mean,max\nseeds: 2\nhidden: 16.0\n")
    config = TrainConfig.from_dict(read_config(path))
    assert config.lr == 0.001
    assert config.readout == ("mean", "max")
    assert config.seeds == (0, 1)
    assert type(config.hidden) is int


def test_unknown_option_names_near_ones() -> None:
    with pytest.raises(OptionError, match=r"unknown option 'epoch'.*'epochs'"):
        TrainConfig.from_dict({"epoch": 3})


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("batch_size", 0, "at least 1"),
        ("conv", 1.5, "str"),
        ("deterministic", "yes", "bool"),
        ("device", "gpu", "auto, cpu, cuda"),
        ("device", "cuda:", "auto, cpu, cuda"),
        ("dropout", 1.0, "below 1"),
        ("epochs", 2.5, "int"),
        ("epochs", True, "int"),
        ("epochs", None, "int"),
        ("folds", 1, "at least 2 folds"),
        ("hidden", "wide", "int"),
        ("levels", 0, "at least 1"),
        ("lr", float("inf"), "finite"),
        ("lr", float("nan"), "finite"),
        ("model", "hierachical", "did you mean 'hierarchical'"),
        ("patience", -1, "at least 0"),
        ("precision", "8", "one of 32"),
        ("ratio", 0.0, "above 0"),
        ("readout", (), "at least one readout"),
        ("seeds", "a", "a count like 5"),
        ("seeds", (1, 1), "different"),
        ("seeds", 0, "different"),
        ("seeds", (-1,), "from 0 on"),
        ("threads", -1, "at least 0"),
        ("weight_decay", -0.1, "from 0 on"),
        ("workers", -1, "at least 0"),
    ],
)
def test_bad_value_is_refused(name: str, value: Any, expected: str) -> None:
    with pytest.raises(OptionError, match=f"option '{name}' got") as caught:
        TrainConfig.from_dict({name: value})
    assert expected in str(caught.value)


def test_folds_and_file_exclude_each_other() -> None:
    with pytest.raises(OptionError, match="at most one of them"):
        TrainConfig(folds=3, split_file="a.json")


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("3", (0, 1, 2)),
        (2, (0, 1)),
        ("4,", (4,)),
        ("7, 9", (7, 9)),
        ([5, 6], (5, 6)),
    ],
)
def test_seeds(text: Any, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds


def test_near_names_of_nothing_near() -> None:
    assert near_names("zzz", ["gpool"]) == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", "holds list"),
        ("a: [\n", "cannot be read as YAML"),
        ("format: 9\n", "has format 9"),
    ],
)
def test_bad_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(OptionError, match=message):
        read_config(path)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="does not exist"):
        read_config(tmp_path / "none.yaml")


def test_new_folder_takes_the_given_options(tmp_path: Path) -> None:
    assert options_for_run({"hidden": 8}, tmp_path / "new").hidden == 8
    assert options_for_run({"hidden": 8}, tmp_path, resume=True).hidden == 8


def test_resume_takes_the_options_of_the_folder(tmp_path: Path) -> None:
    write_config(TrainConfig(hidden=8, epochs=3), tmp_path / "config.yaml")
    config = options_for_run({"epochs": 3, "root": "y"}, tmp_path, resume=True)
    assert (config.hidden, config.epochs, config.root) == (8, 3, "y")


def test_resume_names_every_changed_option(tmp_path: Path) -> None:
    write_config(TrainConfig(hidden=8, epochs=3), tmp_path / "config.yaml")
    with pytest.raises(OptionError) as caught:
        options_for_run({"epochs": 4, "hidden": 9, "lr": 0.001}, tmp_path, resume=True)
    text = str(caught.value)
    assert "hidden (8 in the folder, 9 now), epochs (3 in the folder, 4 now)" in text
    assert "lr" not in text


def test_folder_of_a_run_needs_resume(tmp_path: Path) -> None:
    write_config(TrainConfig(), tmp_path / "config.yaml")
    with pytest.raises(OptionError, match="already holds a run"):
        options_for_run({}, tmp_path)


def test_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(OptionError, match="a folder with other files"):
        options_for_run({}, tmp_path)
    with pytest.raises(OptionError, match="is a file"):
        options_for_run({}, tmp_path / "thesis.tex")
