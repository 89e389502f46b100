"""The subcommand, from file to folder and back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from pyg_pool.cli.app import app
from pyg_pool.coarsen import Coarsening
from tests.coarsen.made_graphs import blocks

RUN = CliRunner()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    coo = blocks(300).tocoo()
    lines = "".join(f"{i + 5},{j + 5}\n" for i, j in zip(coo.row, coo.col, strict=True))
    (tmp_path / "graph.csv").write_text("source,target\n" + lines)
    return tmp_path / "graph.csv"


def call(*words: object) -> tuple[int, str]:
    done = RUN.invoke(app, ["coarsen", *map(str, words)])
    return done.exit_code, done.output


def test_from_file_to_folder_and_back(path: Path) -> None:
    out = path.parent / "out"
    code, text = call(path, "-o", out, "--ratio", 0.2, "--levels", 2)
    assert code == 0, text
    assert "GW distance at most" in text
    names = {file.name for file in out.iterdir()}
    assert {"manifest.json", "quality.json", "quality.png", "clusters.parquet"} <= names
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["nodes"] == [300, 60, 12]
    assert [p.name for p in path.parent.iterdir() if "interrupted" in p.name] == []
    np.save(path.parent / "part.npy", np.arange(12))
    labels = path.parent / "labels.parquet"
    code, text = call(out, "-o", labels, "--lift", path.parent / "part.npy")
    assert code == 0, text
    nodes = parquet.read_table(labels)["node"].to_pylist()
    assert sorted(nodes) == list(range(5, 305))


def test_dry_run_writes_nothing(path: Path) -> None:
    code, text = call(path, "-o", path.parent / "out", "--ratio", 0.2, "--dry-run")
    assert code == 0
    assert "GB of memory" in text
    assert not (path.parent / "out").exists()


def test_mistakes_end_with_a_message(path: Path) -> None:
    code, text = call(path, "-o", path.parent / "out")
    assert code == 2
    assert "exactly one" in " ".join(text.split())
    code, text = call(path.parent / "none.csv", "-o", path.parent / "out", "--ratio", 1)
    assert code == 2
    (path.parent / "out").mkdir()
    code, text = call(path, "-o", path.parent / "out", "--ratio", 0.2)
    assert code == 2
    assert "exists" in text


def test_mistakes_are_named_before_the_work(path: Path) -> None:
    def refused(*words: object) -> str:
        code, text = call(*words, "-o", path.parent / "out")
        assert code == 2
        return " ".join(text.split())

    text = refused(path.parent / "none.csv", "--ratio", 0.2)
    assert "expected an existing file or folder; check the path." in text
    assert "--ratio" in refused(path, "--ratio", 1.5)
    assert "write='wild'" in refused(path, "--ratio", 0.2, "--write", "npz,wild")
    assert "eigenvalues" in refused(path, "--ratio", 0.2, "--eigenvalues", -1)
    (path.parent / "a.txt.gz").write_text("0 1")
    (path.parent / "b.txt.xz").write_text("0 1")
    for name in ("a.txt.gz", "b.txt.xz"):
        assert "unpacked" in refused(path.parent / name, "--ratio", 0.2)
    np.save(path.parent / "part.npy", np.arange(3))
    lift = ("--lift", path.parent / "part.npy")
    assert "ends in .parquet" in refused(path.parent, *lift)
    code, text = call(path.parent, "-o", path.parent / "a.parquet", *lift)
    assert (code, "folder of a coarsening" in " ".join(text.split())) == (2, True)
    assert {p.name for p in path.parent.iterdir()} == {
        "graph.csv", "a.txt.gz", "b.txt.xz", "part.npy",
    }  # fmt: skip


def test_folders_above_the_result_are_made(path: Path) -> None:
    out = path.parent / "new" / "out"
    assert call(path, "-o", out, "--ratio", 0.2)[0] == 0
    assert (out / "manifest.json").is_file()


def test_result_survives_a_folder_that_cannot_be_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("pyg_pool.coarsen.write.write_folder", full)
    code, text = call(path, "-o", path.parent / "out", "--ratio", 0.2)
    assert code != 0, text
    kept = Coarsening.load(path.parent / "out.interrupted.npz")
    assert kept.num_clusters == 60
