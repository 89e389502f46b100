"""Text readers: what each refuses, and how it says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pyg_pool.coarsen.text import read_edge_list, read_gr, read_metis, read_mtx

HEAD = "%%MatrixMarket matrix coordinate "


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "0 1\n1 2\n3\n", "line 3"),
        ("a.txt", "0 1\n1 x2\n2 3\n3 4\n", "line 2"),
        ("a.graph", "x y\n", "NODES EDGES"),
        ("a.graph", "2 1 7\n2\n1\n", "FORMAT"),
        ("a.graph", "2 1\n3\n1\n", "line 2"),
        ("a.graph", "2 2\n2\n1\n", "lists 2 neighbours"),
        ("a.graph", "99999 1\n2\n1\n", "99999 nodes"),
        ("a.gr", "1 2\n", "p sp NODES EDGES"),
        ("a.gr", "p tw 2 1\n1 3\n", "expected 1 to 2"),
        ("a.gr", "p tw 999999999999999999999 1\n1 2\n", "unlikely"),
        ("a.mtx", "%%MatrixMarket matrix array real general\n", "coordinate"),
        ("a.mtx", HEAD + "complex general\n1 1 0\n", "complex"),
        ("a.mtx", HEAD + "pattern general\n2 3 1\n1 2\n", "size line"),
        ("a.mtx", HEAD + "pattern general\n2 2 5\n1 2\n", "1 entries"),
    ],
)
def test_clear_errors(name: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    reader = {".txt": read_edge_list, ".graph": read_metis, ".gr": read_gr}
    with pytest.raises(ValueError, match=message):
        reader.get(path.suffix, read_mtx)(path)


def test_isolated_nodes_of_metis(tmp_path: Path) -> None:
    path = tmp_path / "a.graph"
    path.write_text("4 1\n2\n1\n\n\n")
    found = read_metis(path)
    assert (found.num_nodes, found.row.tolist()) == (4, [0, 1])


def test_numbers_of_all_forms(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("0 1 .5\n1 2 1.25e+2\r\n2 3 -3\n3,4;1E-2\n")
    weight = read_edge_list(path).weight
    np.testing.assert_allclose(weight, [0.5, 125, -3, 0.01])
