"""Graphs that a command is given as text: graph6, SMILES, or files of them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["read_graphs", "short"]

HEAD = ">>graph6<<"
SPARSE = "sparse6", "convert it, for instance with 'copyg -g' of nauty"
DIRECTED = "digraph6", "ask pyg_pool.relational.kl_wl about directed graphs"
#: Heads of formats that look like graph6 and are not, and what to do about them.
OTHERS = {
    ":": SPARSE,
    ";": SPARSE,
    ">>sparse6<<": SPARSE,
    "&": DIRECTED,
    ">>digraph6<<": DIRECTED,
}


@dataclass(frozen=True)
class Text:
    """A text and where it stands."""

    word: str
    place: str

    def __str__(self) -> str:
        """Both, for messages."""
        return f"{short(self.word)!r} {self.place}"


def read_graphs(words: Sequence[str], form: str) -> tuple[list[str], list[Any], str]:
    """Return names, graphs and the kind of text they were read from.

    Args:
        words: Texts, and names of files with one text a line.
        form: ``"graph6"`` or ``"smiles"`` for texts of that kind, ``"auto"`` and
            ``"file"`` to find it out; with ``"file"`` all words are files.

    Raises:
        ImportError: If a text is no graph6 and what reads SMILES is not installed.
        OSError: If a file cannot be read.
        ValueError: If a text is neither graph6 nor SMILES, they are mixed, or there
            is no graph.
    """
    texts = [text for number, word in enumerate(words, 1)
             for text in _texts(word, number, form)]  # fmt: skip
    if form == "smiles":
        graphs = _all_molecules(texts)
    else:
        found = [_graph6(text) for text in texts]
        strange = [t for t, g in zip(texts, found, strict=True) if g is None]
        if not strange:
            return [t.word for t in texts], found, "graph6"
        _refuse_others(strange)
        if form == "graph6":
            raise ValueError(
                f"pyg-pool wl got {strange[0]}, expected a line of graph6 such as "
                f"'Bw' for a triangle; correct it, or leave --format out."
            )
        graphs = _molecules_instead(texts, strange)
    return [t.word for t in texts], graphs, "smiles"


def _texts(word: str, number: int, form: str) -> list[Text]:
    """The text of an argument, or those of the file that it names."""
    if not word.strip():
        raise ValueError(
            f"pyg-pool wl got {word!r} as argument {number}, expected graph6, SMILES "
            f"or a file; leave it out, or write '?' for the graph without nodes."
        )
    path = Path(word)
    if form == "file" or _is(path.is_file):
        return _lines(path)
    if _is(path.is_dir):
        raise ValueError(
            f"pyg-pool wl got the directory {word!r}, expected graph6, SMILES or "
            f"files of them; name the files, for instance {word.rstrip('/')}/*.g6."
        )
    return [Text(word.strip().removeprefix(HEAD), f"as argument {number}")]


def _lines(path: Path) -> list[Text]:
    """The first word of each line of a file; there must be one."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"pyg-pool wl got the file {str(path)!r} ({error}), expected text with one "
            f"graph a line; write it again."
        ) from error
    place = f"of the file {str(path)!r}"
    texts = [
        Text(line.split()[0].removeprefix(HEAD), f"in line {number} {place}")
        for number, line in enumerate(lines, 1)
        if line.strip() not in ("", HEAD)
    ]
    if not texts:
        raise ValueError(
            f"pyg-pool wl got the file {str(path)!r} without any graph, expected one "
            f"graph a line; leave it out, or fill it."
        )
    return texts


def _is(question: Any) -> bool:
    """Ask a path what it is; long lines of graph6 are no legal names."""
    try:
        return bool(question())
    except (OSError, ValueError):
        return False


def _graph6(text: Text) -> Any:
    """The graph of a line of graph6, ``None`` for other texts."""
    relational = importlib.import_module("pyg_pool.relational")
    try:
        return relational.from_graph6(text.word)
    except ValueError:
        return None


def _refuse_others(texts: Iterable[Text]) -> None:
    """Name the format of a text that looks like graph6."""
    for text in texts:
        for head, (kind, mend) in OTHERS.items():
            if text.word.startswith(head):
                raise ValueError(
                    f"pyg-pool wl got {text}, which is {kind}, expected graph6; {mend}."
                )


def _all_molecules(texts: Sequence[Text]) -> list[Any]:
    """The graphs of texts that are all meant as SMILES."""
    graphs = []
    for text in texts:
        mol = _molecule(text)
        if mol is None:
            raise ValueError(
                f"pyg-pool wl got {text}, expected SMILES; correct it, or leave "
                f"--format out."
            )
        graphs.append(_graph_of(text, mol))
    return graphs


def _molecules_instead(texts: Sequence[Text], strange: Sequence[Text]) -> list[Any]:
    """The graphs of texts some of which are no graph6."""
    try:
        mols = {text: _molecule(text) for text in (*strange, *texts)}
    except ImportError as error:
        raise ImportError(
            f"pyg-pool wl got {strange[0]}, which is no graph6 and cannot be tried as "
            f"SMILES ({error}), expected graph6; correct it, or install that."
        ) from error
    for text in strange:
        if mols[text] is None:
            is_line = text.place.startswith("in line")
            kinds = (
                "graph6 or SMILES" if is_line else "graph6, SMILES or an existing file"
            )
            raise ValueError(
                f"pyg-pool wl got {text}, expected {kinds}; correct it, or say with "
                f"--format what it is."
            )
    for text in texts:
        if mols[text] is None:
            raise ValueError(
                f"pyg-pool wl got graph6 ({text}) and SMILES ({strange[0]}) together, "
                f"expected one kind, since graphs and molecules are not compared; "
                f"correct one of them, or ask twice."
            )
    return [_graph_of(text, mols[text]) for text in texts]


def _molecule(text: Text) -> Any:
    """The molecule of a SMILES, ``None`` for other texts."""
    return importlib.import_module("pyg_pool.train.molecules").mol_from_text(text.word)


def _graph_of(text: Text, mol: Any) -> Any:
    """The graph of a molecule."""
    molecules = importlib.import_module("pyg_pool.train.molecules")
    try:
        return molecules.mol_to_graph(mol)
    except ValueError as error:
        raise ValueError(f"pyg-pool wl got {text}: {error}") from error


def short(word: str) -> str:
    """A word of at most 40 letters."""
    return word if len(word) <= 40 else f"{word[:37]}…"
