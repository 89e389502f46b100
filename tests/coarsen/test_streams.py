"""Packed files as streams of lines."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pyg_pool.coarsen import streams
from pyg_pool.coarsen.streams import inner_suffix, line_blocks, open_stream


def test_blocks_end_with_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "BLOCK", 7)
    data = b"first line\nsecond\n\nthe last one"
    (tmp_path / "a.txt").write_bytes(data)
    blocks = list(line_blocks(tmp_path / "a.txt"))
    assert b"".join(blocks) == data
    assert all(block.endswith(b"\n") for block in blocks[:-1])


def test_suffix_below_the_packing() -> None:
    assert inner_suffix(Path("a.graph.gz")) == ".graph"
    assert inner_suffix(Path("a.csv")) == ".csv"


def test_half_a_packed_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(bytes(range(256)) * 99)[:-40])
    with pytest.raises(ValueError, match="cannot be unpacked"):
        list(line_blocks(path))


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz"])
def test_a_file_that_only_says_it_is_packed(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.txt.{suffix}"
    path.write_text("0 1\n")
    with pytest.raises(ValueError, match="unpacked"), open_stream(path) as stream:
        stream.read(5)
