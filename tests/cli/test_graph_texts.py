"""Files and arguments of ``pyg-pool wl``: what is read, and what is said of faults."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("typer")

from pyg_pool.cli.graph_texts import read_graphs, short

NEEDS_RDKIT = pytest.mark.skipif(
    not (find_spec("rdkit") and find_spec("ogb")), reason="molecules need rdkit and ogb"
)


@pytest.mark.parametrize(
    "content",
    [
        b"EhEG\nEwCW\n",
        b"\xef\xbb\xbfEhEG\nEwCW\n",
        b"EhEG\r\nEwCW\r\n",
        b"\n  \nEhEG ring\n\n\tEwCW\ttriangles",
        b">>graph6<<EhEG\nEwCW\n",
        b">>graph6<<\nEhEG\nEwCW\n",
        b"\xef\xbb\xbf>>graph6<<EhEG\r\nEwCW\r\n",
    ],
    ids=["plain", "bom", "crlf", "blanks", "head", "head line", "all"],
)
def test_files_of_graph6(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "graphs.g6"
    file.write_bytes(content)
    for form in ("auto", "file", "graph6"):
        names, graphs, kind = read_graphs([str(file)], form)
        assert (names, kind) == (["EhEG", "EwCW"], "graph6")
        assert [graph.num_edges for graph in graphs] == [12, 12]


@NEEDS_RDKIT
def test_files_of_molecules_whose_lines_are_graph6_too(tmp_path: Path) -> None:
    file = tmp_path / "mols.smi"
    file.write_text("CC ethane\nCCCCO\nBO\n")
    sizes = [g.num_nodes for g in read_graphs([str(file)], "smiles")[1]]
    assert sizes == [2, 5, 2]
    # 'C' is no graph6, so that all are molecules here: 'CC' too.
    names, graphs, kind = read_graphs(["CC", "C"], "auto")
    assert (names, kind) == (["CC", "C"], "smiles")
    assert [graph.num_nodes for graph in graphs] == [2, 1]
    assert read_graphs(["CC"], "auto")[2] == "graph6"


@NEEDS_RDKIT
@pytest.mark.parametrize(
    ("line", "form", "message"),
    [
        ("zz1", "auto", "'zz1' in line 3 of the file '.*', expected graph6 or SMILES;"),
        ("zz1", "file", "'zz1' in line 3 of the file '.*', expected graph6 or SMILES;"),
        (
            "zz1",
            "graph6",
            "'zz1' in line 3 of the file '.*', expected a line of graph6",
        ),
        ("Bw", "smiles", "'EhEG' in line 1 of the file '.*', expected SMILES;"),
        (":Fa@x^", "auto", "':Fa@x.' in line 3 .*sparse6, expected graph6; convert"),
        (">>sparse6<<:Fa@x^", "graph6", "line 3 .*which is sparse6"),
        ("&DI?AO?", "auto", "'&DI.AO.' in line 3 .*which is digraph6, .*kl_wl"),
        (
            "c1ccccc1",
            "auto",
            r"graph6 \('EhEG' in line 1 .*\) and SMILES \('c1ccccc1' in line 3 .*\) "
            "together, expected one kind",
        ),
        ("~~" + "a" * 5000, "auto", "'~~a{35}…' in line 3"),
        ("~", "auto", "'~' in line 3"),
    ],
)
def test_a_bad_line_is_named(
    tmp_path: Path, line: str, form: str, message: str
) -> None:
    file = tmp_path / "graphs.g6"
    file.write_text(f"EhEG\nEwCW\n{line}\nBw\n")
    with pytest.raises(ValueError, match=message):
        read_graphs([str(file)], form)


@pytest.mark.parametrize("word", ["", "  ", "\n"])
def test_words_without_letters(word: str) -> None:
    with pytest.raises(ValueError, match=r"as argument 2, expected graph6.*'\?'"):
        read_graphs(["Bw", word], "auto")
    assert read_graphs(["?"], "auto")[1][0].num_nodes == 0


def test_files_without_graphs_directories_and_files_that_are_not_there(
    tmp_path: Path,
) -> None:
    file = tmp_path / "graphs.g6"
    for content in (b"", b"\n \r\n", b"\xef\xbb\xbf", b">>graph6<<\n"):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r"graphs\.g6' without any graph"):
            read_graphs(["Bw", str(file)], "auto")
    file.write_bytes(bytes(range(256)))
    with pytest.raises(ValueError, match="expected text with one graph a line"):
        read_graphs([str(file)], "auto")
    with pytest.raises(ValueError, match=r"got the directory '.*'.*/\*\.g6"):
        read_graphs([str(tmp_path)], "auto")
    with pytest.raises(FileNotFoundError, match=r"none\.g6"):
        read_graphs([str(tmp_path / "none.g6")], "file")


@NEEDS_RDKIT
def test_words_that_are_nothing() -> None:
    expected = (
        "got 'none.g6' as argument 2, expected graph6, SMILES or an existing file"
    )
    with pytest.raises(ValueError, match=expected):
        read_graphs(["Bw", "none.g6"], "auto")
    with pytest.raises(ValueError, match="'C1CC' as argument 1, expected SMILES"):
        read_graphs(["C1CC"], "smiles")
    # Longer than any name of a file.
    with pytest.raises(ValueError, match=r"'x{37}…' as argument 1"):
        read_graphs(["x" * 9999], "auto")


def test_without_rdkit_a_bad_line_is_still_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Blocker:
        """Finds no rdkit."""

        def find_spec(self, name: str, *_: object) -> None:
            if name.split(".")[0] == "rdkit":
                raise ModuleNotFoundError(f"No module named {name!r}", name="rdkit")

    for name in [n for n in sys.modules if n.split(".")[0] == "rdkit"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Blocker(), *sys.meta_path])
    file = tmp_path / "graphs.g6"
    file.write_text("EhEG\nzz1\n")
    with pytest.raises(ImportError, match=r"'zz1' in line 2 .*pyg_pool\[mol\]"):
        read_graphs([str(file)], "auto")
    file.write_text("EhEG\n")
    assert read_graphs([str(file)], "auto")[2] == "graph6"


def test_long_names_are_cut() -> None:
    assert short("a" * 40) == "a" * 40
    assert short("a" * 41) == "a" * 37 + "…"
