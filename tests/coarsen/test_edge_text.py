"""Fields of lines, and edge lists whose ids are text."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyg_pool.coarsen import read_graph
from pyg_pool.coarsen.edge_text import is_header, split_fields


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (b"1 2,3;4\n", [b"1", b"2", b"3", b"4"]),
        (b"New York, Boston\t3\n", [b"New York, Boston", b"3"]),
        (b"New York, Boston ,3\n", [b"New York", b"Boston", b"3"]),
        (b'"York, New";Boston;3\n', [b"York, New", b"Boston", b"3"]),
        (b'"York, New",Boston\n', [b"York, New", b"Boston"]),
        (b"bob  amy 2.5\r\n", [b"bob", b"amy", b"2.5"]),
        (b'"a"\rb,2\n', [b'"a"\rb', b"2"]),
    ],
)
def test_fields(line: bytes, fields: list[bytes]) -> None:
    assert split_fields(line) == fields


def test_header() -> None:
    assert is_header([b"from node", b"to node"], b"3,4\n")
    assert is_header([b"source", b"target"], b"bob,amy\n")
    assert is_header([b"source", b"target"], b"")
    assert not is_header([b"bob", b"amy"], b"amy,eve\n")
    assert not is_header([b"bob", b"amy"], b"")
    assert not is_header([b"3", b"4"], b"5,6\n")


def names(path: Path, text: str) -> list[object]:
    path.write_text(text, encoding="utf-8")
    graph = read_graph(path)
    ids, (row, col) = graph.ids, graph.edge_index()
    upper = [(ids[i], ids[j]) for i, j in zip(row, col, strict=True) if i < j]
    return [*upper, *([] if graph.edge_weight() is None else graph.edge_weight()[:1])]


def test_names_with_spaces_and_commas(tmp_path: Path) -> None:
    text = 'source,target,weight\nNew York,Boston,3\n"Lyon, FR",New York,3\n'
    expected = [("Boston", "New York"), ("Lyon, FR", "New York"), 3.0]
    assert names(tmp_path / "a.csv", text) == expected


def test_names_of_one_letter_are_names(tmp_path: Path) -> None:
    assert names(tmp_path / "a.txt", "c 5\np 5\n") == [("5", "c"), ("5", "p")]
    assert names(tmp_path / "a.txt", "a e\ne c\n") == [("a", "e"), ("c", "e")]


def test_numbers_in_quotes(tmp_path: Path) -> None:
    assert names(tmp_path / "a.csv", '"i","j"\n"7","9"\n"9","12"\n') == [
        (7, 9),
        (9, 12),
    ]


def test_missing_names_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for text in ("bob,amy\n,eve\n", "bob,amy,1\namy,eve,x\n", "bob,amy\neve\n"):
        path.write_text(text)
        with pytest.raises(ValueError, match="line 2"):
            read_graph(path)
    path.write_bytes(b"b\xf6b,amy\n")
    with pytest.raises(ValueError, match="UTF-8"):
        read_graph(path)
