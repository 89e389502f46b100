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


@pytest.mark.parametrize(
    ("words", "given", "instead"),
    [
        ("ngnn --l 2", "--preset ngnn with --l 2", "change it: --ego 3."),
        ("ngnn --ego 2", "--ego 2", "--ego 3."),
        ("ngnn --k 2 --folklore", "--k 2 --folklore", "--ego 3."),
        ("id_gnn --pooling node", "--pooling node", "--pooling root --ego 3."),
        ("i2_gnn --domain path", "--domain path", "--pooling nested --ego 3."),
        ("osan --unordered", "--unordered", "change it: --l 2."),
        ("ngnn --ego-mode union", "--ego-mode union", "--ego 3."),
        ("sswl --ego 3", "--ego 3", "--update SSWL."),
        ("ds_ego --policy mark --update SWL", "--update SWL --policy mark", "none."),
        ("ds_mark --l 0", "--l 0", "no options at all."),
    ],
)
def test_options_beside_a_preset_must_be_its_own(
    wl: Any, words: str, given: str, instead: str
) -> None:
    refused = wl(*PAIR, "--preset", *words.split())
    message = " ".join(refused.err.split())
    assert refused.code == 2
    assert given in message
    assert "leave these out, or write the test out and change it" in message
    assert message.endswith(instead)


def test_options_that_agree_with_a_preset_or_that_none_sets(wl: Any) -> None:
    words = "--preset i2_gnn --l 2 --domain star --ego 3 --ordered"
    same = wl(*PAIR, *words.split())
    assert same.code == 0
    words = "--preset ngnn --mode hash --no-cover --json"
    free = wl(*PAIR, *words.split())
    assert json.loads(free.out)["test"] == "ngnn"


def test_options_of_a_preset_give_its_answer_when_written_out(wl: Any) -> None:
    pair = "G?rHrw", "G?rLf_"
    for preset, written in (
        ("i2_gnn", "--l 2 --domain star --pooling nested --ego 3"),
        ("sswl", "--update SSWL"),
        ("ds_ego", "--ego 3 --policy none"),
        ("ppgn", "--k 2 --l 0 --folklore"),
    ):
        one = json.loads(wl(*pair, "--json", "--preset", preset).out)
        two = json.loads(wl(*pair, "--json", *written.split()).out)
        for name in ("colors", "stable_round", "separating_round"):
            assert one[name] == two[name], (preset, name)


def test_one_graph_alone(wl: Any) -> None:
    result = wl("Bw")
    assert result.code == 0
    assert "Give two graphs or more" in result.out
