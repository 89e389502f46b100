from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from pyg_pool.cli import main
from pyg_pool.train import GraphJob, TrainConfig, list_pools

ROOT = Path(__file__).resolve().parents[2]

pytest.importorskip("typer")


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Calls the command in this process; the tables get room for their text."""
    from rich.console import Console

    from pyg_pool.cli import app as module
    from pyg_pool.cli import console as consoles

    def call(*words: str) -> SimpleNamespace:
        for name in ("out_console", "err_console"):
            console = Console(stderr=name[:3] == "err", width=150, highlight=False)
            monkeypatch.setattr(consoles, name, console)
        result = CliRunner().invoke(module.app, list(words))
        return SimpleNamespace(
            code=result.exit_code, out=result.stdout, err=result.stderr
        )

    return call


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the command hands to the library, which then does nothing."""
    seen: list[dict[str, Any]] = []

    def prepare(options: Any, out: Path, *, resume: bool) -> Any:
        seen.append({"options": dict(options), "out": out, "resume": resume})
        raise ValueError("that is enough")

    monkeypatch.setattr(GraphJob, "prepare", prepare)
    return seen


def test_only_given_options_reach_the_library(
    cli: Any, prepared: list[dict[str, Any]]
) -> None:
    done = cli("train", "graph", "--out", "a", "--lr", "0.1", "--seeds", "0,7")
    assert done.code == 2
    assert "Error: that is enough" in done.err
    assert prepared == [
        {"options": {"lr": 0.1, "seeds": "0,7"}, "out": Path("a"), "resume": False}
    ]


def test_every_option_of_the_library_is_an_option_here(
    cli: Any, prepared: list[dict[str, Any]]
) -> None:
    words, wanted = [], {}
    for name, value in TrainConfig(root="r", split_file="s").to_dict().items():
        given = ",".join(map(str, value)) if isinstance(value, list) else value
        flag = f"--{name.replace('_', '-')}"
        words += ["--no-deterministic"] if value is False else [flag, str(given)]
        wanted[name] = given
    assert cli("train", "graph", "--out", "a", "--resume", *words).code == 2
    assert prepared == [{"options": wanted, "out": Path("a"), "resume": True}]


def test_help_tells_the_defaults_of_the_library() -> None:
    from pyg_pool.cli.app import train_graph

    hints = inspect.get_annotations(train_graph, eval_str=True)
    special = {"seeds": "1", "root": "data", "split_file": "none"}
    for name, value in TrainConfig().to_dict().items():
        shown = hints[name].__metadata__[0].show_default
        words = ",".join(value) if name == "readout" else str(value)
        if name == "deterministic":
            words = "no-deterministic"
        assert shown == special.get(name, words), name


def test_file_of_options_gives_way_to_the_command_line(
    cli: Any, prepared: list[dict[str, Any]], tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("hidden: 8\nlr: 0.5\n")
    cli("train", "graph", "--out", "a", "--config", str(file), "--lr", "0.1")
    assert prepared[0]["options"] == {"hidden": 8, "lr": 0.1}


def test_wrong_values_give_a_message_and_code_two(cli: Any, tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    done = cli("train", "graph", "--out", out, "--pool", "gpol", "--device", "cpu")
    assert done.code == 2
    assert "did you mean 'gpool'" in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "run").exists()
    done = cli("train", "graph", "--out", out, "--dataset", "solubilty")
    assert done.code == 2
    assert "solubility" in done.err


def test_list_names_everything(cli: Any) -> None:
    done = cli("list")
    assert done.code == 0
    for word in ("gpool", "gunpool", "mean", "hierarchical", "solubility", "PROTEINS"):
        assert re.search(rf"^  {word} +\S.*\S", done.out, re.M), word
    assert [line for line in done.out.splitlines() if line and line[0] != " "] == [
        "Operators",
        "Readouts",
        "Models",
        "Data sets",
    ]


def test_list_marks_what_training_takes(cli: Any, tmp_path: Path) -> None:
    lines = cli("list", "operators").out.splitlines()[1:]
    names = {line.split()[0]: "train graph --pool" in line for line in lines}
    assert {name for name, mark in names.items() if mark} == set(list_pools())
    assert not all(names.values())
    for name in ("primal_dual", "gunpool"):
        assert not names[name]
        assert cli("train", "graph", "--out", str(tmp_path), "--pool", name).code == 2


def test_list_of_one_kind(cli: Any) -> None:
    done = cli("list", "models")
    assert "unet" in done.out
    assert "gunpool" not in done.out


def test_info_tells_versions_and_backends(cli: Any) -> None:
    done = cli("info")
    assert done.code == 0
    version = torch.__version__.partition("+")[0]
    assert re.search(rf"torch +{re.escape(version)}", done.out)
    assert re.search(r"native +yes", done.out)
    assert re.search(r"in force +auto", done.out)


def test_train_and_resume_print_the_scores(cli: Any, tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    pytest.importorskip("datamol")
    words = ["train", "graph", "--out", str(tmp_path / "run"), "--resume"]
    small = "--epochs 1 --hidden 4 --levels 1 --batch-size 512 --device cpu --threads 1"
    done = cli(*words, *small.split())
    assert done.code == 0, done.err
    assert re.search(r"mean .* 0\.\d{4} ± 0\.0000", done.out)
    assert "constant answer" in done.out
    assert "seed0: epoch 1, loss" in done.err
    again = cli(*words)
    assert "seed0: finished before, skipped" in again.err
    assert again.out == done.out


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_missing_package_of_the_command(
    package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert "pip install 'pyg_pool[cli]'" in capsys.readouterr().err


def test_missing_package_of_the_training(
    cli: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "lightning", None)
    done = cli("train", "graph", "--out", str(tmp_path / "run"))
    assert done.code == 2
    assert "pip install 'pyg_pool[train]'" in done.err
    assert not (tmp_path / "run").exists()


def test_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "pyg_pool", "--help"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Usage: pyg-pool" in done.stdout
