from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from pyg_pool.train.checkpoint import (
    append_metrics,
    finished_epochs,
    is_done,
    load_checkpoint,
    read_json,
    read_metrics,
    save_checkpoint,
    trim_metrics,
    write_atomic,
    write_json,
)


def test_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a" / "file"
    write_atomic(path, b"old")

    def fail(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in path.parent.iterdir()] == ["file"]


def test_checkpoint_round_trip(tmp_path: Path) -> None:
    content = {"epoch": 3, "weight": torch.arange(3.0), "plain": {"a": [1, "b"]}}
    save_checkpoint(content, tmp_path / "a.ckpt")
    found = load_checkpoint(tmp_path / "a.ckpt")
    assert torch.equal(found.pop("weight"), content.pop("weight"))
    assert found == content
    assert finished_epochs(found) == 4


class Evil:
    """Would touch a file when unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path(self.path),)


def test_checkpoint_runs_no_code(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    torch.save({"a": Evil(str(trap))}, tmp_path / "evil.ckpt")
    with pytest.raises(ValueError, match="cannot be read"):
        load_checkpoint(tmp_path / "evil.ckpt")
    assert not trap.exists()


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_damaged_checkpoint_is_named(share: float, tmp_path: Path) -> None:
    path = tmp_path / "a.ckpt"
    save_checkpoint({"a": torch.arange(100)}, path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"a\.ckpt' cannot be read"):
        load_checkpoint(path)


def test_checkpoint_of_something_else(tmp_path: Path) -> None:
    torch.save([1], tmp_path / "a.ckpt")
    with pytest.raises(ValueError, match="holds list"):
        load_checkpoint(tmp_path / "a.ckpt")


def test_done_by_epochs_or_patience() -> None:
    state = {"epoch": 4, "callbacks": {"EarlyStopping{'a': 1}": {"wait_count": 2}}}
    assert is_done(state, epochs=5, patience=0)
    assert not is_done(state, epochs=6, patience=0)
    assert is_done(state, epochs=6, patience=2)
    assert not is_done(state, epochs=6, patience=3)
    assert not is_done({"epoch": 4}, epochs=6, patience=1)


def test_json_has_a_format_and_no_nan(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"a": float("nan"), "b": [float("inf"), 1.5], "c": (1,)})
    assert read_json(path) == {"format": 1, "a": None, "b": [None, 1.5], "c": [1]}


def test_json_of_another_format(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"format": 7}')
    with pytest.raises(ValueError, match="has format 7, expected 1"):
        read_json(path)


def test_metrics_lines(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    assert read_metrics(path) == []
    assert trim_metrics(path, 1) == 0
    for epoch in range(3):
        append_metrics(path, {"epoch": epoch, "val_score": float("nan")})
    with path.open("a") as file:
        file.write('{"epoch": 3, "val_')
    assert [line["epoch"] for line in read_metrics(path)] == [0, 1, 2]
    assert trim_metrics(path, 2) == 1
    assert read_metrics(path) == [
        {"epoch": 0, "val_score": None},
        {"epoch": 1, "val_score": None},
    ]
    assert path.read_text().count("\n") == 2


@pytest.mark.parametrize("content", [b"a\nb\n", b"", b"nope", bytes(range(256))])
def test_files_that_are_no_checkpoints(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.ckpt").write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read"):
        load_checkpoint(tmp_path / "a.ckpt")
