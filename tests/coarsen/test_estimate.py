"""What a run will need."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from pyg_pool.coarsen.estimate import estimate


@pytest.mark.parametrize("packed", [False, True])
def test_rows_are_about_right(tmp_path: Path, packed: bool) -> None:
    text = "".join(f"{i} {i * 7919 % 30011}\n" for i in range(200_000)).encode()
    path = tmp_path / ("a.txt.gz" if packed else "a.txt")
    path.write_bytes(gzip.compress(text, 6) if packed else text)
    found = estimate(path)
    assert 120_000 < found.rows < 330_000
    assert found.memory > 40 * found.rows
    assert "GB of memory" in str(found)
    assert estimate(path, "edges") == found


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.gr", "c roads\np sp 90 1234\n"),
        ("b.gr", "p tw 90 1234\n"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n% by\n90 90 1234\n"),
        ("a.graph", "% by\n90 1234 1\n"),
    ],
)
def test_headings_tell_sizes(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    found = estimate(tmp_path / name)
    assert found.rows == 1234
    (tmp_path / name).write_text(text.replace("90", "900"))
    assert estimate(tmp_path / name).memory > found.memory


def test_tables_and_patterns(tmp_path: Path) -> None:
    table = pyarrow.table({"src": np.arange(500), "dst": np.arange(500)})
    for name in ("a", "b"):
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    assert estimate(tmp_path / "a.parquet").rows == 500
    assert estimate(tmp_path / "*.parquet").rows == 1000
    assert estimate(tmp_path).rows == 1000
    np.save(tmp_path / "a.npy", np.zeros((2, 70), dtype=np.int32))
    assert estimate(tmp_path / "a.npy").rows == 70
    (tmp_path / "c.parquet").write_bytes(b"none")
    assert estimate(tmp_path / "c.parquet").rows == 1


def test_missing_file(tmp_path: Path) -> None:
    for name in ("a.txt", "*.parquet"):
        with pytest.raises(FileNotFoundError):
            estimate(tmp_path / name)
