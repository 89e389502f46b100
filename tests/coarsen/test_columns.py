"""Edge lists whose columns are named."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from pyg_pool.coarsen import read_graph
from pyg_pool.coarsen.columns import header_of


@pytest.mark.parametrize("sign", [",", "\t", ";", " "])
def test_columns_of_text_by_name(sign: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = ["# made", "time a score b", "7 1 0.5 2", "8 2 0.25 3"]
    path.write_text("\n".join(rows).replace(" ", sign).replace("#" + sign, "# "))
    graph = read_graph(path, columns=("a", "b", "score"))
    assert (graph.num_nodes, graph.num_edges) == (3, 2)
    np.testing.assert_allclose(graph.weight, [0.5, 0.5, 0.25, 0.25])
    assert read_graph(path, columns=("b", "a")).weight.size == 0
    with pytest.raises(ValueError, match="has the columns"):
        read_graph(path, columns=("a", "c"))
    (tmp_path / "b.csv").write_text("a,b,c\n1,2,x\n")
    with pytest.raises(ValueError, match="expected weights"):
        read_graph(tmp_path / "b.csv", columns=("a", "b", "c"))
    (tmp_path / "a.graph").write_text("2 1\n2\n1\n")
    with pytest.raises(ValueError, match="leave columns out"):
        read_graph(tmp_path / "a.graph", columns=("a", "b"))


def test_ids_of_text_in_one_column(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n7,x\n8,7\n")
    assert read_graph(path, columns=("a", "b")).ids.tolist() == ["7", "8", "x"]
    path.write_bytes(b"a,b\n7,x\n8,\xff\n")
    with pytest.raises(ValueError, match=r"'b' holds .* in row 2"):
        read_graph(path, columns=("a", "b"))


def test_header_comes_after_comments(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"# one\n\n% two\na,b\n1,2\n"))
    assert header_of(path) == ("a,b", 3)
    assert read_graph(path, columns=("a", "b")).num_edges == 1
    path.write_bytes(gzip.compress(b""))
    assert header_of(path) == ("", 0)
    with pytest.raises(ValueError, match="has the columns"):
        read_graph(path, columns=("a", "b"))
