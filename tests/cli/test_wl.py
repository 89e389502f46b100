"""Answers of ``pyg-pool wl`` and its messages."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("typer")

NEEDS_RDKIT = pytest.mark.skipif(
    find_spec("rdkit") is None, reason="molecules need rdkit"
)
PAIR = ("EhEG", "EwCW")
DECALIN, BICYCLOPENTYL = "C1CCC2CCCCC2C1", "C1CCC(C1)C1CCCC1"


@pytest.fixture
def wl(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Calls the subcommand in this process."""
    from rich.console import Console
    from typer.testing import CliRunner

    from pyg_pool.cli import app as module
    from pyg_pool.cli import console as consoles

    def call(*words: str) -> SimpleNamespace:
        for name in ("out_console", "err_console"):
            console = Console(stderr=name[:3] == "err", width=150, highlight=False)
            monkeypatch.setattr(consoles, name, console)
        result = CliRunner().invoke(module.app, ["wl", *words])
        return SimpleNamespace(
            code=result.exit_code, out=result.stdout, err=result.stderr
        )

    return call


def test_a_pair_is_answered_in_a_sentence(wl: Any) -> None:
    plain = wl(*PAIR, "--l", "0")
    assert plain.code == 0
    assert plain.out.startswith("Not separated. Networks of the power of 1,0-WL give")
    marked = wl(*PAIR, "--k", "1", "--l", "1")
    assert "Separated by 1,1-WL, domain distinct" in marked.out
    assert "differ after 2 round(s)" in marked.out
    assert "Read as graph6." in marked.out


def test_molecules_and_presets(wl: Any) -> None:
    pytest.importorskip("rdkit")
    pytest.importorskip("ogb")
    plain = wl(DECALIN, BICYCLOPENTYL, "--l", "0", "--json")
    answer = json.loads(plain.out)
    assert answer["format"] == "smiles"
    assert answer["separated"] is False
    assert "Separated by id_gnn" in wl(DECALIN, BICYCLOPENTYL, "--preset", "id_gnn").out
    # The benzene ring of bromobenzene against chlorobenzene: atoms count.
    other = json.loads(wl("c1ccccc1Br", "c1ccccc1Cl", "--l", "0", "--json").out)
    assert other["separated"] is True
    assert other["separating_round"] == 0


def test_files_fall_into_classes(wl: Any, tmp_path: Path) -> None:
    file = tmp_path / "graphs.g6"
    file.write_text("EhEG\nEwCW\nBw\nBw\n\n")
    result = wl(str(file), "--mode", "hash")
    assert "4 graph(s) read as graph6, 3 class(es)" in result.out
    assert "Bw, Bw" in result.out
    apart = wl(str(file), "Bg", "--k", "2", "--l", "0", "--folklore", "--json")
    assert json.loads(apart.out)["num_classes"] == 4
    assert "All graphs are told apart." in wl("@", "A?", "Bw").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(
            ["zz1"], "expected graph6, SMILES or an existing file", marks=NEEDS_RDKIT
        ),
        (["zz1", "--format", "graph6"], "expected a line of graph6"),
        (["Bw", "--domain", "stars"], "did you mean 'star'"),
        (["Bw", "--preset", "i3_gnn"], "did you mean 'id_gnn'"),
        (["Bw", "--l", "0", "--ego", "1"], "at least one label"),
    ],
)
def test_mistakes_are_said_in_one_message(
    wl: Any, words: list[str], message: str
) -> None:
    result = wl(*words)
    assert result.code == 2
    assert message in " ".join(result.err.split())


def test_files_that_hold_no_text(wl: Any, tmp_path: Path) -> None:
    (tmp_path / "a.g6").write_bytes(bytes(range(256)))
    result = wl(str(tmp_path / "a.g6"))
    assert result.code == 2
    assert "one graph a line" in " ".join(result.err.split())


def test_numbers_beside_a_preset_must_be_its_own(wl: Any) -> None:
    refused = wl(*PAIR, "--preset", "ngnn", "--l", "2")
    assert refused.code != 0
    assert "leave out --l, or --preset" in refused.err
    assert wl(*PAIR, "--preset", "i2_gnn", "--l", "2").code == 0
