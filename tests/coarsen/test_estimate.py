"""What a run will need."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

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


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        estimate(tmp_path / "a.txt")
